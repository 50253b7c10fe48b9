// Builder: what an algorithm writes its steps into.
// Why it drops steps that move nothing: with few elements some blocks are empty, and the two ends
// of a message agree on its bytes, so both drop it. Only a barrier's messages are sent empty.
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

  // So many may come, or more or fewer. Where they grow step by step, the kernel has to give memory
  // twice, which takes longer than the building.
  void expect_steps(std::size_t steps) { schedule_.steps.reserve(steps); }

  // Only a section is built: so many laps, after those that are done already. What comes before all
  // laps belongs to the first section, what comes after them to the last.
  void only_laps(std::int32_t done, std::int32_t laps);
  // Something is left for a next section.
  bool leaves_more() const { return leaves_more_; }

  const Shape& shape() const { return schedule_.shape; }
  const Tuning& tuning() const { return schedule_.tuning; }

  // Where the whole of what a reduction takes in lies: the receive buffer if in place, else the
  // send buffer. Other collectives have outgoing(), block by block.
  Location input() const { return outgoing(shape(), 0).at; }

  // Space for `count` elements of `unit` in the temp buffer, from an element-aligned origin.
  Location temp(std::int64_t count, Unit unit);
  std::int64_t extent(Unit unit) const;
  // The same in the node's memory: at the same place on all its ranks, if all ask for the same.
  Location node(std::int64_t bytes, std::int64_t alignment = kLineBytes);
  // `at` and what lies `stride` bytes behind it in the node's memory become half_a and half_b.
  void halve(Location at, std::int64_t stride, bool change);
  // The payload of the line of a rank that shares memory, by its place: kLinePayloadBytes.
  Location line(int place);

  void send(int peer, const Operand& from) { message(StepKind::send, peer, from); }
  void send(int peer, Location from, std::int64_t count, Unit unit = Unit::recv);
  void recv(int peer, const Operand& to) { message(StepKind::recv, peer, to); }
  void recv(int peer, Location to, std::int64_t count, Unit unit = Unit::recv);
  // A collective of the MPI library's between the ranks at this rank's place of all nodes, which
  // all begin theirs in the same order. `root`: of bcast and reduce, one of them.
  void leaders(Kind collective, int root, const Operand& gives, const Operand& gets);
  // inout = in op inout, element-wise, in Unit::recv. `in` holds the lower ranks' part.
  void reduce(Location in, Location inout, std::int64_t count) { reduce(in, inout, inout, count); }
  // into = lower op higher; `into` overlaps `higher` nowhere or wholly, and so `lower` if the data
  // are plain, else nowhere.
  void reduce(Location lower, Location higher, Location into, std::int64_t count);
  void copy(const Operand& from, const Operand& to);
  void copy(Location from, Location to, std::int64_t count, Unit unit = Unit::recv);
  // Publishes what this rank has written to the node's memory; others wait for the value returned.
  std::uint32_t signal();
  // Dropped where this rank has waited for it already.
  void wait(int peer, std::uint32_t value);
  // What others use of this rank's input and result; and what this one uses of theirs. All show, if
  // nothing, and all find all; where something cannot be seen, nobody goes any further.
  enum class Shows : std::uint8_t { nothing, input, result, both };
  void meet(Shows shows);
  // Of any rank, after that.
  Location input_of(int rank) const;
  Location result_of(int rank) const;
  // No rank ends before all have begun; the verifier proves it.
  void synchronizes() { schedule_.synchronizing = true; }
  // Each rank signals once, before it first waits: known to all ranks alike.
  void exchanges_once() { schedule_.exchanges_once = true; }
  void library(StepKind kind);
  void end_round();  // an empty round is dropped
  // The laps of a loop that has one for each rank, or more: for (const int lap : b.laps(1, size)).
  // What one builds rests on its number alone, and it ends its rounds. So a section has those of
  // them that belong to it, and the rest costs nothing.
  class Laps;
  Laps laps(int begin, int end);
  // What has come so far, and what is to come, is the caller's part.
  void caller_begins();
  void caller_goes_on();

  Schedule finish();

 private:
  const Layout& layout(Unit unit) const { return layout_of(schedule_.shape, unit); }
  void append(const Step& step);
  bool copies_result_of_last(const Step& copy) const;
  void message(StepKind kind, int peer, const Operand& operand);

  void find(int rank);
  void use_lines();
  bool is_in_section();

  Schedule schedule_;
  std::uint32_t posted_ = 0;
  std::uint32_t signals_ = 0;
  std::vector<std::uint32_t> waited_for_;  // by rank, the highest value
  bool has_waited_ = false;                // an earlier round posted something
  std::int32_t lap_ = 0;                   // of all loops together
  std::int32_t section_begin_ = 0, section_end_ = INT32_MAX;
  bool leaves_more_ = false;
};

class Builder::Laps {
 public:
  class Iterator {
   public:
    Iterator(Laps& laps, int lap) : laps_(laps), lap_(lap) {}
    int operator*() const { return lap_; }
    Iterator& operator++() {
      ++laps_.builder_.lap_;
      if (++lap_ == laps_.end_) laps_.builder_.lap_ += laps_.left_out_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return lap_ != other.lap_; }

   private:
    Laps& laps_;
    int lap_;
  };

  Laps(Builder& builder, int begin, int end, int left_out)
      : builder_(builder), begin_(begin), end_(end), left_out_(left_out) {}
  Iterator begin() { return {*this, begin_}; }
  Iterator end() { return {*this, end_}; }

 private:
  Builder& builder_;
  int begin_, end_;
  int left_out_;  // after the end
};

}  // namespace weft
