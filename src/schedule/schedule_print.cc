// Prints a schedule as text. Ranges are half-open, in bytes from the beginning of the buffer.
#include <array>
#include <cstdio>

#include "schedule/schedule.h"

namespace weft {
namespace {

template <class... Values>
std::string text(const char* format, Values... values) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), format, values...);
  return line.data();
}

std::string print(const Shape& shape, const Operand& operand) {
  if (operand.count == 0) return "nothing";
  const Range range = touched_bytes(shape, operand);
  const std::string whose = operand.at.is_own() ? "" : text("%d:", operand.at.rank);
  return whose + text("%s[%lld, %lld)", buffer_name(operand.at.buffer),
                      static_cast<long long>(range.begin), static_cast<long long>(range.end));
}

std::string print(const Shape& shape, const Step& step) {
  const std::string first = print(shape, step.first);
  switch (step.kind) {
    case StepKind::send:
      return text("send    -> %-5d %s", step.peer, first.c_str());
    case StepKind::recv:
      return text("recv    <- %-5d %s", step.peer, first.c_str());
    case StepKind::reduce: {
      const bool in_place = step.into == step.second.at;
      return "reduce           " + first + " op " + print(shape, step.second) +
             (in_place ? "" : " to " + print(shape, result_of(step)));
    }
    case StepKind::signal:
      return text("signal           %u", step.value);
    case StepKind::wait:
      return text("wait    <- %-5d %u", step.peer, step.value);
    case StepKind::tell:
      return text("tell             %u in ", step.value) + first;
    case StepKind::check:
      return text("check   <- %-5d %u in ", step.peer, step.value) + first;
    case StepKind::show:
      return "show             its buffers";
    case StepKind::find:
      return text("find    <- %-5d its buffers", step.peer);
    case StepKind::agree:
      return "agree            that all reach all";
    case StepKind::copy:
      return "copy             " + first + " to " + print(shape, step.second);
    case StepKind::leaders:
      return text("leaders          %s ", kind_name(step.collective)) + first + " to " +
             print(shape, step.second);
    case StepKind::library_blocking:
      return "library          the whole collective, blocking";
    case StepKind::library_nonblocking:
      return "library          the whole collective, non-blocking";
  }
  return "?";
}

bool is_rooted(Kind kind) {
  switch (kind) {
    case Kind::bcast:
    case Kind::gather:
    case Kind::gatherv:
    case Kind::scatter:
    case Kind::scatterv:
    case Kind::reduce:
      return true;
    default:
      return false;
  }
}

std::string header(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  std::string line = text("%s %s, rank %d of %d", kind_name(shape.kind), schedule.algorithm,
                          shape.rank, shape.size);
  if (is_rooted(shape.kind)) line += text(", root %d", shape.root);
  if (shape.kind != Kind::barrier)
    line += text(", %lld bytes", static_cast<long long>(local_bytes(shape)));
  if (is_neighborhood(shape.kind))
    line += text(", %zu blocks out, %zu in", shape.destinations.size(), shape.sources.size());
  if (shape.in_place) line += ", in place";
  line += text(", temp %lld bytes", static_cast<long long>(schedule.temp_bytes));
  if (schedule.node_bytes > 0)
    line += text(", node %lld bytes", static_cast<long long>(schedule.node_bytes));
  return line + "\n";
}

}  // namespace

std::string print(const Schedule& schedule) {
  std::string out = header(schedule);
  if (schedule.steps.empty()) return out + "nothing to do\n";
  out += "round  step       peer  operands\n";
  std::uint32_t step = 0;
  for (std::uint32_t round = 0; round < schedule.rounds(); ++round) {
    if (round == schedule.left_from_round) out += "       from here on by the waiting call\n";
    for (; step < schedule.round_ends[round]; ++step)
      out += text("%5u  ", round + 1) + print(schedule.shape, schedule.steps[step]) + "\n";
    if (round + 1 == schedule.rounds_at_start) out += "       up to here by the starting call\n";
  }
  return out;
}

}  // namespace weft
