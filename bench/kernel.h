// Kernel: real floating-point work that runs beside communication. Measuring overlap while the
// caller idles or sleeps says nothing, since a progress thread then has the core for itself. A
// dense reflection H = I - 2vv' is applied an even number of times, so the result is known (HH is
// the identity) and the compiler cannot drop the work.
#pragma once

#include <vector>

namespace bench {

class Kernel {
 public:
  Kernel();
  // Applies the reflection 2 * iterations times. Returns whether the result is the known one.
  bool run(long iterations);

 private:
  static constexpr int kOrder = 96;  // order of the matrix, whose 72 KiB stay in a core's own cache
  void apply(const double* from, double* to) const;

  std::vector<double> reflection_;
  std::vector<double> start_, state_, image_;
};

}  // namespace bench
