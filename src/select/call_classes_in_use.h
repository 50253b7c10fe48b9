// CallClassesInUse: the call classes of one communicator. Their number is bounded: unused ones make
// room for others. All ranks must have the same call classes in the same call, so forgetting
// depends only on the order of the application's calls; a rank that defers calls learns results
// later than others. The class is independent of MPI, so that a test can run it in all orders of
// events.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weft {

// Counts the calls of a call class.
struct CallsMade {
  std::uint64_t all = 0, before_last_look = 0;
  bool since_last_look() const { return all > before_last_look; }
};

// `CallClass` must have the members `key` and `CallsMade made`.
template <class CallClass>
class CallClassesInUse {
 public:
  struct Limits {
    std::uint32_t most = 64;
    std::uint32_t calls_between_looks = 8192;  // calls of all call classes together
    std::uint32_t most_forgotten = 16;         // most call classes forgotten at one look
  };

  CallClassesInUse() = default;
  explicit CallClassesInUse(const Limits& limits) : limits_(limits) {}

  // Disables forgetting, for communicators that can have only few call classes. Must precede the
  // first call class.
  void have_room_for_all() { limits_.most = UINT32_MAX; }

  // Returns the call class of the application's current call, or nullptr if there is no room. This
  // and the following functions may only be called by the thread that makes the calls.
  template <class Key, class Make>  // `make` returns a std::unique_ptr<CallClass>
  CallClass* find_or_make(const Key& key, Make make) {
    for (const auto& call_class : call_classes_)
      if (call_class->key == key) return call_class.get();
    if (call_classes_.size() < limits_.most) return call_classes_.emplace_back(make()).get();
    was_full_ = true;
    return nullptr;
  }

  // Counts a call of this call class, or of one for which there is no room. Returns true if some
  // call classes have been forgotten, so that every cached reference to a call class must be looked
  // up again.
  bool count_call(CallsMade& made) {
    ++made.all;
    return --calls_to_look_ == 0 && look();
  }

  // Frees forgotten call classes once `is_done(call class)` says that no earlier call uses them.
  template <class IsDone>
  void free_forgotten(IsDone is_done) {
    std::erase_if(forgotten_, [&](const auto& call_class) { return is_done(*call_class); });
  }

  // Returns whether any call class was forgotten; equal on all ranks.
  bool some_were_forgotten() const { return some_were_forgotten_; }

  template <class Do>
  void for_each(Do what) const {  // includes forgotten call classes
    for (const auto& call_class : call_classes_) what(*call_class);
    for (const auto& call_class : forgotten_) what(*call_class);
  }

 private:
  // Forgets the least used of the call classes that were not called since the last look. Returns
  // true if it forgot any.
  bool look() {
    calls_to_look_ = limits_.calls_between_looks;
    std::vector<const CallClass*> unused;
    for (const auto& call_class : call_classes_) {
      if (!call_class->made.since_last_look()) unused.push_back(call_class.get());
      call_class->made.before_last_look = call_class->made.all;
    }
    if (!was_full_ || unused.empty()) return false;
    was_full_ = false;
    std::stable_sort(unused.begin(), unused.end(),
                     [](const CallClass* one, const CallClass* other) {
                       return one->made.all < other->made.all;
                     });
    unused.resize(std::min<std::size_t>(unused.size(), limits_.most_forgotten));
    for (const CallClass* call_class : unused) forget(call_class);
    return some_were_forgotten_ = true;
  }

  void forget(const CallClass* call_class) {
    const auto at = std::find_if(call_classes_.begin(), call_classes_.end(),
                                 [&](const auto& one) { return one.get() == call_class; });
    forgotten_.push_back(std::move(*at));
    call_classes_.erase(at);
  }

  Limits limits_{};
  std::vector<std::unique_ptr<CallClass>> call_classes_, forgotten_;
  std::uint32_t calls_to_look_ = limits_.calls_between_looks;
  // Set when a call class did not fit since the last forgetting. A look alone does not clear it:
  // some ranks cache plans for longer than others, and would not ask again.
  bool was_full_ = false;
  bool some_were_forgotten_ = false;
};

}  // namespace weft
