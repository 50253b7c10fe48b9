// CallClassesInUse: the call classes of one communicator, that is, the kinds of its calls about
// which engine `auto` learns. Their number is limited: unused ones are forgotten, so that others
// can be added. All ranks must have the same call classes in the same call. So forgetting depends
// only on the order of the application's calls, which is equal on all ranks, and not on what was
// learnt, which a rank that defers calls knows later. The class is independent of MPI, so that a
// test can run it in all orders of events.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weft {

// CallsMade: how many calls of a call class there were, now and at the last search for unused
// classes.
struct CallsMade {
  std::uint64_t all = 0, before_last_look = 0;
  bool since_last_look() const { return all > before_last_look; }
};

// CallClassesInUse: the call classes of one communicator. The type CallClass must have the members
// `key` and `CallsMade made`.
template <class CallClass>
class CallClassesInUse {
 public:
  struct Limits {
    std::uint32_t most = 64;
    // Number of calls, of all call classes together, between two searches for unused classes.
    std::uint32_t calls_between_looks = 8192;
    std::uint32_t most_forgotten = 16;  // most call classes that one search may forget
  };

  CallClassesInUse() = default;
  explicit CallClassesInUse(const Limits& limits) : limits_(limits) {}

  // Removes the limit on the number of call classes, for communicators that can have only few. Must
  // precede the first call of find_or_make().
  void have_room_for_all() { limits_.most = UINT32_MAX; }

  // Returns the call class with this key, after making it by make() if necessary; nullptr if there
  // are too many call classes. Only the thread that makes the application's calls may call this
  // function and those below.
  template <class Key, class Make>  // make() returns a std::unique_ptr<CallClass>
  CallClass* find_or_make(const Key& key, Make make) {
    for (const auto& call_class : call_classes_)
      if (call_class->key == key) return call_class.get();
    if (call_classes_.size() < limits_.most) return call_classes_.emplace_back(make()).get();
    was_full_ = true;
    return nullptr;
  }

  // Counts a call of the application, whether or not it has a call class. Returns true if some call
  // classes have been forgotten. Every cached pointer to a call class must then be looked up again.
  bool count_call(CallsMade& made) {
    ++made.all;
    return --calls_to_look_ == 0 && look();
  }

  // Frees forgotten call classes for which is_done(call class) returns true, since no earlier call
  // uses them any more.
  template <class IsDone>
  void free_forgotten(IsDone is_done) {
    std::erase_if(forgotten_, [&](const auto& call_class) { return is_done(*call_class); });
  }

  // Returns whether any call class was forgotten so far. All ranks get the same answer.
  bool some_were_forgotten() const { return some_were_forgotten_; }

  // Calls what(call class) for each call class, including forgotten ones that are not freed yet.
  template <class Do>
  void for_each(Do what) const {
    for (const auto& call_class : call_classes_) what(*call_class);
    for (const auto& call_class : forgotten_) what(*call_class);
  }

 private:
  // Searches for call classes that were not called since the last search. If some new class did not
  // fit, it forgets the least used of them. Returns whether it forgot any.
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
  // True if some call class did not fit since the last time that any was forgotten. A search that
  // forgets none leaves it true: a rank that caches plans for longer than others would not ask for
  // the class again.
  bool was_full_ = false;
  bool some_were_forgotten_ = false;
};

}  // namespace weft
