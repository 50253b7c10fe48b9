// PackedData holds the application's data as packed bytes, for datatypes with gaps. Only the MPI
// library can read such data, and threads that must not call MPI cannot move them. The calling
// thread therefore packs the input at the start of the collective, and unpacks the output at the
// end. Other ranks are not affected, because a type signature has the same number of bytes in both
// forms.
#pragma once

#include <vector>

#include "base/buffer_pool.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"
#include "transport/mpi/packing.h"

namespace weft {

class PackedData {
 public:
  // Returns whether this rank's data of the call must be packed.
  static bool is_needed(const Shape& shape);
  // Returns the shape that the call has on packed bytes.
  static Shape shape_on_bytes(Shape shape);

  // call, shape: the original call. comm: any communicator with error handler MPI_ERRORS_RETURN.
  PackedData(const Call& call, const Shape& shape, MPI_Comm comm);

  bool there() const { return send_.bytes.there() && recv_.bytes.there(); }
  // Returns the call with its buffers replaced by packed bytes.
  Call on_bytes(Call call) const;

  // pack() must be called before the collective, and unpack() after it. Both return an MPI error
  // code.
  int pack();
  int unpack();

 private:
  // A run of contiguous elements in a buffer of the call.
  struct Run {
    Elements elements;
    std::int64_t length;  // in bytes
  };

  // A buffer of the call, and its packed bytes.
  struct Side {
    Side(const Call& call, const Shape& shape, Buffer buffer);

    const std::vector<Run> runs;  // all elements of the buffer; empty if it is not packed
    const std::int64_t length;    // packed size of all runs in bytes
    TempBuffer bytes;
    const bool is_read, is_written;
  };

  static std::vector<Run> runs_to_pack(const Call& call, const Shape& shape, Buffer buffer);

  const MPI_Comm comm_;
  Side send_, recv_;
};

}  // namespace weft
