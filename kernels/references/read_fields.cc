// read_fields: prints the dataset "fields" of an HDF5 file as doubles to the standard output. It
// reads what kernels/atmosphere has written, without using any of its code.
#include <hdf5.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: read_fields FILE\n"), 2;
  const hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t fields = H5Dopen2(file, "fields", H5P_DEFAULT);
  const hid_t space = H5Dget_space(fields);
  const hssize_t points = H5Sget_simple_extent_npoints(space);
  if (points < 0) return 1;  // HDF5 has printed the reason
  std::vector<double> values(static_cast<std::size_t>(points));
  if (H5Dread(fields, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    return 1;
  H5Sclose(space), H5Dclose(fields), H5Fclose(file);
  return std::fwrite(values.data(), sizeof(double), values.size(), stdout) == values.size() ? 0 : 1;
}
