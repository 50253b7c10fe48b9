// Keeps the results of comparisons with the MPI library's collectives. A result is a line in the
// file of plans. Its algorithm names the faster side: one of Weft's algorithms, or "library".
#include "runtime/trial/native_results.h"

#include <algorithm>
#include <bit>

#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "transport/mpi/kernels.h"

namespace weft {
namespace {

constexpr const char* kLibrary = "library";
// This is a part of the key in the file of plans. It must be changed whenever the method of
// measurement changes, so that earlier results are ignored.
constexpr const char* kMethod = "warm";
constexpr int kMostDoubts = 4;
// A remark on a result that this run has checked. It is never written to the file.
constexpr const char* kChecked = "checked in this run";

std::string key_of(const Runtime& runtime, const NativeQuestion& question) {
  const std::string operation =
      reduces(question.kind) ? reduction_words(question.op, question.type) : "";
  const std::string level = runtime.in_memory_only() ? "level kept" : "any level";
  return plan_key(
      {"weft " WEFT_VERSION, Runtime::platform(), std::to_string(question.ranks) + " ranks",
       kind_name(question.kind), "<= " + std::to_string(question.most_bytes) + " bytes", operation,
       level + (question.by_kernel ? ", one copy by the kernel" : ""),
       question.blocking ? "or the library's blocking call" : "or the library's start and wait",
       kMethod});
}

}  // namespace

// Describes the comparison for a call, equally on all ranks. If the call is not a reduction, the
// datatype is left out, since it may differ between ranks.
NativeQuestion::NativeQuestion(const Call& call, const Schedule& schedule, std::int64_t bytes,
                               bool is_blocking)
    : kind(schedule.shape.kind),
      ranks(schedule.shape.size),
      most_bytes(std::bit_ceil(static_cast<std::uint64_t>(bytes))),
      blocking(is_blocking),
      by_kernel(schedule.is_direct),
      op(reduces(kind) ? call.op : handles.op_null),
      type(reduces(kind) ? call.recvtype : handles.byte) {}

AgreedNativeResult* AgreedNativeResults::find(const NativeQuestion& question) const {
  for (const auto& result : all_)
    if (result->question == question) return result.get();
  return nullptr;
}

AgreedNativeResult& AgreedNativeResults::add(const NativeQuestion& question, bool is_won) {
  return *all_.emplace_back(new AgreedNativeResult{question, is_won});
}

// All ranks come here in the same order of calls, so that they find the same memory.
std::optional<SharedWords> AgreedNativeResults::memory_for_one(SegmentAllocator& room) {
  constexpr std::int64_t kBytes = NativeWatch::Comparisons::kWords * sizeof(std::int64_t);
  constexpr std::int64_t kBytesOfAll = to_pages(1), kMost = kBytesOfAll / kBytes;
  if (!memory_ && with_memory_ == 0 && room.fits(kBytesOfAll)) memory_ = room.take(kBytesOfAll);
  if (!memory_ || with_memory_ == kMost) return std::nullopt;
  return SharedWords(memory_.get() + with_memory_++ * kBytes);
}

bool AgreedNativeResults::ask(AgreedNativeResult& result, SegmentAllocator& room, bool own) {
  if (!result.is_old) {
    const auto memory = memory_for_one(room);
    if (!memory) return false;
    result.is_old.emplace(*memory);
  }
  return result.is_old->next(own);
}

void AgreedNativeResults::watch(Runtime& runtime, AgreedNativeResult& result,
                                SegmentAllocator& room) {
  const Learn learn = runtime.config.learn;
  const bool switches = learn == Learn::switching;
  if (!switches && (learn != Learn::on || runtime.trial_budget.is_none())) return;
  result.watch = std::make_unique<NativeWatch>(
      [this, &room] { return memory_for_one(room); }, result.question.ranks,
      waits_for_all(result.question.kind), switches, runtime.trial_budget);
}

KnownNativeResult::KnownNativeResult(Runtime& runtime, const NativeQuestion& question)
    : plans_(runtime.plans), key_(key_of(runtime, question)), plan_(plans_.find(key_)) {}

bool KnownNativeResult::is_won() const {
  return exists() && plan_->algorithm != kLibrary;
}

bool KnownNativeResult::is_checked() const {
  return exists() && plan_->remarks == kChecked;
}

std::int64_t KnownNativeResult::longest_ns() const {
  std::int64_t longest_ns = 0;
  if (exists())
    for (const auto& one : plan_->candidates) longest_ns = std::max(longest_ns, one.ns);
  return longest_ns;
}

void KnownNativeResult::keep(const Schedule& schedule, bool is_won, std::int64_t library_ns,
                             std::int64_t weft_ns) {
  const int doubts = (exists() ? plan_->doubts : 0) + 1;
  const std::string name = schedule.algorithm, winner = is_won ? name : kLibrary;
  const bool again = exists() && plan_->algorithm == winner && is_clear(library_ns, weft_ns);
  plans_.note(key_, {winner,
                     schedule.tuning,
                     {{kLibrary, {}, library_ns}, {name, schedule.tuning, weft_ns}},
                     again || doubts >= kMostDoubts ? 0 : doubts});
}

void KnownNativeResult::keep_checked(const Schedule& schedule, bool is_won) {
  MeasuredPlan plan = plan_.value_or(MeasuredPlan{});
  plan.algorithm = is_won ? schedule.algorithm : kLibrary;
  plan.tuning = schedule.tuning;
  plan.remarks = kChecked;
  plans_.remember(key_, plan);
}

bool KnownNativeResult::is_clear(std::int64_t one_ns, std::int64_t other_ns) {
  return std::max(one_ns, other_ns) >= 2 * std::min(one_ns, other_ns);
}

}  // namespace weft
