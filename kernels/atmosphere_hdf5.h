// Writes the fields of atmosphere to a file with one HDF5 dataset, "fields":
// [record][field][latitude][longitude]. It is separate since HDF5 is built for one MPI library, so
// that most builds of Weft lack it. All ranks write together by HDF5 over MPI. Its calls do not
// return before they have written, so only rank 0 writes while the next steps are computed, by a
// thread that makes no MPI calls.
#pragma once
#include <hdf5.h>
#include <mpi.h>

#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "atmosphere_store.h"
#include "trials.h"

namespace output {

class Hdf5Store {
 public:
  static constexpr bool all_write_behind = false;

  // Opens the file. All ranks must call it together. is_open() says whether it succeeded.
  Hdf5Store(std::string path, const Shape& shape, MPI_Comm comm)
      : path_(std::move(path)), shape_(shape), comm_(comm) {
    // Failures are reported by this program, not by HDF5.
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    int made = !is_root() || std::ofstream(path_, std::ios::binary | std::ios::app).good();
    MPI_Bcast(&made, 1, MPI_INT, 0, comm_);
    is_open_ = made;
  }
  Hdf5Store(const Hdf5Store&) = delete;
  Hdf5Store& operator=(const Hdf5Store&) = delete;
  ~Hdf5Store() { close(); }
  bool is_open() const { return is_open_; }

  // Empties the file, and makes the dataset if something will be written. All ranks must call it
  // together.
  void begin(Writing writing) {
    close();
    const bool together = writing == Writing::all;
    if (!together && !is_root()) return;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (together) check(H5Pset_fapl_mpio(access, comm_, MPI_INFO_NULL));
    file_ = check(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access));
    H5Pclose(access);
    transfer_ = check(H5Pcreate(H5P_DATASET_XFER));
    if (together) check(H5Pset_dxpl_mpio(transfer_, H5FD_MPIO_COLLECTIVE));
    if (writing == Writing::nothing) return;
    const hsize_t sizes[4] = {size(shape_.records), size(shape_.fields), size(shape_.latitudes),
                              size(shape_.longitudes)};
    const hid_t whole = H5Screate_simple(4, sizes, nullptr);
    fields_ = check(
        H5Dcreate2(file_, "fields", H5T_IEEE_F64LE, whole, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(whole);
  }

  // Writes this rank's rows.
  void write(int record, const std::vector<double>& fields) {
    write_rows(record, fields.data(), shape_.first_row, shape_.rows);
  }
  // Must not be called: ranks cannot write together while the next steps are computed.
  void start(int, const std::vector<double>&) {}
  // write_whole() writes all rows, on rank 0. start_whole() begins to write them, and finish()
  // waits for the end.
  void write_whole(int record, const std::vector<double>& fields) {
    write_rows(record, fields.data(), 0, shape_.latitudes);
  }
  void start_whole(int record, const std::vector<double>& fields) {
    writer_ = std::thread([this, record, &fields] { write_whole(record, fields); });
  }
  void finish() {
    if (writer_.joinable()) writer_.join();
  }

  // Returns on rank 0 what the dataset in the file contains; nothing if there is no dataset.
  std::vector<char> content() {
    close();
    MPI_Barrier(comm_);
    if (!is_root()) return {};
    std::vector<char> found;
    const hid_t file = check(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    if (H5Lexists(file, "fields", H5P_DEFAULT) > 0) {
      const hid_t fields = check(H5Dopen2(file, "fields", H5P_DEFAULT));
      found.resize(shape_.whole() * static_cast<std::size_t>(shape_.records) * sizeof(double));
      check(H5Dread(fields, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()));
      H5Dclose(fields);
    }
    H5Fclose(file);
    return found;
  }

 private:
  bool is_root() const { return trials::rank_in(comm_) == 0; }
  static hsize_t size(int value) { return static_cast<hsize_t>(value); }

  void write_rows(int record, const double* fields, int first, int rows) {
    const hsize_t starts[4] = {size(record), 0, size(first), 0};
    const hsize_t sizes[4] = {1, size(shape_.fields), size(rows), size(shape_.longitudes)};
    const hid_t memory = H5Screate_simple(4, sizes, nullptr), place = check(H5Dget_space(fields_));
    check(H5Sselect_hyperslab(place, H5S_SELECT_SET, starts, nullptr, sizes, nullptr));
    check(H5Dwrite(fields_, H5T_NATIVE_DOUBLE, memory, place, transfer_, fields));
    H5Sclose(memory), H5Sclose(place);
  }
  void close() {
    finish();
    if (fields_ >= 0) check(H5Dclose(fields_));
    if (transfer_ >= 0) check(H5Pclose(transfer_));
    if (file_ >= 0) check(H5Fclose(file_));
    fields_ = transfer_ = file_ = H5I_INVALID_HID;
  }
  template <class Result>
  Result check(Result result) const {
    if (result < 0) give_up(path_, "HDF5 failed");
    return result;
  }

  const std::string path_;
  const Shape shape_;
  const MPI_Comm comm_;
  hid_t file_ = H5I_INVALID_HID, fields_ = H5I_INVALID_HID, transfer_ = H5I_INVALID_HID;
  std::thread writer_;
  bool is_open_ = false;
};

}  // namespace output
