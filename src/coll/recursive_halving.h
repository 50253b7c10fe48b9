// RecursiveHalving: the reduce-scatter of Rabenseifner's algorithms. The vector is divided into one
// part per position of a Fold. Partners at halving distances exchange and reduce halves of their
// remaining parts, until each position has the sum of its own part. The operator must commute.
// Rabenseifner, ICCS 2004
#pragma once

#include <optional>
#include <vector>

#include "patterns/doubling.h"
#include "schedule/builder.h"

namespace weft {

class RecursiveHalving {
 public:
  // Part i is elements [borders[i], borders[i + 1]). The sum ends in `sum`, which must have space
  // for the whole vector, or in a temporary buffer. The fold must outlive this object, and this
  // rank must have a position in it.
  RecursiveHalving(Builder& builder, const Fold& fold, std::vector<std::int64_t> borders,
                   std::optional<Location> sum = std::nullopt);

  void take_in_partner(int partner);
  void reduce_scatter();

  int position() const { return position_; }
  // Returns parts [first, last) of the sum. A temporary buffer has space only for the parts that
  // were reduced on this rank: its half, or all after take_in_partner().
  Operand parts(int first, int last) const;

 private:
  // Receives and reduces parts [first, last); `also_post` may post sends in the same round.
  template <class AlsoPost>
  void receive_and_reduce(int peer, int first, int last, AlsoPost also_post);
  Location at(Location vector, int part) const;
  // Returns the place of the whole vector from that of one part; the inverse of at().
  Location vector_with(Location part_at, int part) const;
  std::int64_t length(int first, int last) const;

  Builder& b_;
  const Fold& fold_;
  int position_;
  std::vector<std::int64_t> borders_;
  std::optional<Location> sum_;
  Location value_;  // start of the vector: the input's at first, then the sum's
  std::optional<Location> inbox_;
};

}  // namespace weft
