// The transforms of kernels/atmosphere with each of this processor's vector instruction sets. They
// are compared with sums of functions that are computed by their own recurrence, and with Fourier
// sums.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "../../kernels/atmosphere_harmonics.h"

namespace {

using harmonics::at, harmonics::Complex, harmonics::Eight, harmonics::Field, harmonics::Harmonics;

class Transforms : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { harmonics::widest = GetParam(); }
  void TearDown() override { harmonics::widest = 8; }

  Complex random() { return {even_(generator_), even_(generator_)}; }

 private:
  std::mt19937 generator_{1};
  std::uniform_real_distribution<double> even_{-1, 1};
};

// Returns P(n, m) for n = m … most, in a format that can represent the smallest values.
std::vector<long double> functions(int most, int m, long double x) {
  const auto epsilon = [m](long double n) { return std::sqrt((n * n - m * m) / (4 * n * n - 1)); };
  std::vector<long double> made(1, std::sqrt(0.5L));
  for (int k = 1; k <= m; ++k) made[0] *= std::sqrt((2 * k + 1) / (2.0L * k) * (1 - x * x));
  for (int n = m + 1; n <= most; ++n) {
    const long double before = n > m + 1 ? epsilon(n - 1) * made[at(n - 2 - m)] : 0;
    made.push_back((x * made.back() - before) / epsilon(n));
  }
  return made;
}

struct Size {
  int truncation, latitudes;
};
constexpr Size sizes[] = {{2, 4}, {5, 8}, {10, 16}, {21, 32}, {42, 64}, {85, 128}, {340, 512}};

TEST_P(Transforms, OfWavesAreTheirSums) {
  for (const auto [truncation, latitudes] : sizes) {
    Harmonics harmonics(truncation, latitudes);
    std::vector<std::array<harmonics::Waves, 3>> waves(at(truncation + 1));
    for (int m = 0; m <= truncation; ++m) {
      for (auto& one : waves[at(m)]) {
        for (int n = m; n <= truncation + 1; ++n) one.push_back(random());
      }
    }
    harmonics.to_latitudes<3>(0, latitudes, [&](int m, auto* own) {
      for (std::size_t f = 0; f < 3; ++f) {
        std::copy(waves[at(m)][f].begin(), waves[at(m)][f].end(), (*own)[f].begin());
      }
    });
    for (int m = 0; m <= truncation; m += 1 + truncation / 7) {
      for (int j = 0; j < latitudes; ++j) {
        const auto p = functions(truncation + 1, m, harmonics.sine(j));
        const bool south = j >= latitudes / 2;
        const int pair = south ? latitudes - 1 - j : j;
        for (int f = 0; f < 3; ++f) {
          std::complex<long double> sum = 0;
          for (std::size_t k = 0; k < p.size(); ++k) {
            sum += p[k] * std::complex<long double>(waves[at(m)][at(f)][k]);
          }
          const Eight* line = harmonics.line(f, pair / 8, south) + 2 * m;
          const Complex found(line[0].of[pair % 8], line[1].of[pair % 8]);
          ASSERT_LT(std::abs(found - Complex(sum)), 2e-12 * latitudes)
              << "T" << truncation << ", m = " << m << ", latitude " << j;
        }
      }
    }
  }
}

// Also tests the wave number of the derivative, which is one more than the truncation.
TEST_P(Transforms, OfLatitudesGiveTheWavesBack) {
  for (const auto [truncation, latitudes] : sizes) {
    Harmonics harmonics(truncation, latitudes);
    Field weights;
    for (int j = 0; j < latitudes; ++j) weights.push_back(harmonics.weight(j));
    for (int m = 0; m <= truncation; m += 1 + truncation / 7) {
      std::vector<Complex> waves[2];
      for (auto& one : waves) {
        for (int n = m; n <= truncation + 1; ++n) one.push_back(random());
      }
      std::vector<std::array<Complex, 2>> values(at(latitudes));
      for (int j = 0; j < latitudes; ++j) {
        const auto p = functions(truncation + 1, m, harmonics.sine(j));
        for (std::size_t k = 0; k < p.size(); ++k) {
          for (std::size_t f = 0; f < 2; ++f) {
            values[at(j)][f] += static_cast<double>(p[k]) * waves[f][k];
          }
        }
      }
      for (int f = 0; f < 2; ++f) {
        Field real, imaginary;
        for (const auto& one : values) {
          real.push_back(one[at(f)].real()), imaginary.push_back(one[at(f)].imag());
        }
        harmonics.set(f, false, real.data(), weights);
        harmonics.set(f, true, imaginary.data(), weights);
      }
      const auto& found = harmonics.to_waves<2>(m);
      for (std::size_t f = 0; f < 2; ++f) {
        for (std::size_t k = 0; k < waves[f].size(); ++k) {
          ASSERT_LT(std::abs(found[f][k] - waves[f][k]), 1e-12)
              << "T" << truncation << ", m = " << m << ", n = m + " << k;
        }
      }
    }
  }
}

TEST_P(Transforms, OfFourierAreItsSums) {
  for (int length = 8; length <= 256; length *= 2) {
    harmonics::Fourier fourier(length);
    const int most = (length - 1) / 3;
    std::vector<Eight> line(at(2 * (most + 1))), back(line.size());
    for (Eight& one : line) {
      for (double& value : one.of) value = random().real();
    }
    for (double& value : line[1].of) value = 0;  // the wave m = 0 is real
    std::vector<Field> rows(8, Field(at(length)));
    std::array<double*, 8> wanted;
    std::array<const double*, 8> given;
    for (std::size_t k = 0; k < 8; ++k) wanted[k] = rows[k].data(), given[k] = rows[k].data();
    wanted[3] = nullptr;  // no result is wanted, so the buffer stays unchanged
    fourier.to_rows(line.data(), most, wanted);
    for (std::size_t k = 0; k < 8; ++k) {
      for (int i = 0; i < length; ++i) {
        double sum = line[0].of[k];
        for (int m = 1; m <= most; ++m) {
          const Complex wave(line[at(2 * m)].of[k], line[at(2 * m + 1)].of[k]);
          sum += 2 * (wave * std::polar(1.0, 2 * M_PI * m * i / length)).real();
        }
        ASSERT_NEAR(rows[k][at(i)], k == 3 ? 0 : sum, 1e-12) << length << ", row " << k;
      }
    }
    fourier.from_rows(given, most, back.data());
    for (std::size_t i = 0; i < line.size(); ++i) {
      for (std::size_t k = 0; k < 8; ++k) {
        ASSERT_NEAR(back[i].of[k], k == 3 ? 0 : line[i].of[k], 1e-14) << length << ", row " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, Transforms, testing::Values(2, 4, 8));

}  // namespace
