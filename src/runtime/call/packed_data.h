// The application's data as packed bytes, if their type has gaps: for a thread that must not call
// the MPI library, which alone can read such types. The caller packs at the start what the
// collective reads, and unpacks at the end what it has written. Other ranks see no difference,
// since a signature has equally many bytes in any case.
#pragma once

#include "base/buffer_pool.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"
#include "transport/mpi/packing.h"

namespace weft {

class PackedData {
 public:
  // Returns whether this rank's part of the call must be packed.
  static bool is_needed(const Shape& shape);
  // Returns the shape of the same call on packed bytes.
  static Shape shape_on_bytes(Shape shape);

  // shape: of the original call. comm: any communicator whose errors are returned.
  PackedData(const Call& call, const Shape& shape, MPI_Comm comm);

  bool there() const { return send_.bytes.there() && recv_.bytes.there(); }
  // Returns the same call on packed bytes.
  Call on_bytes(Call call) const;

  // pack() must precede the collective, unpack() follows it. Both return an MPI error code.
  int pack();
  int unpack();

 private:
  // A buffer of the call.
  struct Side {
    Side(const Call& call, const Shape& shape, Buffer buffer);

    const Operand operand;      // all of its elements; none: it stays as it is
    const std::int64_t length;  // of these, in bytes
    TempBuffer bytes;
    const Elements elements;
    const bool is_read, is_written;
  };

  const MPI_Comm comm_;
  Side send_, recv_;
};

}  // namespace weft
