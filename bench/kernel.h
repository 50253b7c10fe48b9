// Kernel: real floating-point work that a measurement puts behind communication.
// Why: overlap measured over an idle or sleeping caller says nothing, since then a progress thread
// has the core for itself. A dense reflection H = I - 2vv' is applied an even number of times, so
// the result is known (H twice is the identity) and the compiler cannot drop the work.
#pragma once

#include <vector>

namespace bench {

class Kernel {
 public:
  Kernel();
  // Applies the reflection 2 * iterations times; false: the result is not the known one.
  bool run(long iterations);

 private:
  static constexpr int kOrder = 96;  // 72 KiB: lives in the core's own cache
  void apply(const double* from, double* to) const;

  std::vector<double> reflection_;
  std::vector<double> start_, state_, image_;
};

}  // namespace bench
