// Call classes: the classes of calls about which engine `auto` learns. A call class contains the
// collectives of one kind and similar size on a communicator, which all ranks can tell apart from
// others. The call site is not part of it, since ranks may call a collective from different places.
// Ranks agree on variants by comparisons, which begin with a call of the class and take effect some
// calls later. Comparisons are internal allreduces or, on a single node, use shared memory
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

  CallClasses& among;  // the call classes of this communicator
  const CallId id;     // MPI function of the class's first call
  const CallClassKey key;
  const std::vector<Choice> variants;
  Learner learner;
  std::shared_ptr<Comparison> comparison;  // the comparison by messages under way; else nullptr
  std::optional<ComparisonsInMemory> in_memory;  // nullopt if ranks compare by messages
  CallsMade made;                                // the application's calls so far
  std::atomic<int> in_flight{0};  // calls started on this rank and not completed by the application
  std::vector<std::uintptr_t> callers;  // the first few call sites, recorded while the class
                                        // learns; for reports

  // Records the call site. Is called for each call of the class.
  void look_at_caller();

 private:
  int looks_at_callers_ = 0;
};

// The call classes of a communicator. Memory is bounded: classes that are no longer called are
// forgotten in favour of others.
class CallClasses {
 public:
  // Returns the class with this key, after making it by `make` if it is new. If no class is free,
  // returns one about which nothing is learnt.
  template <class Make>  // `make()` returns a std::unique_ptr<CallClass>
  CallClass* find_or_make(const CallClassKey& key, Make make) {
    CallClass* call_class = in_use_.find_or_make(key, make);
    return call_class ? call_class : &without_room(key.blocking);
  }
  // Counts a call of the class. Must be called in the order of the application's calls, deferred or
  // not, because that order is equal on all ranks.
  void count_call(Runtime& runtime, const Communicator& communicator, CallClass& call_class) {
    if (in_use_.count_call(call_class.made)) [[unlikely]]
      forgotten(runtime, communicator);
  }

  // Returns shared memory in which the ranks of a communicator on one node compare for this class,
  // which is then never forgotten. Returns nullopt on all ranks if `room` is used up. Must be
  // called in the order of the calls.
  std::optional<SharedWords> memory_for(const CallClassKey& key, SegmentAllocator& room);

  // Returns true as long as no class had to be forgotten in favour of another. A program for which
  // that has happened keeps making calls of new classes, and would try variants most of the time.
  bool has_free_slots() const { return !in_use_.some_were_forgotten(); }

  TrialTurn turn;

  std::vector<CallClassRecord> records(const Communicator& communicator) const;

  // Drops comparisons of variants under way, which would keep the communicator alive.
  void forget_comparisons();

 private:
  CallClass& without_room(bool blocking);
  void forgotten(Runtime& runtime, const Communicator& communicator);

  CallClassesInUse<CallClass> in_use_;
  std::shared_ptr<std::byte> memory_;  // shared memory for comparisons; nullptr until needed
  bool has_no_memory_ = false;         // there was no space for memory_
  // Two classes, for non-blocking and blocking calls, that take all calls for which no class is
  // free. These calls follow the rule, and nothing is learnt about them.
  std::array<std::unique_ptr<CallClass>, 2> without_room_;
};

// The circumstances of an application's call that the learner records.
struct Made {
  std::int64_t at_ns = 0;  // time of the call in ns; set only if the learner needs it
  int in_flight = 0;
};

// Returns the variant of the class's next call; nullopt if it is not known yet, which does not
// happen if ranks compare in shared memory. May begin a comparison.
std::optional<int> next_variant(Runtime& runtime, CallId id, Communicator& communicator,
                                CallClass& call_class, const Made& made);
// Counts the application's current call, and returns its variant if the learner has nothing to
// record. Otherwise next_variant_now() must be called.
inline std::optional<int> next_variant_at_once(Runtime& runtime, Communicator& communicator,
                                               CallClass& call_class) {
  call_class.among.count_call(runtime, communicator, call_class);
  return call_class.learner.next_at_once();
}
// Returns the variant of the current call as next_variant() does, and may progress other operations
// first.
std::optional<int> next_variant_now(Runtime& runtime, CallId id, Communicator& communicator,
                                    CallClass& call_class);

// Returns the variant of a blocking call. Waits until it is known, that is, until all ranks have
// begun an earlier call of the class.
int next_variant_in_call(Runtime& runtime, CallId id, Communicator& communicator,
                         CallClass& call_class);

// Drops comparisons of variants under way, which would keep the communicator alive. Is called when
// the communicator is about to be freed.
void forget_comparisons(Communicator& communicator);

}  // namespace weft
