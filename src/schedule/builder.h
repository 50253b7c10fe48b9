// Builder: what an algorithm writes its steps into.
// Why it drops steps that move nothing: with few elements some blocks are empty, and the two ends
// of a message agree on its bytes, so both drop it. Only a barrier's messages are sent empty.
#pragma once

#include "base/result.h"
#include "schedule/schedule.h"

namespace weft {

class Builder {
 public:
  Builder(Shape shape, const char* algorithm);

  const Shape& shape() const { return schedule_.shape; }

  // Where the whole of what a reduction takes in lies: the receive buffer if in place, else the
  // send buffer. Other collectives have outgoing(), block by block.
  Location input() const { return outgoing(shape(), 0).at; }

  // Space for `count` elements of `unit` in the temp buffer, from an element-aligned origin.
  Location temp(std::int64_t count, Unit unit);
  std::int64_t extent(Unit unit) const;

  void send(int peer, const Operand& from) { message(StepKind::send, peer, from); }
  void send(int peer, Location from, std::int64_t count, Unit unit = Unit::recv);
  void recv(int peer, const Operand& to) { message(StepKind::recv, peer, to); }
  void recv(int peer, Location to, std::int64_t count, Unit unit = Unit::recv);
  // inout = in op inout, element-wise, in Unit::recv. `in` holds the lower ranks' part.
  void reduce(Location in, Location inout, std::int64_t count);
  void copy(const Operand& from, const Operand& to);
  void copy(Location from, Location to, std::int64_t count, Unit unit = Unit::recv);
  void library(StepKind kind);
  void end_round();  // an empty round is dropped

  Schedule finish();

 private:
  const Layout& layout(Unit unit) const { return layout_of(schedule_.shape, unit); }
  void append(const Step& step);
  void message(StepKind kind, int peer, const Operand& operand);

  Schedule schedule_;
  std::uint32_t posted_ = 0;
  bool has_waited_ = false;  // an earlier round posted something
};

}  // namespace weft
