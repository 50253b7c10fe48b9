// atmosphere_harmonics.h: spherical harmonics up to a wave number, and sums along a latitude. Why
// apart: they are what the model is written in, and know nothing of time steps or ranks.
#pragma once
#include <cmath>
#include <complex>
#include <cstddef>
#include <utility>
#include <vector>

namespace harmonics {

using Complex = std::complex<double>;
using Waves = std::vector<Complex>;
using Field = std::vector<double>;

inline std::size_t at(std::ptrdiff_t place) {
  return static_cast<std::size_t>(place);
}

// Gauss's latitudes, and associated Legendre functions P(n, m) there, with H = (1 - sin²) dP/dsin.
class Harmonics {
 public:
  Harmonics(int truncation, int latitudes) : most_(truncation), latitudes_(latitudes) {
    starts_.push_back(0);
    for (int m = 0; m <= most_; ++m) starts_.push_back(starts_.back() + most_ + 1 - m);
    p_.resize(at(latitudes_ * count())), h_.resize(p_.size());
    for (int j = 0; j < latitudes_; ++j) {
      add_latitude(j);
      for (int m = 0; m <= most_; ++m) add_functions(j, m);
    }
  }
  int count() const { return starts_.back(); }
  int start(int m) const { return starts_[at(m)]; }
  const double* p(int j, int m) const { return p_.data() + j * count() + start(m); }
  const double* h(int j, int m) const { return h_.data() + j * count() + start(m); }
  double sine(int j) const { return sine_[at(j)]; }
  double weight(int j) const { return weight_[at(j)]; }

 private:
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
    sine_.push_back(x), weight_.push_back(2 / ((1 - x * x) * slope * slope));
  }
  // Their squares have the integral 1.
  void add_functions(int j, int m) {
    const double x = sine(j);
    const auto epsilon = [m](int n) {
      return std::sqrt((1.0 * n * n - m * m) / (4.0 * n * n - 1));
    };
    Field p(at(most_ + 2 - m));
    p[0] = std::sqrt(0.5);
    for (int k = 1; k <= m; ++k) p[0] *= std::sqrt((2.0 * k + 1) / (2.0 * k) * (1 - x * x));
    for (int n = m + 1; n <= most_ + 1; ++n) {
      const double before = n > m + 1 ? epsilon(n - 1) * p[at(n - 2 - m)] : 0;
      p[at(n - m)] = (x * p[at(n - 1 - m)] - before) / epsilon(n);
    }
    for (int n = m; n <= most_; ++n) {
      const double before = n > m ? (n + 1) * epsilon(n) * p[at(n - 1 - m)] : 0;
      const std::size_t place = at(j * count() + start(m) + n - m);
      p_[place] = p[at(n - m)], h_[place] = before - n * epsilon(n + 1) * p[at(n + 1 - m)];
    }
  }

  const int most_, latitudes_;
  std::vector<int> starts_;
  Field p_, h_, sine_, weight_;
};

// Fourier sums along latitudes of one length, a power of two.
class Fourier {
 public:
  explicit Fourier(int length) : length_(length) {
    for (int size = 2; size <= length; size *= 2) {
      for (int k = 0; k < size / 2; ++k) turns_.push_back(std::polar(1.0, 2 * M_PI * k / size));
    }
    for (int i = 1, j = 0; i < length; ++i) {
      int bit = length / 2;
      for (; j & bit; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) swaps_.emplace_back(i, j);
    }
  }

  // The sums of line[m] exp(i m x), in place; forward: of exp(-i m x).
  template <bool forward>
  void carry_out(Complex* line) const {
    for (const auto& [one, other] : swaps_) std::swap(line[one], line[other]);
    const Complex* turn = turns_.data();
    for (int half = 1; half < length_; turn += half, half *= 2) {
      for (int i = 0; i < length_; i += 2 * half) {
        for (int k = i; k < i + half; ++k) {
          const double a = turn[k - i].real(),
                       b = forward ? -turn[k - i].imag() : turn[k - i].imag();
          const Complex one = line[k], raw = line[k + half];
          const Complex other(a * raw.real() - b * raw.imag(), a * raw.imag() + b * raw.real());
          line[k] = one + other, line[k + half] = one - other;
        }
      }
    }
  }

 private:
  const int length_;
  Waves turns_;  // of each size in turn
  std::vector<std::pair<int, int>> swaps_;
};

}  // namespace harmonics
