// Repeated stores one number for each of many ranks. If the numbers repeat with a period, it stores
// only one period: for instance, core numbers are often equal on every node.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace weft {

template <class Number>
class Repeated {
 public:
  Repeated() = default;
  // Stores one period of the numbers if they repeat. all: the number of each rank. after: the
  // periods to try, each as a number of ranks.
  Repeated(std::vector<Number> all, std::initializer_list<std::size_t> after)
      : one_(std::move(all)) {
    for (const std::size_t length : after) {
      if (length == 0 || length >= one_.size() || !repeats(length)) continue;
      one_.resize(length);
      one_.shrink_to_fit();
      return;
    }
  }

  Number at(std::size_t index) const { return one_[index % one_.size()]; }
  std::size_t bytes() const { return sizeof *this + one_.capacity() * sizeof(Number); }

 private:
  bool repeats(std::size_t length) const {
    for (std::size_t i = length; i < one_.size(); ++i)
      if (one_[i] != one_[i - length]) return false;
    return true;
  }

  std::vector<Number> one_;
};

}  // namespace weft
