// Call classes: the classes of calls about which engine `auto` learns. A call class is what all
// ranks can tell apart: the collectives of one kind and about one size on one communicator. The
// place in the program is not part of it, since ranks may make one collective from different
// places. Ranks agree by comparisons, which begin with a call of the call class and take effect
// some calls later: allreduces of Weft's own or, on one node, in its memory
// (docs/inside/learning.md).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "library/generated/call_ids.h"
#include "runtime/comm/communicators.h"
#include "runtime/job/records.h"
#include "runtime/job/runtime.h"
#include "select/call_classes_in_use.h"
#include "select/learner.h"
#include "select/variants.h"
#include "shm/node_comparisons.h"

namespace weft {

class Comparison;
class CallClasses;

using ComparisonsInMemory = NodeComparisons<std::tuple_size_v<Learner::Words>>;

struct CallClass {
  CallClass(CallClasses& among, CallId id, const CallClassKey& key, std::vector<Choice> variants,
            const Learner::Settings& settings, TrialBudget& budget);
  ~CallClass();
  CallClass(const CallClass&) = delete;
  CallClass& operator=(const CallClass&) = delete;

  CallClasses& among;  // of the same communicator
  const CallId id;     // of its first call
  const CallClassKey key;
  const std::vector<Choice> variants;
  Learner learner;
  std::shared_ptr<Comparison> comparison;        // under way, by messages; else nullptr
  std::optional<ComparisonsInMemory> in_memory;  // none: ranks compare by messages
  CallsMade made;                                // by the application
  std::atomic<int> in_flight{0};                 // started here, not completed by the application
  std::vector<std::uintptr_t> callers;  // the first few, while the call class learns; for reports

  // Is called when the application makes a call of the call class.
  void look_at_caller();

 private:
  int looks_at_callers_ = 0;
};

// The call classes of a communicator. Memory is bounded: those that are no longer called make room
// for others.
class CallClasses {
 public:
  // Returns the call class of the call that the application makes now.
  template <class Make>  // makes a std::unique_ptr<Call class>
  CallClass* find_or_make(const CallClassKey& key, Make make) {
    CallClass* call_class = in_use_.find_or_make(key, make);
    return call_class ? call_class : &without_room(key.blocking);
  }
  // Counts a call of the call class, in the order of the application's calls, whether they are
  // deferred or not, since that order is the same on all ranks.
  void count_call(Runtime& runtime, const Communicator& communicator, CallClass& call_class) {
    if (in_use_.count_call(call_class.made)) [[unlikely]]
      forgotten(runtime, communicator);
  }

  // Returns the memory in which the ranks of a communicator on one node compare for this call
  // class, which is then never forgotten; nothing, on all ranks alike, if `room` is used up. Must
  // be called in the order of the calls.
  std::optional<SharedWords> memory_for(const CallClassKey& key, SegmentRoom& room);

  // Returns false for programs that always come with new call classes: they would try most of the
  // time.
  bool has_free_slots() const { return !in_use_.some_were_forgotten(); }

  TrialTurn turn;

  std::vector<CallClassRecord> records(const Communicator& communicator) const;

  // Drops comparisons under way, which would keep the communicator alive.
  void forget_comparisons();

 private:
  CallClass& without_room(bool blocking);
  void forgotten(Runtime& runtime, const Communicator& communicator);

  CallClassesInUse<CallClass> in_use_;
  std::shared_ptr<std::byte> memory_;  // for comparisons there; nullptr: none was needed
  bool has_no_memory_ = false;         // there was no room for it
  // The call classes for all calls without room. They go by the rule, and nothing is learnt about
  // them.
  std::array<std::unique_ptr<CallClass>, 2> without_room_;
};

// The time at which the application made a call, and the number of the call class's calls in flight
// then.
struct Made {
  std::int64_t at_ns = 0;  // only where the learner wants to know
  int in_flight = 0;
};

// Returns the variant of the call class's next call; nothing if it is not known yet, which does not
// happen if ranks compare in memory. May begin a comparison.
std::optional<int> next_variant(Runtime& runtime, CallId id, Communicator& communicator,
                                CallClass& call_class, const Made& made);
// Counts the call that the application makes now, and returns its variant if the learner has
// nothing to note. Otherwise next_variant_now() must be called.
inline std::optional<int> next_variant_at_once(Runtime& runtime, Communicator& communicator,
                                               CallClass& call_class) {
  call_class.among.count_call(runtime, communicator, call_class);
  return call_class.learner.next_at_once();
}
// Returns the variant of the current call like next_variant(), and may help first.
std::optional<int> next_variant_now(Runtime& runtime, CallId id, Communicator& communicator,
                                    CallClass& call_class);

// Returns the variant of a blocking call; waits until it is known, that is, until all ranks have
// begun an earlier call of the call class.
int next_variant_in_call(Runtime& runtime, CallId id, Communicator& communicator,
                         CallClass& call_class);

// No comparison under way keeps the communicator any longer, which is about to go.
void forget_comparisons(Communicator& communicator);

}  // namespace weft
