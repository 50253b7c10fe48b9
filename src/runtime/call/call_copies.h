// CallCopies: the buffers that a collective uses in place of the application's. They are copies of
// data in device memory, or packed bytes of non-contiguous data.
#pragma once

#include <memory>

#include "runtime/call/device_memory.h"
#include "runtime/call/packed_data.h"

namespace weft {

class Communicator;

class CallCopies {
 public:
  // Returns the copies that the collective needs; nullptr if it uses the application's buffers
  // directly. shape: the shape of the call's schedule.
  static std::unique_ptr<CallCopies> of(const Call& call, const Shape& shape,
                                        const Communicator& communicator);

  bool there() const { return (!staged_ || staged_->there()) && (!packed_ || packed_->there()); }
  // Returns the call with its buffers replaced by the copies.
  Call on_copies(Call call) const;

  void bring_in();  // is called before each start of the collective
  int take_out();   // is called after the collective; returns the MPI error code of either function

 private:
  std::unique_ptr<StagedBuffers> staged_;
  std::unique_ptr<PackedData> packed_;
  int code_ = MPI_SUCCESS;  // MPI error code of bring_in()
};

}  // namespace weft
