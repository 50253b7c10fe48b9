// Builder: what an algorithm writes its steps into.
#pragma once

#include "base/result.h"
#include "schedule/schedule.h"

namespace weft {

class Builder {
 public:
  Builder(const Shape& shape, const char* algorithm);

  const Shape& shape() const { return schedule_.shape; }

  // Where this rank's contribution lies: the receive buffer if in place, else the send buffer.
  // For alltoall in place there is no contribution that stays unchanged: algorithms copy first.
  Location input() const;
  Unit input_unit() const;

  // Space for `count` elements of `unit` in the temp buffer, from an element-aligned origin.
  Location temp(std::int64_t count, Unit unit);
  std::int64_t extent(Unit unit) const;

  void send(int peer, Location from, std::int64_t count, Unit unit = Unit::recv);
  void recv(int peer, Location to, std::int64_t count, Unit unit = Unit::recv);
  // inout = in op inout, element-wise, in Unit::recv. `in` holds the lower ranks' part.
  void reduce(Location in, Location inout, std::int64_t count);
  void copy(Operand from, Operand to);
  void copy(Location from, Location to, std::int64_t count, Unit unit = Unit::recv);
  void library(StepKind kind);
  void end_round();  // an empty round is dropped

  Schedule finish();

 private:
  const Layout& layout(Unit unit) const;
  void append(Step step);

  Schedule schedule_;
  std::uint32_t posted_ = 0;
};

}  // namespace weft
