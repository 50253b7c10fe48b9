// Finds up to which ratio of communication to computation overlap pays, for fft3d and gpu_fft3d.
#pragma once
#include <cstdio>
#include <map>

namespace crossing {

constexpr double least = 0.02;  // least gain that counts, as a share of the blocking time

// Returns the last ratio before the first one at which overlap does not pay; 0 if there is none. (A
// gain at a higher ratio may be chance.) won_at: the gain at each ratio. The smallest ratios are
// left out: no more than twice `least` could be gained there even if all communication were hidden.
inline double pays_up_to(const std::map<double, double>& won_at) {
  double last = 0;
  for (const auto& [ratio, won] : won_at) {
    if (ratio / (1 + ratio) <= 2 * least) continue;
    if (won <= least) break;
    last = ratio;
  }
  return last;
}

inline void tell(const std::map<double, double>& won_at) {
  const double up_to = pays_up_to(won_at);
  if (up_to > 0) {
    std::printf("overlap pays (more than %.0f %%) up to a ratio of %.2f, of those measured\n",
                100 * least, up_to);
  } else {
    std::printf("overlap does not pay (more than %.0f %%) at any ratio measured\n", 100 * least);
  }
}

}  // namespace crossing
