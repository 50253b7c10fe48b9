// RoundGenerator: the rounds of a schedule some at a time, by the algorithm's own build function.
// Why: a ring of thousands of ranks has thousands of rounds on each; all of them would not fit in
// memory. The build function runs on a stack of its own and rests whenever it has built enough.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <memory>

#include "coll/algorithm.h"

namespace weft::sim {

class RoundGenerator {
 public:
  RoundGenerator(const Algorithm& algorithm, Shape shape, std::uint32_t rounds);
  RoundGenerator(const RoundGenerator&) = delete;
  RoundGenerator& operator=(const RoundGenerator&) = delete;

  // The next rounds, in place of those that are there. False: there are no more.
  bool next(Schedule& part);

 private:
  static void enter(unsigned high, unsigned low);
  void build();

  const Algorithm& algorithm_;
  const Shape shape_;
  const std::uint32_t rounds_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t caller_{}, builder_{};
  Schedule* part_ = nullptr;
  bool over_ = false;
};

}  // namespace weft::sim
