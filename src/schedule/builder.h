// Builder: receives the steps of an algorithm. Empty steps are dropped: with few elements some
// blocks are empty, and since both ends of a message agree on its bytes, both drop it. Only
// barriers send empty messages.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"
#include "schedule/tuning.h"

namespace weft {

class Builder {
 public:
  Builder(Shape shape, const char* algorithm, const Tuning& tuning = {});

  // Reserves memory for the expected number of steps. Growing the memory step by step would take
  // longer than building.
  void expect_steps(std::size_t steps) { schedule_.steps.reserve(steps); }

  // Restricts the schedule to one batch: `iterations` iterations after the first `done` ones. Steps
  // before all iterations belong to the first batch, those after them to the last.
  void only_iterations(std::int32_t done, std::int32_t iterations);
  // Returns whether a further batch must follow, because steps were left out at the end.
  bool leaves_more() const { return leaves_more_; }

  const Shape& shape() const { return schedule_.shape; }
  const Tuning& tuning() const { return schedule_.tuning; }

  // Returns the place of the whole input of a reduction: the receive buffer if in place, otherwise
  // the send buffer. For other collectives use outgoing(), block by block.
  Location input() const { return outgoing(shape(), 0).at; }

  // Allocates `count` elements of `unit` in the temporary buffer, element-aligned.
  Location temp(std::int64_t count, Unit unit);
  std::int64_t extent(Unit unit) const;
  // Allocates bytes in the memory of the node. They lie at the same place on all ranks of the node
  // if all request the same sizes.
  Location node(std::int64_t bytes, std::int64_t alignment = kLineBytes);
  // Declares the node memory at `at` as Buffer::half_a, and the memory `stride` bytes after it as
  // Buffer::half_b. change: whether the two swap after this use.
  void halve(Location at, std::int64_t stride, bool change);
  // Returns the payload (kSlotPayloadBytes) of the slot of the rank with this node rank.
  Location slot(int node_rank);

  void send(int peer, const Operand& from) { message(StepKind::send, peer, from); }
  void send(int peer, Location from, std::int64_t count, Unit unit = Unit::recv);
  void recv(int peer, const Operand& to) { message(StepKind::recv, peer, to); }
  void recv(int peer, Location to, std::int64_t count, Unit unit = Unit::recv);
  // Calls a collective of the MPI library between the ranks with this node rank on all nodes. All
  // of them must start their calls in the same order. root: the root of bcast and reduce, one of
  // these ranks.
  void leaders(Kind collective, int root, const Operand& gives, const Operand& gets);
  // Computes inout = in op inout, element-wise, in Unit::recv. `in` holds the operand of the lower
  // ranks.
  void reduce(Location in, Location inout, std::int64_t count) { reduce(in, inout, inout, count); }
  // Computes into = lower op higher. `into` must equal `higher` or not overlap it. If the data are
  // plain it may also equal `lower`; otherwise it must not overlap it.
  void reduce(Location lower, Location higher, Location into, std::int64_t count);
  void copy(const Operand& from, const Operand& to);
  void copy(Location from, Location to, std::int64_t count, Unit unit = Unit::recv);
  // Publishes what this rank has written to the node's memory. Returns the value of this rank's
  // counter for which other ranks must wait.
  std::uint32_t signal();
  // Waits until `peer` has signalled `value`; no step is added if this rank has waited for that
  // already.
  void wait(int peer, std::uint32_t value);
  // Writes a number for others, and checks the number of another rank. A rank that finds another
  // number than it expects leaves the call with an error, and so do those that wait for it.
  void tell(Location word, std::uint32_t number);
  void check(int peer, Location word, std::uint32_t number);
  // Shows this rank's input and result to the other ranks as far as they use them, and finds
  // theirs. All ranks must call it, even with `nothing`. If some rank cannot access a shown buffer,
  // no rank continues.
  enum class Shows : std::uint8_t { nothing, input, result, both };
  // Publishes where this rank's buffers are, and finds those of the other ranks. All ranks must
  // call it, even with Shows::nothing. If some rank cannot access a published buffer, no rank
  // continues.
  void meet(Shows shows);
  // Return another rank's input or result, to be used in place. Must follow meet().
  Location input_of(int rank) const;
  Location result_of(int rank) const;
  // Declares that no rank completes the collective before all have entered it; the verifier proves
  // that.
  void synchronizes() { schedule_.synchronizing = true; }
  // Declares that each rank signals only once, before its first wait. All ranks must declare this
  // alike.
  void exchanges_once() { schedule_.exchanges_once = true; }
  void library(StepKind kind);
  void end_round();  // an empty round is not added
  // The iterations of a loop with about one iteration per rank: for (const int iteration :
  // b.iterations(1, size)). The steps of an iteration may depend only on its number, and the
  // iteration must end its rounds. A schedule built in batches has only the iterations of its
  // batch; the others cost nothing.
  class Iterations;
  Iterations iterations(int begin, int end);
  // caller_begins() declares that the steps so far are carried out by calling threads,
  // caller_continues() that the following steps are.
  void caller_begins();
  void caller_continues();

  Schedule finish();

 private:
  const Layout& layout(Unit unit) const { return layout_of(schedule_.shape, unit); }
  void append(const Step& step);
  bool copies_result_of_last(const Step& copy) const;
  void message(StepKind kind, int peer, const Operand& operand);

  void find(int rank);
  void use_slots();
  bool is_in_batch();

  Schedule schedule_;
  std::uint32_t posted_ = 0;
  std::uint32_t signals_ = 0;
  std::vector<std::uint32_t> waited_for_;  // highest counter value that each rank was waited for
  bool has_waited_ = false;                // true if an earlier round has sent, received or waited
  std::int32_t iteration_ = 0;             // number of iterations so far, of all loops
  std::int32_t batch_begin_ = 0, batch_end_ = INT32_MAX;
  bool leaves_more_ = false;
};

class Builder::Iterations {
 public:
  class Iterator {
   public:
    Iterator(Iterations& iterations, int iteration)
        : iterations_(iterations), iteration_(iteration) {}
    int operator*() const { return iteration_; }
    Iterator& operator++() {
      ++iterations_.builder_.iteration_;
      if (++iteration_ == iterations_.end_)
        iterations_.builder_.iteration_ += iterations_.left_out_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return iteration_ != other.iteration_; }

   private:
    Iterations& iterations_;
    int iteration_;
  };

  Iterations(Builder& builder, int begin, int end, int left_out)
      : builder_(builder), begin_(begin), end_(end), left_out_(left_out) {}
  Iterator begin() { return {*this, begin_}; }
  Iterator end() { return {*this, end_}; }

 private:
  Builder& builder_;
  int begin_, end_;
  int left_out_;  // number of iterations after `end` that the batch leaves out
};

}  // namespace weft
