// Sums over spherical harmonics up to a wave number, and along latitudes. The functions are not
// stored but computed while they are summed, for many latitudes at once, by the processor's longest
// vectors (Schaeffer, Geochem. Geophys. Geosyst. 14, 2013). The recurrence is that of Ishioka, J.
// Meteorol. Soc. Japan 96 (2018).
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

namespace harmonics {

using Complex = std::complex<double>;
using Waves = std::vector<Complex>;
using Field = std::vector<double>;

inline std::size_t at(std::ptrdiff_t place) {
  return static_cast<std::size_t>(place);
}

// The values at eight latitudes, one after the other.
struct alignas(64) Eight {
  double of[8];
};
using Eights = std::vector<Eight>;

// Number of northern latitudes in a block; a block's functions begin at the same wave number.
constexpr int tag_ranges = 16;

// Coefficients of the recurrence Q(k + 1) = (a x² + b) Q(k) - Q(k - 1), where x is the sine of the
// latitude.
struct Step {
  double a, b;
};

// The data of the loops for one zonal wave number m. The functions of a block of latitudes are too
// small to matter before its first step.
struct Wave {
  const Step* steps;
  int count;            // number of steps of the recurrence
  const int* firsts;    // first step of each block
  const Eight* begins;  // for each block, the functions of its first step and of the step before
};

#if defined(__x86_64__)
#define LOOPS Avx512
#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#define WIDTH 8
#define REGISTERS 32
#include "atmosphere_loops.h"
#define LOOPS Avx2
#define TARGET __attribute__((target("avx2,fma")))
#define WIDTH 4
#define REGISTERS 16
#include "atmosphere_loops.h"
#endif
#define LOOPS Plain
#define TARGET
#define WIDTH 2
#define REGISTERS 16
#include "atmosphere_loops.h"

// Length of the longest vectors to use, in doubles. Tests set shorter ones.
inline int widest = 8;

// Calls call() with the fastest loops that this processor can run.
template <class Call>
void with_loops(const Call& call) {
#if defined(__x86_64__)
  if (widest >= 8 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return call(Avx512());
  }
  if (widest >= 4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return call(Avx2());
  }
#endif
  call(Plain());
}

// Gaussian latitudes, and the associated Legendre functions P(n, m) there, up to n = truncation +
// 1, which derivatives need. The integral of their squares is 1. For n = m + 2k, P(n, m) is Q(k)
// times a scale. Since x P(n) is a sum of P(n - 1) and P(n + 1), the functions with n between these
// are x times sums of the same Q. The functions at a southern latitude are those at the northern
// one, with the opposite sign if n - m is odd.
class Harmonics {
 public:
  Harmonics(int truncation, int latitudes)
      : truncation_(truncation),
        latitudes_(latitudes),
        blocks_((latitudes / 2 + tag_ranges - 1) / tag_ranges),
        sine_(at(latitudes)),
        weight_(at(latitudes)),
        sines_(at(2 * blocks_)),
        values_(at(4 * most_fields * 2 * blocks_)),
        lines_(at(most_fields * 2 * blocks_ * 2 * per_line())) {
    for (int j = 0; j < latitudes / 2; ++j) add_latitude(j);
    // Values of P(m, m) at the northern latitudes.
    std::vector<long double> diagonal(at(latitudes / 2), std::sqrt(0.5L));
    starts_.push_back(0), first_steps_.push_back(0);
    for (int m = 0; m <= truncation; ++m) {
      for (int j = 0; m > 0 && j < latitudes / 2; ++j) {
        const long double x = sine(j);
        diagonal[at(j)] *= std::sqrt((2.0L * m + 1) / (2.0L * m) * (1 - x * x));
      }
      add_functions(m, diagonal);
    }
    for (Waves& one : own_) one.resize(at(truncation + 2));
    folded_.resize(at(4 * most_fields * ((truncation + 1) / 2 + 1)));
    sums_.resize(folded_.size());
  }
  static constexpr int most_fields = 3;

  int count() const { return starts_.back(); }
  int start(int m) const { return starts_[at(m)]; }
  double sine(int j) const { return sine_[at(j)]; }
  double weight(int j) const { return weight_[at(j)]; }
  // Returns the coefficients epsilon(n), from n = m on, in x P(n) = epsilon(n + 1) P(n + 1) +
  // epsilon(n) P(n - 1).
  const double* epsilons(int m) const { return epsilons_.data() + start(m) + m; }

  // Computes the values of some fields, for each m, at the latitudes of these rows and at their
  // mirror images. waves(m, arrays) must fill the arrays with each field's coefficients, from n = m
  // to truncation + 1.
  template <int fields, class Source>
  void to_latitudes(int first_row, int rows, const Source& waves) {
    int first = blocks_, last = 0;
    for (int j = first_row; j < first_row + rows; ++j) {
      const int block = std::min(j, latitudes_ - 1 - j) / tag_ranges;
      first = std::min(first, block), last = std::max(last, block + 1);
    }
    for (int m = 0; m <= truncation_; ++m) {
      waves(m, &own_);
      fold<fields>(m);
      with_loops([&](auto loops) {
        loops.template to_latitudes<fields>(wave(m), sines_.data(), folded_.data(), first, last,
                                            lines_.data() + 2 * m, per_line(), per_field());
      });
    }
  }
  // Returns the values of a field at the eight latitudes from 8 * eight on, or at their mirror
  // images, in the order [m][real, imaginary].
  const Eight* line(int field, int eight, bool south) const {
    return lines_.data() + field * per_field() + (2 * eight + south) * per_line();
  }

  // Sets the values of a field at all latitudes for one m, multiplied by weights. It must precede
  // to_waves().
  void set(int field, bool imaginary, const double* values, const Field& weights) {
    double* even = values_[at(2 * (4 * field + imaginary) * blocks_)].of;
    double* odd = even + 2 * 2 * 8 * blocks_;
    for (int j = 0; j < latitudes_ / 2; ++j) {
      const double north = values[j], south = values[latitudes_ - 1 - j];
      even[j] = weights[at(j)] * (north + south);
      odd[j] = weights[at(j)] * sine_[at(j)] * (north - south);
    }
  }
  // Returns the coefficients of each field from n = m to truncation + 1: the sums over all
  // latitudes of the values set() times the functions.
  template <int fields>
  const std::array<Waves, most_fields>& to_waves(int m) {
    with_loops([&](auto loops) {
      const Wave one = wave(m);
      loops.template to_sums<fields>(one, sines_.data(), values_.data(), blocks_, sums_.data());
      loops.add_up(sums_.data(), 4 * fields * one.count, folded_.data());
    });
    unfold<fields>(m);
    return own_;
  }

  // Returns the number of multiply-adds in a transform of this many fields at all latitudes.
  double multiply_adds(int fields) const {
    double made = 0;
    for (int m = 0; m <= truncation_; ++m) {
      const Wave one = wave(m);
      for (int block = 0; block < blocks_; ++block) made += one.count - one.firsts[block];
    }
    return made * tag_ranges * (4 * fields + 2);
  }

 private:
  static constexpr double nothing = 1e-30;
  // Scales of the coefficients with even n - m, of the next ones, and of the term that passes from
  // one odd coefficient to another (fold()).
  struct Scale {
    double even, odd, next;
  };

  int per_line() const { return 2 * (truncation_ + 1); }
  int per_field() const { return 2 * blocks_ * 2 * per_line(); }
  Wave wave(int m) const {
    const int first = first_steps_[at(m)];
    return {steps_.data() + first, first_steps_[at(m + 1)] - first, firsts_.data() + m * blocks_,
            begins_.data() + 4 * m * blocks_};
  }

  void add_latitude(int j) {
    double x = std::cos(M_PI * (j + 0.75) / (latitudes_ + 0.5)), slope = 1;
    for (int i = 0; i < 20; ++i) {
      double before = 1, now = x;
      for (int n = 2; n <= latitudes_; ++n) {
        const double next = ((2 * n - 1) * x * now - (n - 1) * before) / n;
        before = now, now = next;
      }
      slope = latitudes_ * (x * now - before) / (x * x - 1);
      x -= now / slope;
    }
    const int opposite = latitudes_ - 1 - j;
    sine_[at(j)] = x, sine_[at(opposite)] = -x, sines_[at(j / 8)].of[j % 8] = x;
    weight_[at(j)] = weight_[at(opposite)] = 2 / ((1 - x * x) * slope * slope);
  }

  void add_functions(int m, const std::vector<long double>& diagonal) {
    const auto epsilon = [m](int n) {
      return std::sqrt((1.0L * n * n - m * m) / (4.0L * n * n - 1));
    };
    for (int n = m; n <= truncation_ + 1; ++n) {
      epsilons_.push_back(static_cast<double>(epsilon(n)));
    }
    starts_.push_back(starts_.back() + truncation_ + 1 - m);
    const int count = (truncation_ + 1 - m) / 2 + 1;
    first_steps_.push_back(first_steps_.back() + count);
    std::vector<std::array<long double, 2>> steps;
    // Scales for which the factor of Q(k - 1) in the recurrence is 1.
    std::vector<long double> scales(2, 1);
    for (int k = 0; k < count; ++k) {
      const int n = m + 2 * k;
      const long double here = epsilon(n), next = epsilon(n + 1), after = epsilon(n + 2);
      if (k > 0) {
        scales.push_back(scales[at(k - 1)] * here * epsilon(n - 1) / (next * after));
      }
      const long double scale = scales[at(k)], a = scale / (scales[at(k + 1)] * next * after);
      steps.push_back({a, -a * (here * here + next * next)});
      steps_.push_back({static_cast<double>(a), static_cast<double>(steps.back()[1])});
      scales_.push_back({static_cast<double>(scale), static_cast<double>(scale / next),
                         static_cast<double>(scale * after / (scales[at(k + 1)] * next))});
    }
    for (int block = 0; block < blocks_; ++block) {
      std::array<long double, tag_ranges> now = {}, before = {};
      const int inside = std::min(tag_ranges, latitudes_ / 2 - block * tag_ranges);
      std::copy_n(diagonal.begin() + block * tag_ranges, inside, now.begin());
      int k = 0;
      const auto is_nothing = [&](long double q) { return std::abs(q * scales[at(k)]) < nothing; };
      for (; k < count && std::all_of(now.begin(), now.end(), is_nothing); ++k) {
        for (int i = 0; i < inside; ++i) {
          const long double x = sine(block * tag_ranges + i);
          const auto [a, b] = steps[at(k)];
          before[at(i)] = std::exchange(now[at(i)], (a * x * x + b) * now[at(i)] - before[at(i)]);
        }
      }
      firsts_.push_back(k);
      for (const auto& values : {now, before}) {
        for (int i = 0; i < tag_ranges; ++i) {
          if (i % 8 == 0) begins_.emplace_back();
          begins_.back().of[i % 8] = static_cast<double>(values[at(i)]);
        }
      }
    }
  }

  // Prepares the coefficients for the loops. With o(k) for the coefficient of n = m + 2k + 1, the
  // sum of o(k) P(n) is x times that of d(k) P(n - 1), where o(k) = epsilon(n) d(k) + epsilon(n +
  // 1) d(k + 1).
  template <int fields>
  void fold(int m) {
    const Wave one = wave(m);
    const Scale* scale = scales_.data() + first_steps_[at(m)];
    double after[2 * fields] = {};
    for (int k = one.count - 1; k >= 0; --k) {
      const bool has_odd = m + 2 * k <= truncation_;
      for (int f = 0; f < fields; ++f) {
        const double* wave = reinterpret_cast<const double*>(own_[at(f)].data() + 2 * k);
        double* made = folded_.data() + 4 * (k * fields + f);
        for (int i = 0; i < 2; ++i) {
          double& last = after[2 * f + i];
          last = (has_odd ? scale[k].odd * wave[2 + i] : 0) - scale[k].next * last;
          made[i] = scale[k].even * wave[i], made[2 + i] = last;
        }
      }
    }
  }
  // Does the transpose of fold(), for sums.
  template <int fields>
  void unfold(int m) {
    const Wave one = wave(m);
    const Scale* scale = scales_.data() + first_steps_[at(m)];
    double before[2 * fields] = {};
    for (int k = 0; k < one.count; ++k) {
      const bool has_odd = m + 2 * k <= truncation_;
      for (int f = 0; f < fields; ++f) {
        double* wave = reinterpret_cast<double*>(own_[at(f)].data() + 2 * k);
        const double* sums = folded_.data() + 4 * (k * fields + f);
        for (int i = 0; i < 2; ++i) {
          double& last = before[2 * f + i];
          last = sums[2 + i] - (k > 0 ? scale[k - 1].next * last : 0);
          wave[i] = scale[k].even * sums[i];
          if (has_odd) wave[2 + i] = scale[k].odd * last;
        }
      }
    }
  }

  const int truncation_, latitudes_, blocks_;
  Field sine_, weight_;
  Eights sines_, values_, lines_, sums_, begins_;
  // Index of the first coefficient of each m, of its first step, and of first steps by [m][block].
  std::vector<int> starts_, first_steps_, firsts_;
  std::vector<Step> steps_;
  std::vector<Scale> scales_;
  Field epsilons_, folded_;
  std::array<Waves, most_fields> own_;
};

// Fourier transforms along eight latitudes at once. Their length is a power of two, at least 8;
// each is done as a transform of half as many complex numbers.
class Fourier {
 public:
  explicit Fourier(int length)
      : half_(length / 2), from_(at(length)), to_(from_.size()), unwanted_(from_.size()) {
    for (int k = 0; k <= half_; ++k) turns_.push_back(std::polar(1.0, 2 * M_PI * k / length));
    for (int size = half_; size >= 4; size /= 4) {
      for (int p = 0; p < size / 4; ++p) {
        for (int i = 1; i <= 3; ++i) {
          const Complex turn = std::polar(1.0, -2 * M_PI * i * p / size);
          passes_.insert(passes_.end(), {turn.real(), turn.imag()});
        }
      }
    }
  }

  // Computes real values along eight latitudes from the waves m = 0, …, most: the sums of line[m]
  // exp(i m x) and its conjugate. A row may be nullptr if it is not wanted.
  void to_rows(const Eight* line, int most, const std::array<double*, 8>& rows) {
    with_loops([&](auto loops) {
      loops.to_half(line, most, half_, turns_.data(), from_.data());
      carry_out(loops);
    });
    std::array<double*, 8> to;
    for (std::size_t k = 0; k < 8; ++k) to[k] = rows[k] ? rows[k] : unwanted_.data();
    for (int i = 0; i < half_; ++i) {
      const Eight &odd = from_[at(2 * i)], &even = from_[at(2 * i + 1)];
      for (std::size_t k = 0; k < 8; ++k) to[k][2 * i] = even.of[k], to[k][2 * i + 1] = odd.of[k];
    }
  }
  // Computes the waves m = 0, …, most from real values along eight latitudes. The wave m = 0 is the
  // mean.
  void from_rows(const std::array<const double*, 8>& rows, int most, Eight* line) {
    std::array<const double*, 8> from;
    for (std::size_t k = 0; k < 8; ++k) from[k] = rows[k] ? rows[k] : unwanted_.data();
    for (int i = 0; i < 2 * half_; ++i) {
      for (std::size_t k = 0; k < 8; ++k) from_[at(i)].of[k] = from[k][i];
    }
    with_loops([&](auto loops) {
      carry_out(loops);
      loops.from_half(from_.data(), most, half_, turns_.data(), line);
    });
  }

 private:
  template <class Loops>
  void carry_out(const Loops& loops) {
    const double* turns = passes_.data();
    int size = half_, stride = 1;
    for (; size >= 4; turns += 6 * (size / 4), size /= 4, stride *= 4) {
      loops.by_four(from_.data(), to_.data(), size / 4, stride, turns);
      from_.swap(to_);
    }
    if (size == 2) loops.by_two(from_.data(), to_.data(), stride), from_.swap(to_);
  }

  const int half_;
  Eights from_, to_;
  Waves turns_;
  Field passes_;  // twiddle factors of all passes, one pass after the other
  Field unwanted_;
};

}  // namespace harmonics
