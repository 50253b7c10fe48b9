// Samples the calls of each call site at growing intervals, within the time limit for watching
// buffers.
#include "advise/samples.h"

#include "advise/guard.h"
#include "advise/requests.h"
#include "advise/touches.h"

namespace weft::advise {

bool checking = false;
int one_sided = 0;

namespace {

// Chooses the next call of the site that is to be sampled. The gaps grow, so that a long run costs
// no more than a short one. They vary, so that sampling does not fall into step with a period of
// the program. All ranks sample the same calls, even those that a rank cannot afford: if each rank
// chose other calls, ranks that wait for each other would be delayed one after the other.
void plan_next(Site& site, std::uint64_t call) {
  while (site.next_window <= call) {
    const std::uint64_t at = site.next_window, gap = guard_always() ? 0 : at / 16;
    site.next_window += 1 + gap / 2 + (gap ? (at * 2654435761u >> 8) % gap : 0);
  }
}

// For each watched call, a send buffer's pages are protected about this many times.
constexpr std::size_t kClosings = 8;

enum class Side : std::uint8_t { before, after };

// Begins to watch the send buffer (before) or receive buffer (after) of a sampled call, if the time
// limit allows it. sides: how many of these two can be watched for this kind of call.
void watch_side(Site& site, Side side, const Sample& sample, std::uint64_t sides) {
  const bool before = side == Side::before;
  const Bytes bytes = sample.result;
  const bool used = one_sided > 0 || (sample.gaps && operations_pending());
  const Unknown why = bytes.count == SIZE_MAX ? Unknown::unknown_extent
                      : bytes.count == 0      ? Unknown::no_result
                      : used                  ? Unknown::shared_page
                                              : Unknown::none;
  if (why == Unknown::none && !guard_affordable(before ? kClosings * bytes.count : bytes.count)) {
    if (site.samples >= sides) plan_next(site, sample.call);
    return;
  }
  plan_next(site, sample.call);
  note_touches(site);
  ++site.samples;
  if (why != Unknown::none)
    ++(before ? site.before : site.after).unknown[static_cast<int>(why)];
  else
    (before ? guard_sent : guard_result)(site, bytes.begin, bytes.count, !operations_pending());
}

}  // namespace

bool is_wanted(const Site& site) {
  return !checking && site.calls >= site.next_window && guards_off() == Unknown::none;
}

Sample to_be_watched(const Call& call, const Communicator& comm) {
  const Bytes bytes = received(call, comm);
  const bool known = bytes.count != 0 && bytes.count != SIZE_MAX;
  return {.result = bytes, .gaps = known && has_gaps(call, comm)};
}

// Begins to watch a buffer of a blocking call that has returned, if the call is sampled. It
// alternates between the send buffer and the receive buffer, since both may be on the same page.
void watch(Site& site, const Call& call, const Communicator& comm) {
  if (!is_wanted(site)) return;
  const bool before = site.samples % 2 != 0;
  Sample sample = before ? Sample{.result = sent(call, comm)} : to_be_watched(call, comm);
  sample.call = site.calls;
  watch_side(site, before ? Side::before : Side::after, sample, 2);
}

void watch_completed(Site& site, const Sample& sample) {
  if (sample.call >= site.next_window) watch_side(site, Side::after, sample, 1);
}

}  // namespace weft::advise
