// A call class contains similar collective calls, about which engine auto learns: calls of the same
// kind and similar size on one communicator. All ranks must be able to tell classes apart. The
// place in the program is not part of a class, since ranks may call a collective from different
// places.
//
// Engine auto tries several variants (an engine and an algorithm) in the calls of a class. The
// ranks then compare the times, and agree on one variant. A comparison starts in a call of the
// class and takes effect some calls later. It is an internal allreduce or, on a single node, uses
// shared memory (docs/inside/learning.md).
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
class TellingEdges;
struct NodeEdges;
struct Shape;

using ComparisonsInMemory = NodeComparisons<std::tuple_size_v<Learner::Words>>;

struct CallClass {
  CallClass(CallClasses& among, CallId id, const CallClassKey& key, std::vector<Choice> variants,
            const Learner::Settings& settings, TrialBudget& budget);
  ~CallClass();
  CallClass(const CallClass&) = delete;
  CallClass& operator=(const CallClass&) = delete;

  CallClasses& among;  // all call classes of the communicator
  const CallId id;     // MPI function of the first call in this class
  const CallClassKey key;
  const std::vector<Choice> variants;
  Learner learner;
  // The comparison between the ranks that is in progress, if it uses messages; otherwise nullptr.
  std::shared_ptr<Comparison> comparison;
  std::optional<ComparisonsInMemory> in_memory;  // nullopt if ranks compare by messages
  // If joined messages are tried for neighbourhood calls, `to_tell` is the shape of the first call
  // until the ranks begin to tell each other its edges, `telling` is the exchange until it is over,
  // and `edges` are what they have told. Otherwise these are nullptr.
  std::unique_ptr<const Shape> to_tell;
  std::unique_ptr<TellingEdges> telling;
  std::shared_ptr<const NodeEdges> edges;
  CallsMade made;  // number of the application's calls of this class so far
  // The number of calls that this rank has started and the application has not completed yet.
  std::atomic<int> in_flight{0};
  // The first few places in the application (return addresses) that make calls of this class, for
  // reports. They are recorded only while engine auto learns about the class.
  std::vector<std::uintptr_t> callers;

  // Returns whether what the next call waits for (next_variant()) has happened.
  bool may_go_on() const;
  // Records the place in the application that makes the current call. It must be called for each
  // call that belongs to this class.
  void look_at_caller();

 private:
  int looks_at_callers_ = 0;
};

// Holds the call classes of a communicator. Memory is bounded: if there are too many, classes that
// are no longer called are dropped.
class CallClasses {
 public:
  // Returns the call class with this key, after creating it by make() if it is new. If there is no
  // space for a new class, returns a class about which nothing is learnt.
  template <class Make>  // `make()` returns a std::unique_ptr<CallClass>
  CallClass* find_or_make(const CallClassKey& key, Make make) {
    CallClass* call_class = in_use_.find_or_make(key, make);
    return call_class ? call_class : &without_room(key.blocking);
  }
  // Counts a call that belongs to this class. Calls must be counted in the order in which the
  // application makes them, even if they start later, because only this order is equal on all
  // ranks.
  void count_call(Runtime& runtime, const Communicator& communicator, CallClass& call_class) {
    if (in_use_.count_call(call_class.made)) [[unlikely]]
      forgotten(runtime, communicator);
  }

  // Returns the shared memory in which the ranks of a node compare the times of variants (engine
  // and algorithm) for the call class with this key or, with size class -1, in which they tell each
  // other the lengths of calls. A class with such memory is never dropped.
  // Returns nullopt on all ranks if there is no space in `room`. All ranks must call it in the same
  // order.
  std::optional<SharedWords> memory_for(const CallClassKey& key, SegmentAllocator& room);

  // Returns true if no call class had to be dropped so far to make space for another. If it returns
  // false, the program keeps making calls of new classes, and trying variants would cost it more
  // than it gains.
  bool has_free_slots() const { return !in_use_.some_were_forgotten(); }

  TrialTurn turn;

  std::vector<CallClassRecord> records(const Communicator& communicator) const;

  // Drops unfinished exchanges in which ranks compare variants, since they would keep the
  // communicator alive.
  void forget_comparisons();

 private:
  CallClass& without_room(bool blocking);
  void forgotten(Runtime& runtime, const Communicator& communicator);

  CallClassesInUse<CallClass> in_use_;
  // Shared memory in which ranks compare variants; nullptr until needed.
  std::shared_ptr<std::byte> memory_;
  bool has_no_memory_ = false;  // whether there was no space for memory_
  // Two classes, for non-blocking and for blocking calls, that take all calls for which there is no
  // space for another class. These calls follow the fixed rule, and nothing is learnt about them.
  std::array<std::unique_ptr<CallClass>, 2> without_room_;
};

// Holds what the learner must know about one call of the application.
struct Made {
  std::int64_t at_ns = 0;  // time of the call in ns; 0 if the learner does not need it
  int in_flight = 0;
};

// Returns the index of the variant (engine and algorithm) for the next call of this class, and may
// start a comparison of variants between the ranks. Returns nullopt if the variant depends on a
// comparison that is not complete. This cannot happen if ranks compare in shared memory.
std::optional<int> next_variant(Runtime& runtime, CallId id, Communicator& communicator,
                                CallClass& call_class, const Made& made);
// Counts the application's current call. Returns the index of its variant (engine and algorithm) if
// the learner has nothing to record about the call. If it returns nullopt, next_variant_now() must
// be called.
inline std::optional<int> next_variant_at_once(Runtime& runtime, Communicator& communicator,
                                               CallClass& call_class) {
  call_class.among.count_call(runtime, communicator, call_class);
  return call_class.learner.next_at_once();
}
// Returns the index of the variant (engine and algorithm) for the current call, or nullopt if that
// is not known yet (see next_variant()). May first advance other collectives.
std::optional<int> next_variant_now(Runtime& runtime, CallId id, Communicator& communicator,
                                    CallClass& call_class);

// Returns the index of the variant (engine and algorithm) for a blocking call. If necessary it
// waits until all ranks have made an earlier call of this class, so that the comparison between the
// ranks is complete.
int next_variant_in_call(Runtime& runtime, CallId id, Communicator& communicator,
                         CallClass& call_class);

// Drops unfinished exchanges in which ranks compare variants, since they would keep the
// communicator alive. It must be called when the communicator is about to be freed.
void forget_comparisons(Communicator& communicator);

}  // namespace weft
