// Builder: receives the steps of an algorithm and makes a schedule of them. It drops empty steps:
// with few elements some blocks are empty, and since both ends of a message agree on its bytes,
// both drop it. Only barriers send empty messages.
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

  // Reserves memory for this many steps, since growing the list step by step would take longer than
  // building the schedule.
  void expect_steps(std::size_t steps) { schedule_.steps.reserve(steps); }

  // Restricts the schedule to one batch: it gets only `iterations` iterations of the algorithm's
  // loops, after the first `done` ones. Steps in front of all iterations belong to the first batch,
  // and steps behind them to the last.
  void only_iterations(std::int32_t done, std::int32_t iterations);
  // Returns whether iterations behind this batch were left out, so that a further batch must
  // follow.
  bool leaves_more() const { return leaves_more_; }

  const Shape& shape() const { return schedule_.shape; }
  const Tuning& tuning() const { return schedule_.tuning; }

  // Returns where the whole input of a reduction lies: in the receive buffer if the call is in
  // place, otherwise in the send buffer. For other collectives outgoing() returns the place of each
  // block.
  Location input() const { return outgoing(shape(), 0).at; }

  // Allocates `count` elements of `unit` in the temporary buffer, aligned for these elements.
  Location temp(std::int64_t count, Unit unit);
  std::int64_t extent(Unit unit) const;
  // Allocates `bytes` in the shared memory of the node. The memory lies at the same offset on all
  // ranks of the node if all of them make the same calls.
  Location node(std::int64_t bytes, std::int64_t alignment = kLineBytes);
  // Declares two halves of the node's shared memory: Buffer::half_a begins at `at`, and
  // Buffer::half_b lies `stride` bytes after it. If `change` is true, the two halves swap for the
  // next operation that uses this memory.
  void halve(Location at, std::int64_t stride, bool change);
  // Returns where the slot of the rank with this node rank has its payload (kSlotPayloadBytes
  // bytes).
  Location slot(int node_rank);

  void send(int peer, const Operand& from) { message(StepKind::send, peer, from); }
  void send(int peer, Location from, std::int64_t count, Unit unit = Unit::recv);
  void recv(int peer, const Operand& to) { message(StepKind::recv, peer, to); }
  void recv(int peer, Location to, std::int64_t count, Unit unit = Unit::recv);
  // Calls a collective of the MPI library between the ranks that have this rank's node rank, one
  // per node. All of them must start such calls in the same order. root: the root of a bcast or
  // reduce, which is one of these ranks.
  void leaders(Kind collective, int root, const Operand& gives, const Operand& gets);
  // Computes inout = in op inout, element by element, with elements of Unit::recv. `in` holds the
  // operand of the lower ranks.
  void reduce(Location in, Location inout, std::int64_t count) { reduce(in, inout, inout, count); }
  // Computes into = lower op higher. `into` may be `higher` itself, and must not overlap it
  // otherwise. If the data are plain (predefined and without gaps), `into` may also be `lower`
  // itself; otherwise it must not overlap `lower`.
  void reduce(Location lower, Location higher, Location into, std::int64_t count);
  void copy(const Operand& from, const Operand& to);
  void copy(Location from, Location to, std::int64_t count, Unit unit = Unit::recv);
  // Adds a step that raises this rank's counter in shared memory, and so publishes what the rank
  // has written there. Returns the value of the counter for which other ranks must wait.
  std::uint32_t signal();
  // Adds a step that waits until the counter of `peer` is at least `value`. Adds nothing if the
  // schedule has waited for that value already.
  void wait(int peer, std::uint32_t value);
  // tell() adds a step that writes a number to a word of shared memory, and check() a step that
  // compares the word of another rank with `number`. If they differ, the call fails on this rank
  // and on those that wait for it.
  void tell(Location word, std::uint32_t number);
  void check(int peer, Location word, std::uint32_t number);
  // Says which of this rank's buffers the other ranks may use in place.
  enum class Shows : std::uint8_t { nothing, input, result, both };
  // Adds the steps that publish where this rank's buffers are and find those of the other ranks.
  // All ranks must call it, even with Shows::nothing. If some rank cannot access a published
  // buffer, no rank continues with the schedule.
  void meet(Shows shows);
  // Return where another rank's input or result lies, for steps that use it in place. meet() must
  // precede them.
  Location input_of(int rank) const;
  Location result_of(int rank) const;
  // Declares that no rank completes the collective before all have entered it. The verifier proves
  // this.
  void synchronizes() { schedule_.synchronizing = true; }
  // Declares that each rank raises its counter only once, and before it first waits. Either all
  // ranks must declare this or none.
  void exchanges_once() { schedule_.exchanges_once = true; }
  void library(StepKind kind);
  void end_round();  // an empty round is not added
  // Returns the iterations of a loop with about one iteration per rank: for (const int iteration :
  // b.iterations(1, size)). The steps of an iteration may depend only on its number, and the
  // iteration must end its rounds. A schedule that is built in batches runs only the iterations of
  // its batch; the others cost nothing.
  class Iterations;
  Iterations iterations(int begin, int end);
  // caller_begins() declares that the rounds so far are carried out by the thread that starts the
  // collective. caller_continues() declares that the following rounds are left to the thread that
  // waits for it.
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
  // Highest counter value for which the schedule has waited, by rank.
  std::vector<std::uint32_t> waited_for_;
  bool has_waited_ = false;     // true if an earlier round has sent, received or waited
  std::int32_t iteration_ = 0;  // number of iterations so far in all loops together
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
  int left_out_;  // number of iterations that lie behind the batch
};

}  // namespace weft
