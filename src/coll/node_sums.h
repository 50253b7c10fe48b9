// NodeSums: the sums of the ranks of one node, made in its memory for its leaders, part after part,
// and what the leaders make of them, on its way back to all. The vector has a block for each
// leader. Each block goes through the node from rank to rank, downwards, and ends at its leader:
// each rank reads its vector once and adds to what the one above it left, so that with one leader,
// the first rank of the node, the order is right for operators that do not commute.
// A short vector is put there by everyone, and the leader reduces all.
// Jocksch, Piccinali, shared-memory persistent allreduce (copy in with reduction, chunks)
#pragma once

#include <cstdint>

#include "patterns/blocks.h"
#include "schedule/builder.h"

namespace weft {

class NodeSums {
 public:
  // Of a leader's block, what goes through the memory at a time. At 100 Gbit/s it takes 10 us, so
  // that the few that a round between nodes takes to begin weigh little, less the slower the
  // network; and the three places that parts take in turn still fit into a core's own cache. The
  // next part is reduced while this one is under way between the nodes. Tuning tries less.
  static constexpr std::int64_t kPart_bytes = 128 * 1024;

  enum class Result : std::uint8_t {
    for_all,        // every rank calls publish() and copy_out()
    for_the_leader  // only the leader calls publish(): it uses the part no more
  };

  // `leaders` is 1 or the number of ranks here; one leader is the rank at the place given.
  NodeSums(Builder& b, int leaders, Result result, int leader_place = 0);

  std::int64_t parts() const { return parts_; }
  bool leads() const { return is_leader(place_); }

  // What this leader has of a part: elements, where in the vector, where the result is shared (in
  // the vector itself where this rank is alone on its node).
  std::int64_t count(std::int64_t part) const { return count_of(block_, part); }
  std::int64_t offset(std::int64_t part) const { return offset_of(block_, part); }
  std::int64_t most() const { return most_; }  // elements of any part
  Location shared(std::int64_t part) const;

  // This rank's share of the work on a part; the sum of the leader's own block goes to `own`, which
  // may be shared(part).
  void reduce(std::int64_t part, Location own);
  // Called once for each part; for_all: after the next part's reduce(), before the one after that.
  void publish();
  // Waits for each leader's publish() of the part. To be called before the next part's publish().
  void copy_out(std::int64_t part);

 private:
  static constexpr std::int64_t kPlaces = 3;

  bool is_leader(int place) const { return leaders_ > 1 || place == leader_place_; }
  // Block i is that of the leader at this place.
  int leader_of(int block) const { return leaders_ > 1 ? block : leader_place_; }
  int rank_at(int place) const { return rank_here(b_.shape(), place); }
  std::int64_t offset_of(int block, std::int64_t part) const;
  std::int64_t count_of(int block, std::int64_t part) const;
  Location slot(int slot, std::int64_t part) const;

  void reduce_all_at_the_leader(Location own);
  void add_to_block(int block, std::int64_t part, Location own);
  void wait_until_unused(std::int64_t part) const;

  bool publishes(int place) const;
  int additions(int place) const { return leaders_ - (is_leader(place) ? 1 : 0); }
  // What a rank's counter shows once it has added to its n-th block of a part, or published one.
  std::uint32_t added(int place, std::int64_t part, int nth) const;
  std::uint32_t published(int place, std::int64_t part) const;

  Builder& b_;
  const int ranks_;  // here
  const int place_;  // of this rank
  const int leaders_;
  const int leader_place_;
  const Result result_;
  const int block_;  // of this rank, if it leads
  const Blocks blocks_;
  const std::int64_t most_;
  const std::int64_t parts_;
  const bool all_at_the_leader_;
  const bool in_lines_;
  std::int64_t stride_ = 0;
  Location slots_;
};

}  // namespace weft
