// crossing.h: up to which ratio of communication to computation overlap pays. Why apart: fft3d and
// gpu_fft3d ask the same.
#pragma once
#include <cstdio>
#include <map>

namespace crossing {

constexpr double least = 0.02;  // won of the blocking time

// By ratio: what overlap won. The last ratio before the first one at which it does not pay: what a
// longer one wins may be the spread. 0: there is none. Left out are the smallest ones, of which no
// more than twice `least` could be won: if all communication were hidden.
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
