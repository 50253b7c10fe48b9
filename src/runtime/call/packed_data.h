// PackedData: the application's data as packed bytes if their datatype has gaps. Only the MPI
// library can read such types, which some threads must not call. The caller packs the input at the
// start of the collective and unpacks the output at its end. Other ranks see no difference, since a
// type signature has the same number of bytes in either form.
#pragma once

#include <vector>

#include "base/buffer_pool.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"
#include "transport/mpi/packing.h"

namespace weft {

class PackedData {
 public:
  // Returns whether this rank's part of the call must be packed.
  static bool is_needed(const Shape& shape);
  // Returns the shape of this call on packed bytes.
  static Shape shape_on_bytes(Shape shape);

  // shape: the shape of the original call. comm: any communicator with error handler
  // MPI_ERRORS_RETURN.
  PackedData(const Call& call, const Shape& shape, MPI_Comm comm);

  bool there() const { return send_.bytes.there() && recv_.bytes.there(); }
  // Returns the call with its buffers replaced by packed bytes.
  Call on_bytes(Call call) const;

  // pack() must precede the collective, and unpack() must follow it. They return an MPI error code.
  int pack();
  int unpack();

 private:
  // Contiguous elements in a buffer of the call.
  struct Run {
    Elements elements;
    std::int64_t length;  // in bytes
  };

  // A buffer of the call and its packed bytes.
  struct Side {
    Side(const Call& call, const Shape& shape, Buffer buffer);

    const std::vector<Run> runs;  // all elements of the buffer; empty if it is not packed
    const std::int64_t length;    // packed size of the runs in bytes
    TempBuffer bytes;
    const bool is_read, is_written;
  };

  static std::vector<Run> runs_to_pack(const Call& call, const Shape& shape, Buffer buffer);

  const MPI_Comm comm_;
  Side send_, recv_;
};

}  // namespace weft
