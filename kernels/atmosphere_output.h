// atmosphere_output.h: fields on the grid go to one file, a record of [field][latitude][longitude]
// each, blocking or behind the next steps. Why apart: each way of writing is the same few calls for
// any model whose rows lie on the ranks. Why two kinds: the code of the study lets rank 0 collect
// and write (jh250041, Topic 3); parallel codes let all ranks write together.
#pragma once
#include <mpi.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "trials.h"
#include "weft.h"

namespace output {

enum class Writing {
  nothing,      // fields are computed and left there
  all,          // MPI_File_write_at_all
  all_behind,   // MPI_File_iwrite_at_all, which ends before the next record
  root,         // MPI_Gatherv, then rank 0 writes
  root_behind,  // MPI_Igatherv, then rank 0's MPI_File_iwrite_at
};

// Open MPI 5.0 looks through its list of accesses under way (mca_common_ompio_progress) without a
// lock; Weft's threads look, too.
inline bool would_crash() {
#ifdef OPEN_MPI
  return weft_version != nullptr;
#else
  return false;
#endif
}

struct Shape {
  int fields, latitudes, longitudes, first_row, rows;  // the last two: of this rank
  std::size_t mine() const { return count(rows); }
  std::size_t whole() const { return count(latitudes); }

 private:
  std::size_t count(int rows_of_it) const {
    return static_cast<std::size_t>(fields) * static_cast<std::size_t>(rows_of_it) *
           static_cast<std::size_t>(longitudes);
  }
};

class FieldFile {
 public:
  // Collective; whether that went well, is_open() says.
  FieldFile(std::string path, const Shape& shape) : path_(std::move(path)), shape_(shape) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
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
    one_row_ = row_of(shape_.rows), row_of_all_ = row_of(shape_.latitudes);
    const int place[2] = {shape_.rows, shape_.first_row};
    std::vector<int> all(2 * static_cast<std::size_t>(trials::size_of(comm_)));
    MPI_Allgather(place, 2, MPI_INT, all.data(), 2, MPI_INT, comm_);
    for (std::size_t i = 0; i < all.size(); i += 2) {
      rows_.push_back(all[i]), first_rows_.push_back(all[i + 1]);
    }
    if (is_root()) collected_.resize(shape_.whole());
  }
  FieldFile(const FieldFile&) = delete;
  FieldFile& operator=(const FieldFile&) = delete;
  ~FieldFile() {
    if (together_ != MPI_FILE_NULL) MPI_File_close(&together_);
    if (own_ != MPI_FILE_NULL) MPI_File_close(&own_);
    if (one_row_ != MPI_DATATYPE_NULL) MPI_Type_free(&one_row_);
    if (row_of_all_ != MPI_DATATYPE_NULL) MPI_Type_free(&row_of_all_);
    MPI_Comm_free(&comm_);
  }

  bool is_open() const { return is_open_; }

  // Collective: the file is empty, and what comes is written like this.
  void begin(Writing writing, MPI_Comm gather_on) {
    writing_ = writing, gather_on_ = gather_on;
    check(MPI_File_set_size(together_, 0));
  }

  // This rank's rows, [field][row][longitude]; they are kept until they are written.
  void write(int record, std::vector<double> fields) {
    finish();
    fields_ = std::move(fields), record_ = record;
    const int count = static_cast<int>(shape_.mine());
    const MPI_Offset place = MPI_Offset{record} * count;  // in the view: this rank's doubles only
    MPI_Status status;
    switch (writing_) {
      case Writing::nothing:
        return;
      case Writing::all:
        check(MPI_File_write_at_all(together_, place, fields_.data(), count, MPI_DOUBLE, &status));
        return;
      case Writing::all_behind:
        check(MPI_File_iwrite_at_all(together_, place, fields_.data(), count, MPI_DOUBLE, &file_));
        return;
      case Writing::root:
        MPI_Gatherv(fields_.data(), shape_.rows, one_row_, collected_.data(), rows_.data(),
                    first_rows_.data(), row_of_all_, 0, gather_on_);
        if (is_root()) {
          check(MPI_File_write_at(own_, offset(), collected_.data(), whole(), MPI_DOUBLE, &status));
        }
        return;
      case Writing::root_behind:
        MPI_Igatherv(fields_.data(), shape_.rows, one_row_, collected_.data(), rows_.data(),
                     first_rows_.data(), row_of_all_, 0, gather_on_, &gather_);
    }
  }

  // Between parts of the computation: rank 0 writes what has been gathered meanwhile.
  void go_on() {
    if (gather_ == MPI_REQUEST_NULL) return;
    int gathered = 0;
    MPI_Test(&gather_, &gathered, MPI_STATUS_IGNORE);
    if (gathered) write_gathered();
  }

  void finish() {
    if (gather_ != MPI_REQUEST_NULL) {
      MPI_Wait(&gather_, MPI_STATUS_IGNORE);
      write_gathered();
    }
    check(MPI_Wait(&file_, MPI_STATUS_IGNORE));
  }

  // Rank 0: all that is in the file. Read without MPI: no fault of a view can hide itself.
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
  int whole() const { return static_cast<int>(shape_.whole()); }
  MPI_Offset offset() const {  // of a record, in bytes
    return MPI_Offset{record_} * whole() * static_cast<MPI_Offset>(sizeof(double));
  }
  void write_gathered() {
    if (!is_root()) return;
    check(MPI_File_iwrite_at(own_, offset(), collected_.data(), whole(), MPI_DOUBLE, &file_));
  }
  // A failure ends the job where it is seen: after a failed collective write Open MPI's next one on
  // the file waits for ever.
  void check(int code) const {
    if (code == MPI_SUCCESS) return;
    char said[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, said, &length);
    std::string reason(said, static_cast<std::size_t>(length));
    if (const auto colon = reason.rfind(": "); colon != std::string::npos) {
      reason.erase(0, colon + 2);  // MPICH's last line tells most
    }
    give_up(reason);
  }
  void give_up(const std::string& reason) const {
    std::fprintf(stderr, "atmosphere: cannot write %s (%s): is the disk full?\n", path_.c_str(),
                 reason.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  // One latitude of every field, where each field has so many rows.
  MPI_Datatype row_of(int rows) const {
    MPI_Datatype row, made;
    MPI_Type_vector(shape_.fields, shape_.longitudes, rows * shape_.longitudes, MPI_DOUBLE, &row);
    MPI_Type_create_resized(
        row, 0, MPI_Aint{shape_.longitudes} * static_cast<MPI_Aint>(sizeof(double)), &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&row);
    return made;
  }

  const std::string path_;
  const Shape shape_;
  MPI_Comm comm_ = MPI_COMM_NULL, gather_on_ = MPI_COMM_NULL;
  MPI_File together_ = MPI_FILE_NULL, own_ = MPI_FILE_NULL;  // of all ranks, of rank 0
  MPI_Datatype one_row_ = MPI_DATATYPE_NULL, row_of_all_ = MPI_DATATYPE_NULL;
  std::vector<int> rows_, first_rows_;
  Writing writing_ = Writing::nothing;
  int record_ = 0;
  std::vector<double> fields_, collected_;
  MPI_Request gather_ = MPI_REQUEST_NULL, file_ = MPI_REQUEST_NULL;
  bool is_open_ = false;
};

}  // namespace output
