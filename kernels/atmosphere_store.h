// Writes the fields of atmosphere to a file by MPI's own calls: records one after the other, each
// [field][latitude][longitude]. atmosphere_hdf5.h has the same functions for a file of HDF5;
// atmosphere_output.h, which decides when something is written, uses either.
#pragma once
#include <mpi.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "trials.h"

namespace output {

enum class Writing {
  nothing,      // the fields are computed but not written
  all,          // all ranks write together, blocking
  all_behind,   // all ranks write together by a non-blocking call that ends before the next record
  root,         // MPI_Gatherv, then rank 0 writes
  root_behind,  // MPI_Igatherv, then rank 0 writes while the next steps are computed
};

struct Shape {
  int fields, latitudes, longitudes, first_row, rows;  // first_row and rows: this rank's rows
  int records;                                         // number of records in all
  std::size_t mine() const { return count(rows); }
  std::size_t whole() const { return count(latitudes); }

 private:
  std::size_t count(int rows_of_it) const {
    return static_cast<std::size_t>(fields) * static_cast<std::size_t>(rows_of_it) *
           static_cast<std::size_t>(longitudes);
  }
};

// Ends the job on the rank that has failed to write, since after a failed collective write Open
// MPI's next one on that file waits forever.
[[noreturn]] inline void give_up(const std::string& path, const std::string& reason) {
  trials::give_up("atmosphere", "cannot write " + path + " (" + reason + "): is the disk full?");
}

class MpiStore {
 public:
  static constexpr bool all_write_behind = true;

  // Opens the file. All ranks must call it together. is_open() says whether it succeeded.
  MpiStore(std::string path, const Shape& shape, MPI_Comm comm)
      : path_(std::move(path)), shape_(shape), comm_(comm) {
    constexpr int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    int failed = MPI_File_open(comm_, path_.c_str(), mode, MPI_INFO_NULL, &together_);
    if (!failed && is_root()) {
      failed = MPI_File_open(MPI_COMM_SELF, path_.c_str(), mode, MPI_INFO_NULL, &own_);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_BOR, comm_);
    is_open_ = !failed;
    if (failed) return;
    const int sizes[3] = {shape_.fields, shape_.latitudes, shape_.longitudes};
    const int parts[3] = {shape_.fields, shape_.rows, shape_.longitudes};
    const int starts[3] = {0, shape_.first_row, 0};
    MPI_Datatype view;
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &view);
    MPI_Type_commit(&view);
    check(MPI_File_set_view(together_, 0, MPI_DOUBLE, view, "native", MPI_INFO_NULL));
    MPI_Type_free(&view);
  }
  MpiStore(const MpiStore&) = delete;
  MpiStore& operator=(const MpiStore&) = delete;
  ~MpiStore() {
    if (together_ != MPI_FILE_NULL) MPI_File_close(&together_);
    if (own_ != MPI_FILE_NULL) MPI_File_close(&own_);
  }
  bool is_open() const { return is_open_; }

  // Empties the file. All ranks must call it together.
  void begin(Writing) { check(MPI_File_set_size(together_, 0)); }

  // write() writes this rank's rows. start() begins to write them, and finish() waits for the end.
  void write(int record, const std::vector<double>& fields) {
    MPI_Status status;
    check(MPI_File_write_at_all(together_, place(record), fields.data(), mine(), MPI_DOUBLE,
                                &status));
  }
  void start(int record, const std::vector<double>& fields) {
    check(MPI_File_iwrite_at_all(together_, place(record), fields.data(), mine(), MPI_DOUBLE,
                                 &request_));
  }
  // write_whole() writes all rows, on rank 0. start_whole() begins to write them, and finish()
  // waits for the end.
  void write_whole(int record, const std::vector<double>& fields) {
    MPI_Status status;
    check(MPI_File_write_at(own_, offset(record), fields.data(), whole(), MPI_DOUBLE, &status));
  }
  void start_whole(int record, const std::vector<double>& fields) {
    check(MPI_File_iwrite_at(own_, offset(record), fields.data(), whole(), MPI_DOUBLE, &request_));
  }
  void finish() { check(MPI_Wait(&request_, MPI_STATUS_IGNORE)); }

  // Returns on rank 0 what the file contains. It reads the file without MPI, so that an error in
  // the file's view cannot hide itself.
  std::vector<char> content() {
    check(MPI_File_sync(together_));
    if (is_root()) check(MPI_File_sync(own_));
    MPI_Barrier(comm_);
    if (!is_root()) return {};
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  bool is_root() const { return trials::rank_in(comm_) == 0; }
  int mine() const { return static_cast<int>(shape_.mine()); }
  int whole() const { return static_cast<int>(shape_.whole()); }
  // Returns where a record begins in this rank's view of the file, in doubles.
  MPI_Offset place(int record) const { return MPI_Offset{record} * mine(); }
  MPI_Offset offset(int record) const {  // returns where a record begins in the file, in bytes
    return MPI_Offset{record} * whole() * static_cast<MPI_Offset>(sizeof(double));
  }
  void check(int code) const {
    if (code == MPI_SUCCESS) return;
    char said[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, said, &length);
    std::string reason(said, static_cast<std::size_t>(length));
    if (const auto colon = reason.rfind(": "); colon != std::string::npos) {
      reason.erase(0, colon + 2);  // the last line of MPICH's message says most
    }
    give_up(path_, reason);
  }

  const std::string path_;
  const Shape shape_;
  const MPI_Comm comm_;
  // The file as opened by all ranks, and by rank 0 alone.
  MPI_File together_ = MPI_FILE_NULL, own_ = MPI_FILE_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool is_open_ = false;
};

}  // namespace output
