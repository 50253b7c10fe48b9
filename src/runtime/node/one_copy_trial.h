// OneCopyTrial measures from which size one copy by the kernel is faster than two copies through
// shared memory. Two ranks of a node carry out a broadcast and an allgather, with the same
// schedules as calls of the application. Two ranks suffice, because the cost of a copy depends only
// on the processor and the system.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "select/one_copy_rule.h"
#include "shm/one_copy.h"

namespace weft {

class OneCopyTrial {
 public:
  // The sizes of blocks to measure in bytes, largest first.
  static constexpr std::array<std::int64_t, 5> kSizes_bytes = {512 << 10, 256 << 10, 128 << 10,
                                                               64 << 10, 32 << 10};
  using Time = OneCopyFound::Time;
  struct Result {
    OneCopyFound of_one, of_all;
    bool there() const { return !of_one.times.empty() && !of_all.times.empty(); }
  };

  // area: memory that both ranks share, page-aligned and initially zero; its size must be bytes().
  // node_rank: 0 or 1. world_ranks: both ranks in MPI_COMM_WORLD.
  OneCopyTrial(std::byte* area, int node_rank, const std::array<int, 2>& world_ranks,
               OneCopy& copies);
  ~OneCopyTrial();
  OneCopyTrial(const OneCopyTrial&) = delete;
  OneCopyTrial& operator=(const OneCopyTrial&) = delete;
  static std::int64_t bytes();

  // Node rank 0 must call measure(), and node rank 1 follow(). It starts with the largest size,
  // where one copy is most likely to be faster. It ends at the first size where one copy is slower,
  // or after `budget_ns`.
  Result measure(std::int64_t budget_ns);
  void follow();

 private:
  enum class Way : std::uint8_t { one_copy, two_copies };
  // The next measurement of both ranks.
  struct Step {
    bool of_all = false;
    Way way{};
    std::int64_t bytes = 0;  // size of a block; 0 ends the trial
  };
  struct Board;
  struct Buffers;

  bool wins(bool of_all, std::int64_t bytes, OneCopyFound& found);
  std::int64_t timed_ns(const Step& step);
  void meet();
  void prepare(const Step& step);
  void carry_out_calls(const Step& step);
  void carry_out(const Step& step, std::size_t set);

  Board& board_;
  const int node_rank_;
  OneCopy& copies_;
  const std::unique_ptr<Buffers> buffers_;
  std::uint32_t met_ = 0;
  std::int64_t until_ns_ = 0;
};

}  // namespace weft
