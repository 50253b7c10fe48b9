// Runs the transforms of kernels/atmosphere on one rank, to the grid and back, with coefficients
// from a file, and prints the processor time of each. harmonics_by_shtns.py compares them with
// SHTns. Files contain doubles: pairs of them for m = 0, 1, … and n = m, m + 1, …; and
// [latitude][longitude] from the north.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../atmosphere_model.h"
#include "../stream.h"

using namespace atmosphere;

namespace {

template <class Value>
bool read(const char* path, std::vector<Value>* values) {
  std::FILE* file = std::fopen(path, "rb");
  if (!file) return false;
  const bool good =
      std::fread(values->data(), sizeof(Value), values->size(), file) == values->size();
  std::fclose(file);
  return good;
}

template <class Value>
bool write(const char* path, const std::vector<Value>& values) {
  std::FILE* file = std::fopen(path, "wb");
  if (!file) return false;
  const bool good = std::fwrite(values.data(), sizeof(Value), values.size(), file) == values.size();
  return std::fclose(file) == 0 && good;
}

int run(int argc, char** argv) {
  if (argc != 6) return trials::refuse("harmonics", "TRUNCATION REPETITIONS WAVES GRID BACK");
  Settings settings;
  settings.truncation = std::atoi(argv[1]);
  Model model(settings);
  Waves waves(model.result()[geopotential].size()), back(waves.size());
  if (!read(argv[3], &waves)) return trials::refuse("harmonics", "cannot read the coefficients");
  Field grid(at(settings.latitudes() * settings.longitudes()));
  std::vector<double> there_ms, back_ms;
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    there_ms.push_back(1e3 * stream::seconds_of([&] { model.to_grid(waves, &grid); }));
    back_ms.push_back(1e3 * stream::seconds_of([&] { back = model.to_waves(grid); }));
  }
  if (!write(argv[4], grid) || !write(argv[5], back)) {
    return trials::refuse("harmonics", "cannot write what was transformed");
  }
  std::printf(
      "{\"latitudes\": %d, \"longitudes\": %d, \"to_grid_ms\": %.4f, \"to_waves_ms\": %.4f}\n",
      settings.latitudes(), settings.longitudes(), trials::median(there_ms),
      trials::median(back_ms));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
