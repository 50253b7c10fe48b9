// EqualsShared stores equal immutable objects only once while they are in use. This saves memory,
// since many communicators of a program have the same group of ranks.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace weft {

template <class T>
class EqualsShared {
 public:
  // Returns the stored object that equals `made`; if there is none, stores and returns `made`.
  // Thread-safe.
  std::shared_ptr<const T> get(T made) {
    const std::lock_guard lock(mutex_);
    std::erase_if(in_use_, [](const auto& one) { return one.expired(); });
    for (const auto& one : in_use_)
      if (auto there = one.lock(); there && *there == made) return there;
    auto added = std::make_shared<const T>(std::move(made));
    in_use_.push_back(added);
    return added;
  }

 private:
  std::mutex mutex_;  // guards in_use_
  std::vector<std::weak_ptr<const T>> in_use_;
};

}  // namespace weft
