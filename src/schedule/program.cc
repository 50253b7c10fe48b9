#include "schedule/program.h"

#include <algorithm>

#include "schedule/schedule.h"

namespace weft {
namespace {

bool is_simple(const Step& step) {
  switch (step.kind) {
    case StepKind::signal:
    case StepKind::wait:
    case StepKind::tell:
    case StepKind::check:
      return true;
    default:
      return is_local(step.kind) && step.plain;
  }
}

Instruction compile(const Schedule& schedule, std::uint32_t index) {
  const Step& step = schedule.steps[index];
  Instruction made{.kind = Instruction::Kind::signal, .value = step.value, .step = index};
  const auto set = [](const Location& at, Buffer& buffer, std::int64_t& offset) {
    buffer = at.buffer;
    offset = at.offset;
  };
  if (step.kind == StepKind::wait) {
    made.kind = Instruction::Kind::wait;
    made.node_rank = node_rank_of(schedule.shape, step.peer);
  }
  if (step.kind == StepKind::tell || step.kind == StepKind::check) {
    made.kind = step.kind == StepKind::tell ? Instruction::Kind::tell : Instruction::Kind::check;
    set(step.first.at, made.first, made.first_at);
  }
  if (!is_local(step.kind)) return made;
  made.kind = Instruction::Kind::copy;
  made.amount = step.bytes;
  set(step.first.at, made.first, made.first_at);
  set(step.second.at, made.second, made.second_at);
  if (step.kind == StepKind::copy) return made;
  made.kind = Instruction::Kind::reduce;
  made.amount = step.first.count;
  set(step.into, made.into, made.into_at);
  made.has_also = step.fused == Fused::with_next;
  if (made.has_also) set(schedule.steps[index + 1].second.at, made.also, made.also_at);
  return made;
}

}  // namespace

Program compile(const Schedule& schedule) {
  if (!std::all_of(schedule.steps.begin(), schedule.steps.end(), is_simple)) return {};
  Program program;
  program.reserve(schedule.steps.size() + 1);
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i)
    if (schedule.steps[i].fused != Fused::with_before) program.push_back(compile(schedule, i));
  const auto steps = static_cast<std::uint32_t>(schedule.steps.size());
  program.push_back({.kind = Instruction::Kind::end, .step = steps});
  return program;
}

}  // namespace weft
