#include "gpu/untold.h"

namespace weft::gpu {

void Untold::add(const std::string& why) {
  const std::lock_guard lock(mutex_);
  all_.insert(why);
}

void Untold::remove(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (const auto found = all_.find(why); found != all_.end()) all_.erase(found);
}

std::string Untold::sentence() {
  const std::lock_guard lock(mutex_);
  if (all_.empty()) return "";
  const bool one = all_.size() == 1;
  return (one ? "a collective" : std::to_string(all_.size()) + " collectives") +
         std::string(" in streams failed, and no call has said so: ") + *all_.begin();
}

}  // namespace weft::gpu
