// Measures copies between two ranks. Node rank 0 decides what to measure next, and tells node rank
// 1 through shared memory. To be like an application, the owner of the data has just written them,
// and two sets of buffers are used alternately.
#include "runtime/node/one_copy_trial.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/buffer_pool.h"
#include "base/clock.h"
#include "base/processor.h"
#include "coll/algorithm_names.h"
#include "runtime/node/shared_buffers.h"
#include "select/selector.h"
#include "transport/transport.h"

namespace weft {
namespace {

constexpr int kRanks = 2;
constexpr int kPolls = 500;
// The number of consecutive broadcasts in each measurement. With two copies, the root can already
// copy data in while the other rank still copies the previous data out. In an allgather no rank
// gets ahead, so that a single call is enough.
constexpr std::size_t kCallsOfOne = 4;

Schedule schedule_of(bool of_all, const AlgorithmName& algorithm, int node_rank,
                     std::int64_t bytes) {
  Shape shape;
  shape.kind = of_all ? Kind::allgather : Kind::bcast;
  shape.rank = node_rank;
  shape.size = kRanks;
  shape.root = 1;  // node rank 0 must be the receiver, since it takes the time
  shape.on_one_node = true;
  shape.send.count = shape.recv.count = bytes;
  const Tuning tuning = default_tuning(shape, processor());
  return build(*algorithm.of(shape.kind), shape, tuning);
}

}  // namespace

// Memory by which both ranks wait for each other, and by which node rank 0 announces the next
// measurement. It lies in the first page of the shared area.
struct OneCopyTrial::Board {
  struct alignas(64) Line {
    std::atomic<std::uint32_t> arrived;
  };
  std::array<Line, kRanks> lines;
  Step next;
};

struct OneCopyTrial::Buffers {
  static constexpr auto kMost = static_cast<std::size_t>(kSizes_bytes.front());

  struct Set {
    std::vector<std::byte> send = std::vector<std::byte>(kMost);
    std::vector<std::byte> recv = std::vector<std::byte>(kRanks * kMost);
  };
  Buffers(std::byte* memory, int node_rank, const std::array<int, kRanks>& world_ranks,
          OneCopy& copies)
      : node_buffers(memory, node_rank, kRanks, most_node_bytes(kRanks)),
        ranks(world_ranks),
        peers(shared_ranges(), ranks, nullptr, &copies) {}

  NodeBuffers node_buffers;
  const std::array<int, kRanks> ranks;
  PeerBuffers peers;
  std::array<Set, 2> sets;
  unsigned uses = 0;
};

OneCopyTrial::OneCopyTrial(std::byte* area, int node_rank, const std::array<int, 2>& world_ranks,
                           OneCopy& copies)
    : board_(*reinterpret_cast<Board*>(area)),
      node_rank_(node_rank),
      copies_(copies),
      buffers_(std::make_unique<Buffers>(area + kPageBytes, node_rank, world_ranks, copies)) {}

OneCopyTrial::~OneCopyTrial() = default;

std::int64_t OneCopyTrial::bytes() {
  static_assert(sizeof(Board) <= kPageBytes);
  return kPageBytes + NodeBuffers::bytes(kRanks, most_node_bytes(kRanks));
}

OneCopyTrial::Result OneCopyTrial::measure(std::int64_t budget_ns) {
  until_ns_ = now_ns() + budget_ns;
  Result result;
  bool of_one = true, of_all = true;
  for (const std::int64_t bytes : kSizes_bytes) {
    of_one = of_one && wins(false, bytes, result.of_one);
    of_all = of_all && wins(true, bytes, result.of_all);
  }
  board_.next = {};
  meet();
  return result;
}

void OneCopyTrial::follow() {
  for (meet(); board_.next.bytes > 0; meet()) {
    const Step step = board_.next;
    prepare(step);
    meet();
    carry_out_calls(step);
  }
}

// Returns whether one copy by the kernel is faster than two copies, for blocks of this size.
// of_all: measures an allgather instead of a broadcast. The first round is not counted, since the
// pages are touched for the first time in it.
bool OneCopyTrial::wins(bool of_all, std::int64_t bytes, OneCopyFound& found) {
  constexpr int kRounds = 4, kEnough = 2;
  constexpr std::int64_t kNone_ns = INT64_MAX / 16;
  Time time{bytes, kNone_ns, kNone_ns};
  int round = 0;
  for (; round < kRounds && now_ns() < until_ns_; ++round) {
    const std::int64_t two_ns = timed_ns({of_all, Way::two_copies, bytes});
    const std::int64_t one_ns = timed_ns({of_all, Way::one_copy, bytes});
    if (round == 0) continue;
    time.one_copy_ns = std::min(time.one_copy_ns, one_ns);
    time.two_copies_ns = std::min(time.two_copies_ns, two_ns);
  }
  found.is_whole = round > kEnough;
  if (found.is_whole) found.times.push_back(time);
  return found.is_whole && time.wins();
}

std::int64_t OneCopyTrial::timed_ns(const Step& step) {
  board_.next = step;
  meet();
  prepare(step);
  meet();
  const std::int64_t began = now_ns();
  carry_out_calls(step);
  return now_ns() - began;
}

// Waits until the other rank has called this function as often as this rank has.
void OneCopyTrial::meet() {
  const auto other = static_cast<std::size_t>(1 - node_rank_);
  board_.lines[static_cast<std::size_t>(node_rank_)].arrived.store(++met_,
                                                                   std::memory_order_release);
  for (int polls = 0; board_.lines[other].arrived.load(std::memory_order_acquire) < met_; ++polls)
    if (polls >= kPolls) sched_yield();
}

void OneCopyTrial::prepare(const Step& step) {
  ++buffers_->uses;
  for (Buffers::Set& set : buffers_->sets)
    std::memset(set.send.data(), static_cast<int>(buffers_->uses & 0xff),
                static_cast<std::size_t>(step.bytes));
}

void OneCopyTrial::carry_out_calls(const Step& step) {
  const std::size_t calls = step.of_all ? 1 : kCallsOfOne;
  for (std::size_t call = 0; call < calls; ++call) carry_out(step, call % buffers_->sets.size());
}

void OneCopyTrial::carry_out(const Step& step, std::size_t set) {
  using namespace algorithm_names;
  const AlgorithmName& algorithm = step.way == Way::one_copy ? kNodeDirect : kNodeFlat;
  const Schedule schedule = schedule_of(step.of_all, algorithm, node_rank_, step.bytes);
  std::byte* const send = buffers_->sets[set].send.data();
  std::byte* const recv = buffers_->sets[set].recv.data();
  const bool is_root = schedule.shape.rank == schedule.shape.root;
  std::byte* const only = is_root ? send : recv;  // a broadcast has only one buffer
  const TempBuffer temp(schedule.temp_bytes);
  Operands operands{{step.of_all ? send : only, step.of_all ? recv : only, temp.data()},
                    nullptr,
                    &buffers_->peers};
  PublishedBuffers shown;
  if (step.of_all || is_root) shown.input = copies_.shown(send, step.bytes, send);
  buffers_->peers.begin(shown);
  const NodeBufferUse turn = buffers_->node_buffers.next(Ends::in_order, schedule);
  operands.use(turn, schedule);
  Execution execution(schedule, nullptr, &operands, &turn);
  for (auto done = execution.advance(kPolls); done && !*done; done = execution.advance(kPolls))
    sched_yield();
}

}  // namespace weft
