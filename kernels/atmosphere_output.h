// Writes fields on the grid to one file, a record of [field][latitude][longitude] each time, either
// blocking or overlapped with the next steps. There are two kinds of output, since the code of
// project jh250041 (Topic 3) collects and writes on rank 0, and parallel codes write on all ranks
// together.
#pragma once
#include <mpi.h>

#include <string>
#include <utility>
#include <vector>

#include "atmosphere_store.h"
#include "trials.h"
#include "weft.h"
#ifdef WEFT_HDF5
#include "atmosphere_hdf5.h"
#endif

namespace output {

#ifdef WEFT_HDF5
using Store = Hdf5Store;
#else
using Store = MpiStore;
#endif

// Returns whether overlapped output would crash. Open MPI 5.0 searches its list of pending file
// accesses (mca_common_ompio_progress) without a lock, so a second thread in MPI, such as Weft's,
// breaks it.
inline bool would_crash() {
#ifdef OPEN_MPI
  return weft_version != nullptr;
#else
  return false;
#endif
}

class FieldFile {
 public:
  // Opens the file. All ranks must call it together. is_open() says whether it succeeded. Output
  // has a communicator of its own, so that it never waits for other collectives.
  FieldFile(std::string path, const Shape& shape)
      : shape_(shape), comm_(own_.comm), store_(std::move(path), shape, comm_) {
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
  ~FieldFile() { MPI_Type_free(&one_row_), MPI_Type_free(&row_of_all_); }

  bool is_open() const { return store_.is_open(); }

  // Empties the file, and sets how the next records are written. All ranks must call it together.
  // gather_on: communicator for gathers.
  void begin(Writing writing, MPI_Comm gather_on) {
    writing_ = writing, gather_on_ = gather_on;
    store_.begin(writing);
  }

  // Writes this rank's rows, in the order [field][row][longitude], as a record. The fields are kept
  // until they are written.
  void write(int record, std::vector<double> fields) {
    finish();
    fields_ = std::move(fields), record_ = record;
    switch (writing_) {
      case Writing::nothing:
        return;
      case Writing::all:
        return store_.write(record, fields_);
      case Writing::all_behind:
        return store_.start(record, fields_);
      case Writing::root:
        MPI_Gatherv(fields_.data(), shape_.rows, one_row_, collected_.data(), rows_.data(),
                    first_rows_.data(), row_of_all_, 0, gather_on_);
        if (is_root()) store_.write_whole(record, collected_);
        return;
      case Writing::root_behind:
        MPI_Igatherv(fields_.data(), shape_.rows, one_row_, collected_.data(), rows_.data(),
                     first_rows_.data(), row_of_all_, 0, gather_on_, &gather_);
    }
  }

  // Must be called between parts of the computation: rank 0 then begins to write what has been
  // gathered.
  void progress() {
    if (gather_ == MPI_REQUEST_NULL) return;
    int gathered = 0;
    MPI_Test(&gather_, &gathered, MPI_STATUS_IGNORE);
    if (gathered && is_root()) store_.start_whole(record_, collected_);
  }

  void finish() {
    if (gather_ != MPI_REQUEST_NULL) {
      MPI_Wait(&gather_, MPI_STATUS_IGNORE);
      if (is_root()) store_.start_whole(record_, collected_);
    }
    store_.finish();
  }

  // Returns all records of the file on rank 0.
  std::vector<char> content() { return store_.content(); }

 private:
  // A communicator for the output. It is the first member, so that it is freed after everything
  // that uses it.
  struct Comm {
    MPI_Comm comm = MPI_COMM_NULL;
    Comm() { MPI_Comm_dup(MPI_COMM_WORLD, &comm); }
    Comm(const Comm&) = delete;
    Comm& operator=(const Comm&) = delete;
    ~Comm() { MPI_Comm_free(&comm); }
  };
  bool is_root() const { return trials::rank_in(comm_) == 0; }
  // Returns a datatype for one latitude of every field, in memory where each field has this many
  // rows.
  MPI_Datatype row_of(int rows) const {
    MPI_Datatype row, made;
    MPI_Type_vector(shape_.fields, shape_.longitudes, rows * shape_.longitudes, MPI_DOUBLE, &row);
    MPI_Type_create_resized(
        row, 0, MPI_Aint{shape_.longitudes} * static_cast<MPI_Aint>(sizeof(double)), &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&row);
    return made;
  }

  const Shape shape_;
  const Comm own_;
  const MPI_Comm comm_;
  Store store_;
  MPI_Comm gather_on_ = MPI_COMM_NULL;
  MPI_Datatype one_row_ = MPI_DATATYPE_NULL, row_of_all_ = MPI_DATATYPE_NULL;
  std::vector<int> rows_, first_rows_;
  Writing writing_ = Writing::nothing;
  int record_ = 0;
  std::vector<double> fields_, collected_;
  MPI_Request gather_ = MPI_REQUEST_NULL;
};

}  // namespace output
