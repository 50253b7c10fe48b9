// Manages a thread's cached plans, which are freed when the thread ends.
#include "runtime/start/recent_plan_cache.h"

#include "runtime/call/shape.h"

namespace weft {

constinit thread_local RecentPlanCache* RecentPlanCache::of_this_thread_
    __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

std::size_t bytes_of(const Plan& plan) {
  std::size_t bytes = 0;
  for (const Schedule* schedule : {plan.schedule.get(), plan.direct.schedule.get()})
    if (schedule) bytes += weft::bytes_of(*schedule);
  for (int variant = 0; plan.variants && variant < plan.variants->count(); ++variant)
    if (const Plan* const made = plan.variants->plan(variant)) bytes += bytes_of(*made);
  return bytes;
}

}  // namespace

struct AtThreadEnd {
  ~AtThreadEnd() {
    delete RecentPlanCache::of_this_thread_;
    RecentPlanCache::of_this_thread_ = nullptr;
    cached_calls.forget_all();
  }
  // Makes the thread free its plans when it ends.
  static void clean_up() { static thread_local AtThreadEnd at_thread_end; }
};

[[gnu::noinline]] RecentPlanCache& RecentPlanCache::made() {
  AtThreadEnd::clean_up();
  of_this_thread_ = new RecentPlanCache;
  return *of_this_thread_;
}

const Plan* RecentPlanCache::add(const Call& call, Use use, std::uint64_t made_at,
                                 const Plan& plan) {
  Entry& entry = set_of(call, use).to_be_replaced();
  cached_calls.forget(entry.plan);
  entry = Entry{0, use, buffers_of(call), 0, 0, call, plan, {}};
  if (call.has_arrays() && !entry.keep_arrays()) return keep(plan);
  entry.epoch = made_at;
  drop_if_too_many(entry);
  return &entry.plan;
}

// Drops plans if the cache is too large. The last plan always stays, since programs repeat their
// calls.
void RecentPlanCache::drop_if_too_many(const Entry& last) {
  constexpr std::size_t kMost_bytes = std::size_t{1} << 20;
  std::size_t bytes = 0;
  for (const Set& set : sets_)
    for (const Entry& entry : set.entries) bytes += entry.bytes();
  if (bytes <= kMost_bytes) return;
  for (Set& set : sets_)
    for (Entry& entry : set.entries)
      if (&entry != &last) {
        cached_calls.forget(entry.plan);
        entry = {};
      }
}

RecentPlanCache::Entry& RecentPlanCache::Set::to_be_replaced() {
  for (Entry& entry : entries)
    if (entry.epoch != weft::epoch()) return entry;
  return entries[next++ % entries.size()];
}

bool RecentPlanCache::Entry::keep_arrays() {
  constexpr int kMostPeers = 4096;
  const Communicator& communicator = *plan.communicator;
  sends = static_cast<int>(array_length(call, communicator, Direction::send));
  recvs = static_cast<int>(array_length(call, communicator, Direction::recv));
  if (std::max(sends, recvs) > kMostPeers) return false;
  weft::keep_arrays(&call, sends, recvs, &arrays);
  return true;
}

std::size_t RecentPlanCache::Entry::bytes() const {
  const std::size_t arrays_bytes =
      arrays.size() * static_cast<std::size_t>(std::max(sends, recvs)) * sizeof(std::int64_t);
  return arrays_bytes + bytes_of(plan);
}

}  // namespace weft
