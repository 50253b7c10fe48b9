// Copies a call's data from GPU memory, and then packs them. The copy comes first, since the MPI
// library may be unable to pack data in GPU memory.
#include "runtime/call/call_copies.h"

#include "runtime/call/shape.h"
#include "runtime/comm/communicators.h"

namespace weft {

std::unique_ptr<CallCopies> CallCopies::of(const Call& call, const Shape& shape,
                                           const Communicator& communicator) {
  if (!shape.packed && !devices_possible()) return nullptr;
  auto made = std::make_unique<CallCopies>();
  if (shape.packed) {
    const Shape given = shape_of(call, communicator);
    if (devices_possible()) made->staged_ = StagedBuffers::of(call, given);
    made->packed_ =
        std::make_unique<PackedData>(made->on_copies(call), given, communicator.route.comm);
  } else {
    made->staged_ = StagedBuffers::of(call, shape);
  }
  return made->staged_ || made->packed_ ? std::move(made) : nullptr;
}

Call CallCopies::on_copies(Call call) const {
  if (staged_) call = staged_->staged(call);
  return packed_ ? packed_->on_bytes(call) : call;
}

void CallCopies::bring_in() {
  code_ = !staged_ || staged_->bring_in() ? MPI_SUCCESS : MPI_ERR_OTHER;
  if (packed_ && code_ == MPI_SUCCESS) code_ = packed_->pack();
}

int CallCopies::take_out() {
  if (code_ != MPI_SUCCESS) return code_;
  const int code = packed_ ? packed_->unpack() : MPI_SUCCESS;
  return code == MPI_SUCCESS && staged_ && !staged_->take_out() ? MPI_ERR_OTHER : code;
}

}  // namespace weft
