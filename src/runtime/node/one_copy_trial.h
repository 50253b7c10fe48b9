// OneCopyTrial: two ranks of a node measure from which size a copy by the kernel is faster than two
// copies through the node's shared memory. They carry out a bcast and an allgather with the
// schedules that calls will use. Two ranks suffice, because the cost of a copy depends on processor
// and system; the other ranks only wait for the result.
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
  // The block sizes to measure, largest first.
  static constexpr std::array<std::int64_t, 5> kSizes_bytes = {512 << 10, 256 << 10, 128 << 10,
                                                               64 << 10, 32 << 10};
  using Time = OneCopyFound::Time;
  struct Result {
    OneCopyFound of_one, of_all;
    bool there() const { return !of_one.times.empty() && !of_all.times.empty(); }
  };

  // area: memory of size bytes() shared by both ranks, page-aligned, initially zero. node_rank: 0
  // or 1. world_ranks: both ranks in MPI_COMM_WORLD.
  OneCopyTrial(std::byte* area, int node_rank, const std::array<int, 2>& world_ranks,
               OneCopy& copies);
  ~OneCopyTrial();
  OneCopyTrial(const OneCopyTrial&) = delete;
  OneCopyTrial& operator=(const OneCopyTrial&) = delete;
  static std::int64_t bytes();

  // measure() runs on node rank 0 while node rank 1 calls follow(). It begins with the largest
  // size, where a single copy is most likely to win, and ends where that loses, or after budget_ns.
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
