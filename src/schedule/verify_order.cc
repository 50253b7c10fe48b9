// Runs all ranks' schedules on an abstract machine with a vector clock for each rank, to find which
// events are ordered in every run. A signal or a send publishes its rank's clock. A wait, and the
// end of a round with a receive, merges the published clock into its own rank's. Two accesses that
// the clocks do not order are a race. Lamport, CACM 21(7), 1978; Mattern, Virtual Time and Global
// States, 1989
#include "schedule/verify_order.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "schedule/node_edges.h"

namespace weft {
namespace {

// A rank's vector clock: entry i is the number of steps of rank i that are known to have happened.
using Clock = std::vector<std::uint32_t>;

void take_over(Clock& own, const Clock& other) {
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = std::max(own[i], other[i]);
}

struct Event {
  int rank = -1;
  std::uint32_t time = 0;

  bool happened_before(const Clock& clock) const {
    return clock[static_cast<std::size_t>(rank)] >= time;
  }
};

// Memory that several ranks use. For each range it records the last write and the reads since then.
class SharedMemory {
 public:
  // Adds a range that exists from `event` on. filled: whether the range already holds data then.
  void place(Range range, const Event& event, bool filled) {
    cells_[range.begin] = {range.end, event, {}, filled};
  }

  void fill(Range range) {
    for (auto it = cut(range); it != cells_.end() && it->first < range.end; ++it)
      it->second.filled = true;
  }

  bool holds(Range range) {
    std::int64_t known_to = range.begin;
    for (auto it = cut(range); it != cells_.end() && it->first == known_to; ++it)
      known_to = it->second.end;
    return known_to >= range.end;
  }

  // Records a read at time `clock`. Returns false if part of the range was never written, or if the
  // clock does not show that it was written before.
  bool read(Range range, const Event& event, const Clock& clock) {
    std::int64_t known_to = range.begin;
    for (auto it = cut(range); it != cells_.end() && it->first < range.end; ++it) {
      Cell& cell = it->second;
      if (it->first != known_to || !cell.filled || !cell.written.happened_before(clock))
        return false;
      cell.read.push_back(event);
      known_to = cell.end;
    }
    return known_to >= range.end;
  }

  // Records a write at time `clock`. Returns false if the clock does not show that all earlier
  // accesses have happened before.
  bool write(Range range, const Event& event, const Clock& clock) {
    auto it = cut(range);
    while (it != cells_.end() && it->first < range.end) {
      const auto before = [&](const Event& read) { return read.happened_before(clock); };
      const Cell& cell = it->second;
      if (!before(cell.written) || !std::all_of(cell.read.begin(), cell.read.end(), before))
        return false;
      it = cells_.erase(it);
    }
    cells_[range.begin] = {range.end, event, {}, true};
    return true;
  }

  // Returns whether all accesses have happened before `clock`, and all ranges hold data.
  bool is_settled(const Clock& clock) const {
    const auto before = [&](const Event& event) { return event.happened_before(clock); };
    return std::all_of(cells_.begin(), cells_.end(), [&](const auto& entry) {
      const Cell& cell = entry.second;
      return cell.filled && before(cell.written) &&
             std::all_of(cell.read.begin(), cell.read.end(), before);
    });
  }

 private:
  struct Cell {
    std::int64_t end = 0;
    Event written;
    std::vector<Event> read;
    bool filled = true;
  };
  using Cells = std::map<std::int64_t, Cell>;  // indexed by the first byte of the range

  void cut(std::int64_t at) {
    auto it = cells_.lower_bound(at);
    if (it == cells_.begin()) return;
    --it;
    if (it->second.end <= at) return;
    Cell behind = it->second;
    it->second.end = at;
    cells_[at] = std::move(behind);
  }
  // Splits cells at the ends of the range, so that no cell reaches across these. Returns the first
  // cell inside the range or behind it.
  Cells::iterator cut(Range range) {
    cut(range.begin);
    cut(range.end);
    return cells_.lower_bound(range.begin);
  }

  Cells cells_;
};

// The messages from one rank to another: the sender's clock for each send, and the number of
// receives.
struct Channel {
  std::vector<Clock> sent;
  std::size_t awaited = 0;  // number of receives posted so far
};

// The clocks of the leaders that have called one collective of the MPI library, indexed by rank.
using Callers = std::map<int, Clock>;

class Machine {
 public:
  explicit Machine(std::span<const Schedule> all) : all_(all), ranks_(all.size()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].clock.resize(all.size());
      // The clock counts the beginning of the schedule as the rank's first event.
      ranks_[rank].clock[rank] = 1;
      place_buffers(static_cast<int>(rank));
    }
  }

  std::string run() {
    for (bool progress = true; progress && failure_.empty();) {
      progress = false;
      for (int rank = 0; rank < size(); ++rank)
        while (failure_.empty() && advance(rank)) progress = true;
    }
    for (int rank = 0; rank < size() && failure_.empty(); ++rank) check_end(rank);
    return failure_;
  }

 private:
  // Identifies a collective of the MPI library between leaders: their node rank, and the number of
  // such collectives that they have called before.
  using CollectiveId = std::pair<int, std::uint32_t>;

  struct RankState {
    Clock clock;
    std::uint32_t next = 0;
    std::uint32_t round = 0;
    std::vector<Clock> signals;
    // The sends and receives that are posted in this round: the peer, and the number of earlier
    // messages to or from it.
    std::vector<std::pair<int, std::size_t>> sends, recvs;
    std::uint32_t collectives = 0;
    // The collectives of the MPI library between leaders that this round has called.
    std::vector<std::pair<CollectiveId, const Step*>> called;
    SharedMemory send, recv;  // the user's buffers, if other ranks use them in place
  };

  int size() const { return static_cast<int>(all_.size()); }
  const Schedule& schedule(int rank) const { return all_[static_cast<std::size_t>(rank)]; }
  RankState& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  // Registers the user's buffers as shared memory; those that hold input are filled from the
  // beginning.
  void place_buffers(int rank) {
    const Schedule& of_rank = schedule(rank);
    const Shape& shape = of_rank.shape;
    const Event begin{rank, 1};
    const auto place = [&](Buffer buffer, bool filled) {
      for (const Operand& run : buffer_runs(shape, buffer))
        memory_of({buffer, 0}, rank)->place(touched_bytes(shape, run), begin, filled);
    };
    if (memory_of({Buffer::send, 0}, rank)) place(Buffer::send, true);
    if (!memory_of({Buffer::recv, 0}, rank)) return;
    place(Buffer::recv, false);
    const bool is_source = shape.kind == Kind::bcast && rank == shape.root;
    if (!is_source && !shape.in_place) return;
    const bool own_block = shape.kind == Kind::allgather || shape.kind == Kind::allgatherv;
    for (const Operand& run :
         own_block ? std::vector<Operand>{incoming(shape, rank)} : buffer_runs(shape, Buffer::recv))
      state(rank).recv.fill(touched_bytes(shape, run));
  }

  // Carries out the rank's next step, or the end of its round. Returns false if the rank must first
  // wait for others.
  bool advance(int rank) {
    RankState& own = state(rank);
    const Schedule& of_rank = schedule(rank);
    if (own.round == of_rank.rounds()) return false;
    if (own.next == of_rank.round_ends[own.round]) return end_round(rank);
    const Step& step = of_rank.steps[own.next];
    if (step.kind == StepKind::wait && !wait(own.clock, step)) return false;
    ++own.next;
    const Event event{rank, ++own.clock[static_cast<std::size_t>(rank)]};
    if (step.kind == StepKind::signal) own.signals.push_back(own.clock);
    if (step.kind == StepKind::tell) tell(step, event);
    if (step.kind == StepKind::check) check(step, event);
    if (step.kind == StepKind::show) write(shown_by(rank), event);
    if (step.kind == StepKind::find) read(shown_by(step.peer), event);
    if (step.kind == StepKind::send || step.kind == StepKind::recv) post(rank, step);
    if (step.kind == StepKind::leaders) call(rank, step);
    if (is_posted(step.kind)) use(step, event);
    if (is_local(step.kind)) read(step.first, event);
    if (step.kind == StepKind::reduce) read(step.second, event);
    if (is_local(step.kind)) write(result_of(step), event);
    return true;
  }

  void tell(const Step& step, const Event& event) {
    write(step.first, event);
    told_[{node_of(schedule(event.rank).shape), step.first.at.offset}] = step.value;
  }
  void check(const Step& step, const Event& event) {
    read(step.first, event);
    // A number that has come in a message is not followed.
    const bool is_told_here = shares_memory_with(schedule(event.rank).shape, step.peer);
    if (!failure_.empty() || !is_told_here) return;
    if (told_[{node_of(schedule(event.rank).shape), step.first.at.offset}] != step.value)
      failure_ = "rank " + std::to_string(event.rank) + " expects another number than rank " +
                 std::to_string(step.peer) + " tells";
  }

  // Returns where a rank publishes the places of its buffers: in memory behind what the schedule
  // itself uses.
  Operand shown_by(int rank) const {
    const std::int64_t at = schedule(rank).node_bytes + rank * kSlotBytes;
    return {{Buffer::node, at}, sizeof(PublishedBuffers), Unit::byte};
  }

  bool wait(Clock& clock, const Step& step) {
    const RankState& peer = state(step.peer);
    if (peer.signals.size() < step.value) return false;
    take_over(clock, peer.signals[step.value - 1]);
    return true;
  }

  void post(int rank, const Step& step) {
    RankState& own = state(rank);
    const bool sends = step.kind == StepKind::send;
    Channel& channel = sends ? channels_[{rank, step.peer}] : channels_[{step.peer, rank}];
    (sends ? own.sends : own.recvs)
        .emplace_back(step.peer, sends ? channel.sent.size() : channel.awaited);
    if (sends)
      channel.sent.push_back(own.clock);
    else
      ++channel.awaited;
  }

  void call(int rank, const Step& step) {
    RankState& own = state(rank);
    const CollectiveId id{node_rank_of(schedule(rank).shape, rank), own.collectives++};
    callers_[id][rank] = own.clock;
    own.called.emplace_back(id, &step);
  }

  // Returns whether a collective of the library may have completed on a rank. The library may keep
  // any rank waiting until all have called, so all must have.
  bool is_over(const CollectiveId& id, int rank) {
    return callers_[id].size() == static_cast<std::size_t>(schedule(rank).shape.nodes->count());
  }
  // Merges into `clock` the clocks of those ranks whose data must have reached this rank when the
  // collective is over.
  void take_over_callers(Clock& clock, const CollectiveId& id, const Step& step, int rank) {
    for (const auto& [caller, called] : callers_[id]) {
      const bool from_root = step.collective != Kind::bcast || caller == step.peer;
      const bool to_root = step.collective != Kind::reduce || rank == step.peer;
      if (from_root && to_root) take_over(clock, called);
    }
  }

  // Ends a round if all its messages can complete; returns whether they can. The data of a message
  // may be read or written at any time until then.
  bool end_round(int rank) {
    RankState& own = state(rank);
    for (const auto& [peer, number] : own.sends)
      if (channels_[{rank, peer}].awaited <= number) return false;
    for (const auto& [peer, number] : own.recvs)
      if (channels_[{peer, rank}].sent.size() <= number) return false;
    for (const auto& [id, step] : own.called)
      if (!is_over(id, rank)) return false;
    for (const auto& [peer, number] : own.recvs)
      take_over(own.clock, channels_[{peer, rank}].sent[number]);
    for (const auto& [id, step] : own.called) take_over_callers(own.clock, id, *step, rank);
    if (!own.sends.empty() || !own.recvs.empty() || !own.called.empty()) complete_messages(rank);
    own.sends.clear();
    own.recvs.clear();
    own.called.clear();
    ++own.round;
    return true;
  }

  void complete_messages(int rank) {
    RankState& own = state(rank);
    const Schedule& of_rank = schedule(rank);
    const Event event{rank, ++own.clock[static_cast<std::size_t>(rank)]};
    std::uint32_t i = own.round == 0 ? 0 : of_rank.round_ends[own.round - 1];
    for (; i < of_rank.round_ends[own.round]; ++i) {
      const Step& step = of_rank.steps[i];
      if (is_posted(step.kind)) use(step, event);
    }
  }

  void use(const Step& posted, const Event& event) {
    // A joined message may have unused space, in the place of a block whose length has changed.
    const NodeEdges* const edges = schedule(event.rank).shape.edges.get();
    const bool may_have_gaps = edges && edges->may_have_changed;
    if (!may_have_gaps) read(given_by(posted), event);
    write(got_by(posted), event);
  }

  void read(const Operand& operand, const Event& event) {
    access(operand, event, &SharedMemory::read, "reads what no other is known to have written");
  }
  void write(const Operand& operand, const Event& event) {
    access(operand, event, &SharedMemory::write, "writes what another may be using");
  }

  // Returns a location as its owner writes it: another rank's input becomes a place in the owner's
  // buffer, and half_a and half_b become places in the node's shared memory.
  Location as_owner_says(const Location& at, int rank) const {
    if (at.is_own() || at.buffer != Buffer::send) return in_node(schedule(rank), at);
    return outgoing(schedule(at.rank).shape, 0).at + at.offset;
  }

  // Returns the memory of `rank` that contains this location; nullptr if no other rank can access
  // it.
  SharedMemory* memory_of(const Location& at, int rank) {
    if (at.buffer == Buffer::node) return &memories_[node_of(schedule(rank).shape)];
    const Schedule& owners = schedule(rank);
    const bool is_input = owners.shows_input && outgoing(owners.shape, 0).at.buffer == at.buffer;
    const bool is_result = owners.shows_result && at.buffer == Buffer::recv;
    if (!is_input && !is_result) return nullptr;
    return at.buffer == Buffer::send ? &state(rank).send : &state(rank).recv;
  }

  template <class Access>
  void access(const Operand& operand, const Event& event, Access access, const char* wrong) {
    if (operand.count == 0) return;
    const Operand at{as_owner_says(operand.at, event.rank), operand.count, operand.unit};
    SharedMemory* const memory =
        memory_of(at.at, operand.at.is_own() ? event.rank : operand.at.rank);
    if (!memory && operand.at.is_own()) return;
    const Range range = touched_bytes(schedule(event.rank).shape, at);
    const bool is_users = !is_in_node(operand.at.buffer);
    if (!memory)
      wrong = "uses a buffer that its rank does not show";
    else if (is_users && !memory->holds(range))
      wrong = "reaches beyond a rank's buffer";
    else if ((memory->*access)(range, event, state(event.rank).clock))
      return;
    const std::string whose = operand.at.is_own() ? "" : std::to_string(operand.at.rank) + ":";
    failure_ = "rank " + std::to_string(event.rank) + ", step " +
               std::to_string(state(event.rank).next) + ": " + wrong + ", " + whose +
               buffer_name(operand.at.buffer) + "[" + std::to_string(range.begin) + ", " +
               std::to_string(range.end) + ")";
  }

  void check_end(int rank) {
    const RankState& own = state(rank);
    if (own.round < schedule(rank).rounds()) {
      failure_ = "deadlock: rank " + std::to_string(rank) + " never finishes";
      return;
    }
    if (!own.send.is_settled(own.clock) || !own.recv.is_settled(own.clock)) {
      failure_ = "rank " + std::to_string(rank) +
                 " may end while others use its buffers, or before all of its result is there";
      return;
    }
    const bool met_all = std::find(own.clock.begin(), own.clock.end(), 0) == own.clock.end();
    if (schedule(rank).synchronizing && !met_all)
      failure_ = "rank " + std::to_string(rank) + " may end before all have begun";
  }

  std::span<const Schedule> all_;
  std::vector<RankState> ranks_;
  std::map<std::pair<int, int>, Channel> channels_;  // indexed by (sender, receiver)
  std::map<CollectiveId, Callers> callers_;
  std::map<int, SharedMemory> memories_;
  // Last word that was published at (node, offset).
  std::map<std::pair<int, std::int64_t>, std::uint32_t> told_;
  std::string failure_;
};

}  // namespace

std::string find_disorder(std::span<const Schedule> all_ranks) {
  return Machine(all_ranks).run();
}

}  // namespace weft
