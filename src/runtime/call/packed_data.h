// The application's data where its type has holes, as packed bytes: for a thread that must not
// call the MPI library, which alone can read such types. The caller packs at the start what the
// collective reads, and unpacks at its end what it has written. To the other ranks nothing
// changes, since a signature has as many bytes either way.
#pragma once

#include "base/buffer_pool.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"
#include "transport/mpi/packing.h"

namespace weft {

class PackedData {
 public:
  // Whether this rank's part of the call is to be packed.
  static bool is_needed(const Shape& shape);
  // The same call's, on packed bytes.
  static Shape shape_on_bytes(Shape shape);

  // shape: of the call as it is. comm: any whose errors are returned.
  PackedData(const Call& call, const Shape& shape, MPI_Comm comm);

  bool there() const { return send_.bytes.there() && recv_.bytes.there(); }
  // The same call on packed bytes.
  Call on_bytes(Call call) const;

  // What the collective reads, before it begins; what it has written. MPI error code.
  int pack();
  int unpack();

 private:
  // One of the call's buffers.
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
