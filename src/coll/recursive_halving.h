// RecursiveHalving: the reduce-scatter of Rabenseifner's algorithms, between a power of two of
// ranks that a Fold selects. The vector is divided into one part for each of them. Partners at
// halving distances exchange and reduce halves of their remaining parts, until each rank has the
// sum of its own part. The operator must commute. Rabenseifner, ICCS 2004
#pragma once

#include <optional>
#include <vector>

#include "patterns/doubling.h"
#include "schedule/builder.h"

namespace weft {

class RecursiveHalving {
 public:
  // Part i has the elements borders[i], …, borders[i + 1] - 1. The sum ends at `sum`, which must
  // have space for the whole vector; without it, in a temporary buffer. The fold must outlive this
  // object, and must have selected this rank.
  RecursiveHalving(Builder& builder, const Fold& fold, std::vector<std::int64_t> borders,
                   std::optional<Location> sum = std::nullopt);

  void take_in_partner(int partner);
  void reduce_scatter();

  int position() const { return position_; }
  // Returns where the sums of parts first, …, last - 1 lie. A temporary buffer has space only for
  // those parts that were reduced on this rank: half of them, or all after take_in_partner().
  Operand parts(int first, int last) const;

 private:
  // Receives parts first, …, last - 1 from `peer` and reduces them. also_post() may post sends in
  // the same round.
  template <class AlsoPost>
  void receive_and_reduce(int peer, int first, int last, AlsoPost also_post);
  Location at(Location vector, int part) const;
  // Returns where a whole vector begins whose part `part` begins at `part_at`.
  Location vector_with(Location part_at, int part) const;
  std::int64_t length(int first, int last) const;

  Builder& b_;
  const Fold& fold_;
  int position_;
  std::vector<std::int64_t> borders_;
  std::optional<Location> sum_;
  // Beginning of the vector to which received parts are added: first the input, then the sum.
  Location value_;
  std::optional<Location> inbox_;
};

}  // namespace weft
