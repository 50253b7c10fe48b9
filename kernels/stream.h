// Measures how much of the memory bandwidth a kernel uses: its bytes per second compared with those
// of STREAM's triad on the same core, in turn. It shows that computation which overlaps with
// communication is not slow by itself. Processor time counts, so that other programs on the machine
// disturb little. Source: McCalpin, STREAM, https://www.cs.virginia.edu/stream.
#pragma once
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "trials.h"

namespace stream {

// Computes a[i] = b[i] + s c[i] on arrays that no cache can hold.
class Triad {
 public:
  void carry_out() {
    const double s = 3;
    for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = b_[i] + s * c_[i];
  }
  double bytes() const { return 24.0 * static_cast<double>(a_.size()); }
  bool right() const { return a_.front() == 7 && a_.back() == 7; }

 private:
  static constexpr std::size_t length = 1 << 24;
  std::vector<double> a_ = std::vector<double>(length), b_ = std::vector<double>(length, 1.0),
                      c_ = std::vector<double>(length, 2.0);
};

inline double seconds_of(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::max<std::clock_t>(1, std::clock() - begin)) / CLOCKS_PER_SEC;
}

// Returns the bytes of the processor's last-level cache; 0 if the system does not say.
inline double last_cache() {
  for (int index = 9; index > 0; --index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    if (double kilobytes = 0; file >> kilobytes) return 1024 * kilobytes;
  }
  return 0;
}

// Prints and returns the bandwidth of work(), which moves `bytes` bytes, as a share of the triad's.
inline double compare(const char* what, double bytes, int repetitions,
                      const std::function<void()>& work) {
  Triad triad;
  triad.carry_out(), work();
  std::vector<double> rates, triads, shares;
  for (int i = 0; i < repetitions; ++i) {
    triads.push_back(triad.bytes() / seconds_of([&] { triad.carry_out(); }) / 1e9);
    rates.push_back(bytes / seconds_of(work) / 1e9);
    shares.push_back(rates.back() / triads.back());
  }
  std::sort(shares.begin(), shares.end());
  std::printf("%s: %.1f GB/s, triad %.1f GB/s, share %.2f [%.2f-%.2f]\n", what,
              trials::median(rates), trials::median(triads), trials::median(shares),
              shares[shares.size() / 4], shares[shares.size() - 1 - shares.size() / 4]);
  if (!triad.right()) std::printf("the triad is wrong\n");
  return trials::median(shares);
}

}  // namespace stream
