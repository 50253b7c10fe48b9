// Finds the variant (engine and algorithm) for the next call of a call class, and starts the
// comparisons by which the ranks agree on it.
#include "runtime/adaptive/call_classes.h"

#include <sched.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "coll/algorithm.h"
#include "runtime/adaptive/caller.h"
#include "runtime/adaptive/comparison.h"
#include "runtime/adaptive/learnt.h"
#include "runtime/adaptive/telling_edges.h"
#include "runtime/job/epoch.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/watchdog.h"

namespace weft {

// Each communicator has a CallClasses object. Its size in bytes is limited, because programs may
// have many communicators (docs/inside/scale.md).
static_assert(sizeof(CallClasses) <= 152);
CallClass::CallClass(CallClasses& among, CallId id, const CallClassKey& key,
                     std::vector<Choice> candidates, const Learner::Settings& settings,
                     TrialBudget& budget)
    : among(among),
      id(id),
      key(key),
      variants(std::move(candidates)),
      learner(variants.size(), native_among(variants), settings, budget) {}

CallClass::~CallClass() = default;

bool CallClass::may_go_on() const {
  if (comparison && comparison->done()) return true;
  return telling && telling->is_over();
}

void CallClass::look_at_caller() {
  constexpr int kMostLooks = 16;
  constexpr std::size_t kMostCallers = 4;
  if (looks_at_callers_ == kMostLooks || callers.size() == kMostCallers) return;
  ++looks_at_callers_;
  const std::uintptr_t caller = application_caller();
  if (caller != 0 && std::find(callers.begin(), callers.end(), caller) == callers.end())
    callers.push_back(caller);
}

namespace {

// Looks whether the ranks' exchange of measured times in shared memory is complete. If so, the
// learner gets the greatest times of all ranks; otherwise it looks again at a later call. All ranks
// do the same at the same call.
void look_at_comparison(CallClass& call_class) {
  if (const auto greatest = call_class.in_memory->look())
    call_class.learner.agreed(*greatest);
  else
    call_class.learner.agreed_to_look_later();
}

}  // namespace

namespace {

// Begins or continues the exchange in which the ranks tell each other the edges of a neighbourhood.
// Returns whether the next call need not wait for it: the ranks find out whether all have them when
// they next compare times.
bool continue_telling(Runtime& runtime, CallId id, Communicator& communicator,
                      CallClass& call_class) {
  if (call_class.to_tell)
    call_class.telling =
        std::make_unique<TellingEdges>(runtime, id, communicator, *call_class.to_tell);
  call_class.to_tell.reset();
  if (!call_class.telling) return true;
  if (!call_class.telling->is_over()) return !call_class.learner.is_about_to_compare();
  call_class.edges = call_class.telling->edges();
  call_class.telling.reset();
  return true;
}

// Tells the learner if this rank cannot use the variant of which that is not known before.
void say_if_unable(Runtime& runtime, Communicator& communicator, CallClass& call_class) {
  if (worker_among(call_class.variants) >= 0) {
    communicator.want_worker(runtime);
    if (!communicator.worker) call_class.learner.say_unable();
  } else if (joined_among(call_class.variants) >= 0 && !call_class.edges) {
    call_class.learner.say_unable();
  }
}

}  // namespace

std::optional<int> next_variant(Runtime& runtime, CallId id, Communicator& communicator,
                                CallClass& call_class, const Made& made) {
  if (!continue_telling(runtime, id, communicator, call_class)) return std::nullopt;
  if (call_class.comparison && call_class.comparison->done()) {
    call_class.learner.agreed(call_class.comparison->result());
    call_class.comparison.reset();
  }
  TrialTurn& turn = call_class.among.turn;
  auto step = call_class.learner.next(made.at_ns, made.in_flight, turn);
  if (!step && call_class.in_memory) {
    look_at_comparison(call_class);
    step = call_class.learner.next(made.at_ns, made.in_flight, turn);
  }
  if (!step) return std::nullopt;
  if (step->compare) say_if_unable(runtime, communicator, call_class);
  if (step->compare && call_class.in_memory)
    call_class.in_memory->publish(call_class.learner.words());
  else if (step->compare)
    call_class.comparison = begin_comparison(runtime, id, communicator, call_class.learner.words());
  return step->variant;
}

std::optional<int> next_variant_now(Runtime& runtime, CallId id, Communicator& communicator,
                                    CallClass& call_class) {
  if (call_class.comparison && !call_class.comparison->done()) runtime.progress.poll();
  if (communicator.rank == 0 && call_class.learner.is_learning()) call_class.look_at_caller();
  return next_variant(runtime, id, communicator, call_class,
                      {call_class.learner.wants_time() ? now_ns() : 0,
                       call_class.in_flight.load(std::memory_order_relaxed)});
}

int next_variant_in_call(Runtime& runtime, CallId id, Communicator& communicator,
                         CallClass& call_class) {
  if (const auto variant = next_variant_at_once(runtime, communicator, call_class)) return *variant;
  if (communicator.rank == 0 && call_class.learner.is_learning()) call_class.look_at_caller();
  const Made made{call_class.learner.wants_time() ? now_ns() : 0, 0};
  while (true) {
    if (const auto variant = next_variant(runtime, id, communicator, call_class, made))
      return *variant;
    const WatchedCall watched_call(id);
    runtime.progress.drive_until([&] { return call_class.may_go_on(); }, [] { sched_yield(); });
  }
}

// In this memory each pair of kind and size class has a place of its own, in which ranks compare
// times. The calls concerned have a predefined operator or none, and blocking ones are of a kind
// whose size no rank knows. Such kinds use only a few size classes, and blocking calls the place
// before that of non-blocking ones. In the two lowest places their ranks tell each other lengths
// (calls_by_length.h); only barriers would need these places otherwise.
std::optional<SharedWords> CallClasses::memory_for(const CallClassKey& key,
                                                   SegmentAllocator& room) {
  constexpr std::int64_t kSizeClasses = 32;  // size classes up to 2 GiB
  constexpr std::int64_t kBytes = ComparisonsInMemory::kWords * sizeof(std::int64_t);
  constexpr std::int64_t kBytesOfAll = to_pages(kKinds * kSizeClasses * kBytes);
  // Once there was no space, none is looked for again. Otherwise ranks could look at different
  // calls, between which the space in `room` differs.
  has_no_memory_ = has_no_memory_ || (!memory_ && !room.fits(kBytesOfAll));
  if (has_no_memory_) return std::nullopt;
  if (!memory_) {
    memory_ = room.take(kBytesOfAll);
    in_use_.have_room_for_all();
  }
  const std::int64_t of_form = key.blocking ? 1 : 0;
  const std::int64_t place = key.size_class >= 0 ? key.size_class - of_form : of_form;
  const std::int64_t number = static_cast<int>(key.kind) * kSizeClasses + place;
  return SharedWords(memory_.get() + number * kBytes);
}

CallClass& CallClasses::without_room(bool blocking) {
  auto& call_class = without_room_[blocking];
  if (call_class) return *call_class;
  CallClassKey key;
  key.blocking = blocking;
  Learner::Settings settings;
  settings.tries = false;
  call_class = std::make_unique<CallClass>(*this, CallId{}, key, std::vector<Choice>(1), settings,
                                           Runtime::active()->trial_budget);
  return *call_class;
}

void CallClasses::forget_comparisons() {
  in_use_.for_each([](CallClass& call_class) {
    call_class.comparison.reset();
    call_class.telling.reset();
  });
}

namespace {

// Returns what was learnt about a call class: one record for each position in its cycle. A cycle is
// a sequence of calls of the class that the program repeats; each call in it may take a different
// engine and algorithm.
std::vector<CallClassRecord> records_of(const CallClass& call_class,
                                        const Communicator& communicator) {
  CallClassRecord record;
  record.id = call_class.id;
  record.call_class_key = call_class.key;
  record.rank = communicator.rank;
  record.ranks = communicator.size;
  for (const Choice& variant : call_class.variants)
    record.variants.push_back(variant_words(variant));
  for (const std::uintptr_t caller : call_class.callers)
    record.places.push_back(caller_words(caller));
  record.cycle = call_class.learner.cycle();
  std::vector<CallClassRecord> records;
  for (; record.position < record.cycle; ++record.position) {
    record.found = call_class.learner.found(record.position);
    records.push_back(record);
  }
  return records;
}

}  // namespace

std::vector<CallClassRecord> CallClasses::records(const Communicator& communicator) const {
  std::vector<CallClassRecord> records;
  in_use_.for_each([&](const CallClass& call_class) {
    if (call_class.made.all == 0) return;
    for (CallClassRecord& record : records_of(call_class, communicator))
      records.push_back(std::move(record));
  });
  return records;
}

// Frees the call classes that were dropped. Cached plans that refer to them become invalid with the
// new epoch. A class with active calls is freed later, since these calls still refer to it.
void CallClasses::forgotten(Runtime& runtime, const Communicator& communicator) {
  begin_epoch();
  // Ends an inline call (one that its caller carries out alone), because in_flight does not count
  // it.
  InlineCall::own().hand_over();
  in_use_.free_forgotten([&](const CallClass& call_class) {
    if (call_class.in_flight.load(std::memory_order_acquire) > 0) return false;
    for (CallClassRecord& record : records_of(call_class, communicator))
      Learnt::own().note(communicator, std::move(record));
    return true;
  });
}

void forget_comparisons(Communicator& communicator) {
  if (CallClasses* const call_classes = communicator.attributes.find<CallClasses>())
    call_classes->forget_comparisons();
}

}  // namespace weft
