// Implements Kernel: a dense reflection, column by column so that the compiler can vectorise it
// without reordering sums. The error after k applications stays below k times the unit round-off
// times a small constant, so the result can be checked even after minutes of work.
#include "kernel.h"

#include <cmath>

namespace bench {

Kernel::Kernel() : reflection_(kOrder * kOrder), start_(kOrder), state_(kOrder), image_(kOrder) {
  double norm = 0;
  for (int i = 0; i < kOrder; ++i) norm += (i + 1.0) * (i + 1.0);
  for (int column = 0; column < kOrder; ++column) {
    start_[column] = 1.0 + column % 7;
    for (int row = 0; row < kOrder; ++row) {
      reflection_[column * kOrder + row] =
          (row == column ? 1.0 : 0.0) - 2.0 * (row + 1.0) * (column + 1.0) / norm;
    }
  }
}

void Kernel::apply(const double* from, double* to) const {
  for (int row = 0; row < kOrder; ++row) to[row] = 0;
  for (int column = 0; column < kOrder; ++column) {
    const double factor = from[column];
    const double* entries = &reflection_[column * kOrder];
    for (int row = 0; row < kOrder; ++row) to[row] += entries[row] * factor;
  }
}

bool Kernel::run(long iterations) {
  state_ = start_;
  for (long i = 0; i < iterations; ++i) {
    apply(state_.data(), image_.data());
    apply(image_.data(), state_.data());
  }
  for (int i = 0; i < kOrder; ++i) {
    if (!(std::fabs(state_[i] - start_[i]) < 1e-6)) return false;
  }
  return true;
}

}  // namespace bench
