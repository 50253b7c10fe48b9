// The application's data where its type has holes, as packed bytes: for a thread that must not
// call the MPI library, which alone can read such types. The caller packs at the start what the
// collective reads, and unpacks at its end what it has written. To the other ranks nothing
// changes, since a signature has as many bytes either way.
#pragma once

#include <memory>

#include "base/buffer_pool.h"
#include "runtime/device_memory.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"
#include "transport/mpi/packing.h"

namespace weft {

class Communicator;

class PackedData {
 public:
  // Whether this rank's part of the call is to be packed. Only collectives in which each rank has
  // one block, or as long a one for each other rank.
  static bool is_needed(const Shape& shape);
  // That of the call on packed bytes.
  static Shape shape_on_bytes(const Call& call, const Shape& shape,
                              const Communicator& communicator);

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

    const std::int64_t length;  // in bytes; 0: it stays as it is
    TempBuffer bytes;
    Elements elements;
    bool is_read, is_written;
  };

  const MPI_Comm comm_;
  Side send_, recv_;
};

// All that a collective works on in place of the application's buffers: copies of what lies in a
// device's memory, and packed bytes of these or of the application's own.
class CallCopies {
 public:
  // nullptr: it works on the application's buffers as they are. shape: of its schedule.
  static std::unique_ptr<CallCopies> of(const Call& call, const Shape& shape,
                                        const Communicator& communicator);

  bool there() const { return (!staged_ || staged_->there()) && (!packed_ || packed_->there()); }
  // The same call on the copies.
  Call on_copies(Call call) const;

  void bring_in();  // before it begins, each time
  int take_out();   // after its end; MPI error code of both

 private:
  std::unique_ptr<StagedBuffers> staged_;
  std::unique_ptr<PackedData> packed_;
  int code_ = MPI_SUCCESS;  // of bring_in()
};

}  // namespace weft
