// RecursiveHalving: the reduce-scatter of Rabenseifner's algorithms. The vector is cut into one
// part for each position of a fold; partners at halving distances exchange and reduce halves of
// what they still have, until each position has the sum of its own part. For operators that
// commute. Rabenseifner, ICCS 2004
#pragma once

#include <optional>
#include <vector>

#include "patterns/doubling.h"
#include "schedule/builder.h"

namespace weft {

class RecursiveHalving {
 public:
  // Part i is elements [borders[i], borders[i + 1]). The sum comes to lie in `sum`, where there
  // must be space for the whole vector, or in temp. The fold must outlive it; this rank must act in
  // it.
  RecursiveHalving(Builder& builder, const Fold& fold, std::vector<std::int64_t> borders,
                   std::optional<Location> sum = std::nullopt);

  void take_in_partner(int partner);
  void reduce_scatter();

  int position() const { return position_; }
  // Parts [first, last) of the sum. In temp there is space only for those that were ever reduced
  // here: this rank's half, or all after take_in_partner().
  Operand parts(int first, int last) const;

 private:
  // Receives and reduces parts [first, last); `also_post` may post what is sent meanwhile.
  template <class AlsoPost>
  void receive_and_reduce(int peer, int first, int last, AlsoPost also_post);
  Location at(Location vector, int part) const;
  Location vector_with(Location part_at, int part) const;  // the inverse
  std::int64_t length(int first, int last) const;

  Builder& b_;
  const Fold& fold_;
  int position_;
  std::vector<std::int64_t> borders_;
  std::optional<Location> sum_;
  Location value_;  // the input's vector first, then that of the sum
  std::optional<Location> inbox_;
};

}  // namespace weft
