// Compares the estimate of a residual's drift with the drift itself, which is b - A x minus the
// recurrence's residual, in the pipelined method on a small cube of random conductivities.
#include "../../kernels/residual_drift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace {

using Vector = std::vector<double>;

// A cube whose cells conduct to their neighbours and, a little, to the outside.
struct Cube {
  static constexpr int side = 10, cells = side * side * side;
  struct Face {
    int one, other;
    double value;
  };
  std::vector<Face> faces;
  Vector diagonal = Vector(cells, 0.01);

  Cube() {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> value(0.1, 2.0);
    for (int cell = 0; cell < cells; ++cell) {
      for (const int stride : {1, side, side * side}) {
        if (cell / stride % side == side - 1) continue;
        faces.push_back({cell, cell + stride, value(random)});
        diagonal[at(cell)] += faces.back().value, diagonal[at(cell + stride)] += faces.back().value;
      }
    }
  }
  static std::size_t at(int cell) { return static_cast<std::size_t>(cell); }
  // The matrix has entries of type M. Sums are of type T.
  template <class M, class T>
  std::vector<T> times(const std::vector<T>& x) const {
    std::vector<T> y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<T>(M(diagonal[i])) * x[i];
    for (const Face& face : faces) {
      const T value = static_cast<T>(M(face.value));
      y[at(face.one)] -= value * x[at(face.other)], y[at(face.other)] -= value * x[at(face.one)];
    }
    return y;
  }
};

template <class V>
double dot(const V& a, const V& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

// Solves in these precisions, and calls show() after some of the iterations.
template <class M, class T>
void iterate(const Cube& cube, const Vector& b, int iterations, cg::ResidualDrift drift,
             const std::function<void(const cg::ResidualDrift&, const Vector& drifted,
                                      const Vector& x)>& show) {
  const std::size_t n = b.size();
  const auto scaled = [&](const std::vector<T>& v) {
    std::vector<T> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(M(1 / cube.diagonal[i])) * v[i];
    return out;
  };
  Vector x(n);
  std::vector<T> r(b.begin(), b.end()), u = scaled(r), w = cube.times<M>(u), p(n), s(n), q(n), z(n);
  double alpha = 0, gamma = 0;
  for (int k = 0; k < iterations; ++k) {
    const double now = dot(r, u), beta = k ? now / gamma : 0;
    alpha = now / (dot(w, u) - (k ? beta * now / alpha : 0)), gamma = now;
    const std::vector<T> m = scaled(w), v = cube.times<M>(m);
    for (std::size_t i = 0; i < n; ++i) {
      const T by = static_cast<T>(beta), step = static_cast<T>(alpha);
      z[i] = v[i] + by * z[i], q[i] = m[i] + by * q[i], s[i] = w[i] + by * s[i];
      p[i] = u[i] + by * p[i], x[i] += alpha * double(p[i]);
      r[i] -= step * s[i], u[i] -= step * q[i], w[i] -= step * z[i];
    }
    drift.step(alpha, beta, gamma);
    Vector drifted = cube.times<double>(x);
    for (std::size_t i = 0; i < n; ++i) drifted[i] = b[i] - drifted[i] - double(r[i]);
    show(drift, drifted, x);
  }
}

template <class M, class T>
void expect_between(double least, double most) {
  const Cube cube;
  const Vector b = cube.times<double>(Vector(Cube::cells, 1.0));
  const cg::Roundings unit = {cg::unit_roundoff<M>, cg::unit_roundoff<T>,
                              cg::unit_roundoff<double>};
  int iteration = 0;
  iterate<M, T>(cube, b, 30, {cg::Recurrences::all, unit, 2},
                [&](const cg::ResidualDrift& drift, const Vector& drifted, const Vector& x) {
                  double of_r = 0, of_x = 0;
                  for (std::size_t i = 0; i < x.size(); ++i) {
                    of_r += drifted[i] * drifted[i] / cube.diagonal[i];
                    of_x += x[i] * x[i] * cube.diagonal[i];
                  }
                  SCOPED_TRACE(++iteration);
                  EXPECT_NEAR(drift.way(), std::sqrt(of_x), 0.01 * std::sqrt(of_x));
                  EXPECT_GT(drift.estimate(), least * std::sqrt(of_r));
                  EXPECT_LT(drift.estimate(), most * std::sqrt(of_r));
                });
}

TEST(ResidualDrift, IsThatOfARoundedMatrix) {
  expect_between<float, double>(1, 20);
}

TEST(ResidualDrift, IsThatOfRoundedVectorsWhoseErrorsPassOn) {
  expect_between<double, float>(1, 100);
  expect_between<float, float>(1, 100);
}

TEST(ResidualDrift, BeginsAnewWhenTheResidualWasReplaced) {
  cg::ResidualDrift drift(cg::Recurrences::all, {1e-3, 1e-3, 1e-3}, 2);
  drift.step(1, 0, 1);
  EXPECT_GT(drift.estimate(), 0);
  EXPECT_TRUE(drift.is_large(1e-9)) << "beside a residual that became small";
  drift.replaced();
  EXPECT_EQ(drift.estimate(), 0);
  EXPECT_FALSE(drift.is_large(1e-9));
  drift.step(1, 0.5, 1);
  EXPECT_NEAR(drift.way(), std::sqrt(1.25), 1e-12) << "of the last step alone";
}

}  // namespace
