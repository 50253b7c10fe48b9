// Keeps the list of shared-memory segments that this process maps. Adding a segment drops the
// entries of segments that were released.
#include "shm/known_segments.h"

namespace weft {

void KnownSegments::add(const std::shared_ptr<Segment>& segment) {
  const std::lock_guard lock(mutex_);
  std::erase_if(by_address_, [](const auto& known) { return known.second.expired(); });
  std::erase_if(by_token_, [](const auto& known) { return known.second.expired(); });
  by_address_[segment->data()] = segment;
  by_token_[segment->name().token] = segment;
}

std::optional<KnownSegments::Place> KnownSegments::place_of(const std::byte* address) {
  const std::lock_guard lock(mutex_);
  auto next = by_address_.upper_bound(address);
  if (next == by_address_.begin()) return std::nullopt;
  const auto segment = (--next)->second.lock();
  if (!segment || address >= segment->data() + segment->bytes()) return std::nullopt;
  return Place{segment->name().token, address - segment->data()};
}

std::shared_ptr<Segment> KnownSegments::find(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  const auto found = by_token_.find(token);
  return found == by_token_.end() ? nullptr : found->second.lock();
}

// The object is never destroyed, since threads may use it while the process exits.
KnownSegments& known_segments() {
  static auto* instance = new KnownSegments;
  return *instance;
}

}  // namespace weft
