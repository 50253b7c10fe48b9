// Two contexts that take turns: whoever asks for rounds, and the build function.
#include "sim/rounds.h"

#include <cstdint>
#include <utility>

namespace weft::sim {
namespace {

// Build functions call little and keep few things on the stack.
constexpr std::size_t kStack_bytes = 64 * 1024;

void hand_over(Schedule& built, Schedule& part) {
  std::swap(part.steps, built.steps);
  std::swap(part.round_ends, built.round_ends);
  part.most_posted = built.most_posted;
  built.steps.clear();
  built.round_ends.clear();
}

}  // namespace

RoundGenerator::RoundGenerator(const Algorithm& algorithm, Shape shape, std::uint32_t rounds)
    : algorithm_(algorithm),
      shape_(std::move(shape)),
      rounds_(rounds),
      stack_(new std::byte[kStack_bytes]) {
  getcontext(&builder_);
  builder_.uc_stack.ss_sp = stack_.get();
  builder_.uc_stack.ss_size = kStack_bytes;
  builder_.uc_link = &caller_;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&builder_, reinterpret_cast<void (*)()>(&RoundGenerator::enter), 2,
              static_cast<unsigned>(std::uint64_t{self} >> 32), static_cast<unsigned>(self));
}

void RoundGenerator::enter(unsigned high, unsigned low) {
  const auto self = static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low);
  reinterpret_cast<RoundGenerator*>(self)->build();
}

void RoundGenerator::build() {
  Builder builder(shape_, algorithm_.name);
  builder.hand_over_every(rounds_, [this](Schedule& built) {
    hand_over(built, *part_);
    swapcontext(&builder_, &caller_);
  });
  algorithm_.build(builder);
  Schedule last = builder.finish();
  hand_over(last, *part_);
  over_ = true;
}

bool RoundGenerator::next(Schedule& part) {
  if (over_) return false;
  part.steps.clear();
  part.round_ends.clear();
  part_ = &part;
  swapcontext(&caller_, &builder_);
  return !part.steps.empty();
}

}  // namespace weft::sim
