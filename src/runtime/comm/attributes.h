// Attributes holds objects that other parts of Weft attach to a communicator, like the attributes
// that MPI programs cache on communicators. They are destroyed with the communicator.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace weft {

class Attributes {
 public:
  // Returns the attached object of this type; nullptr if there is none.
  template <class Kept>
  Kept* find() const {
    const std::lock_guard lock(mutex_);
    return look_up<Kept>();
  }
  template <class Kept>
  Kept& find_or_make() {
    const std::lock_guard lock(mutex_);
    if (Kept* const kept = look_up<Kept>()) return *kept;
    auto made = std::make_shared<Kept>();
    Kept& kept = *made;
    all_.emplace_back(&key<Kept>, std::move(made));
    return kept;
  }

 private:
  template <class Kept>
  static inline char key = 0;

  template <class Kept>
  Kept* look_up() const {
    const auto is_of_type = [](const auto& one) { return one.first == &key<Kept>; };
    const auto found = std::find_if(all_.begin(), all_.end(), is_of_type);
    return found == all_.end() ? nullptr : static_cast<Kept*>(found->second.get());
  }

  mutable std::mutex mutex_;  // guards all_
  std::vector<std::pair<const void*, std::shared_ptr<void>>> all_;
};

}  // namespace weft
