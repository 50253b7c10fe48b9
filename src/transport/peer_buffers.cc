// Implements PeerBuffers: accesses buffers in other processes' private memory. Attaching these may
// fail on some ranks only. So each rank tells the others whether it has access to all buffers,
// before any buffer is used.
#include "transport/peer_buffers.h"

#include <utility>

namespace weft {

std::byte* PeerBuffers::attach(const ShownBuffer& shown) {
  found_.attached = true;
  if (processes_->is_own(shown)) return reinterpret_cast<std::byte*>(shown.offset);
  auto attachment = processes_->attach(shown);
  if (!attachment) {
    found_.reached = false;
    return nullptr;
  }
  std::byte* const at = attachment->at(static_cast<std::uintptr_t>(shown.offset));
  attachments_.push_back(std::move(attachment));
  return at;
}

std::optional<bool> PeerBuffers::ask_all(const NodeBufferUse& turn) {
  if (!answered_) turn.answer(found_.reached);
  answered_ = true;
  for (int node_rank = 0; node_rank < static_cast<int>(at_.size()); ++node_rank) {
    const auto reached = turn.answer_of(node_rank);
    if (!reached || !*reached) return reached;
  }
  agreed();
  return true;
}

}  // namespace weft
