// CallsByLength: the calls of one kind on a communicator of one node whose size no rank knows
// (gatherv, scatterv, alltoallv, alltoallw). Short and long ones form classes of their own, about
// which engine auto learns separately. To which of them a call belongs follows from earlier calls
// (select/agreed_length.h), equally on all ranks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/adaptive/call_classes.h"
#include "select/agreed_length.h"
#include "shm/node_comparisons.h"

namespace weft {

class CallsByLength {
 public:
  using Length = AgreedLength<NodeComparisons<1>>;
  using Classes = std::array<CallClass*, Length::kClasses>;

  // memory: where the ranks tell each other lengths. classes: the call class of each length.
  CallsByLength(SharedWords memory, int ranks, const Classes& classes)
      : length_(NodeComparisons<1>(memory, ranks)), classes_(classes) {}

  // Returns the call class of the current call, which count_call() has counted.
  CallClass& in_force() const { return *classes_[static_cast<std::size_t>(length_.in_force())]; }
  // Returns whether count_call() must be told the length of the next call.
  bool needs_length() const { return length_.needs_length(); }
  // Counts the application's current call. own: the length class of this rank's part of it, which
  // does not matter unless needs_length(). If another call class is in force from now on, the one
  // before drops the times of its unfinished trials and checks.
  void count_call(int own) {
    CallClass& before = in_force();
    if (length_.next(own)) [[unlikely]]
      before.learner.interrupt(before.among.turn);
  }

 private:
  Length length_;
  const Classes classes_;
};

// All such calls of a communicator, as an attribute of it.
class AllCallsByLength {
 public:
  // Returns the calls of this kind and form, after making them by make() if they are new. `make()`
  // returns a std::unique_ptr<CallsByLength>; nullptr if there is no memory for them.
  template <class Make>
  CallsByLength* find_or_make(Kind kind, bool blocking, Make make) {
    for (const Of& one : all_)
      if (one.kind == kind && one.blocking == blocking) return one.calls.get();
    all_.push_back({kind, blocking, make()});
    return all_.back().calls.get();
  }

 private:
  struct Of {
    Kind kind;
    bool blocking;
    std::unique_ptr<CallsByLength> calls;
  };
  std::vector<Of> all_;
};

}  // namespace weft
