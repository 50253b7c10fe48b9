// The solvers of pipecg: classic conjugate gradients, the methods of Chronopoulos and Gear and of
// Gropp, and the pipelined method of Ghysels and Vanroose, in any precision, with residual
// replacement. sparse_communication.h has the communication, and residual_drift.h decides when a
// residual is replaced. Sources: Ghysels, Vanroose, Parallel Computing 40 (2014); van der Vorst,
// Ye, SIAM J. Sci. Comput. 22 (2000), for the replacement; Nakajima et al. 2025 for communication
// by the master thread.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "residual_drift.h"
#include "sparse.h"
#include "sparse_communication.h"

namespace cg {

using sparse::Communication;
using sparse::Matrix;
using sparse::Overlap;

struct Settings {
  sparse::Problem problem;
  // Precision "mixed": matrix and preconditioner in single precision. "mixed-vectors": vectors in
  // single precision, too.
  std::string method = "pipelined", precision = "double", stabilise = "none";
  double tolerance = 1e-8, inner_tolerance = 1e-4;
  int iterations = 2000, threads = 1;
  bool replaces() const { return stabilise == "replacement" || stabilise == "both"; }
  bool refines() const { return stabilise == "refinement" || stabilise == "both"; }
};

struct Outcome {
  int iterations = 0, replacements = 0, refinements = 0;
  double residual = 0;  // residual computed from the solution, relative to the right-hand side
  std::string end;      // why the solver has ended without converging; empty if it has converged
};

// A solver with the matrix in type M, vectors in T, and solution and scalars in S. If residuals are
// replaced, x_ is what was added to the solution since the last replacement, and the sum of these
// is kept in double precision: so small numbers are not added to large ones (group-wise update of
// van der Vorst and Ye).
template <class M, class T, class S>
class Solver {
 public:
  using Vector = std::vector<T>;
  // The inner products (r,u), one more that depends on the method, and (r,r).
  using Products = std::array<S, 3>;

  Solver(const Matrix& matrix, const Settings& settings, Communication* communication)
      : a_(matrix),
        settings_(settings),
        comm_(*communication),
        threads_(settings.threads),
        drift_(no_drift()) {
    const auto length = static_cast<std::size_t>(matrix.rows + matrix.halo());
    for (Vector* vector : {&r_, &u_, &w_, &p_, &s_, &q_, &z_, &m_, &n_}) vector->resize(length);
    x_.resize(length);
    solution_.resize(length);
  }

  // Solves A x = b from x = 0 until the residual is at most `target`, in at most `most` iterations.
  // Returns why it has ended without that; empty on success.
  std::string solve(const std::vector<double>& b, double target, int most, Outcome* outcome) {
    b_ = &b, target_ = target, most_ = most, outcome_ = outcome;
    std::fill(x_.begin(), x_.end(), S(0));
    std::fill(solution_.begin(), solution_.end(), 0.0);
    each([&](int i) { r_[i] = static_cast<T>(b[at(i)]), u_[i] = weight(i) * r_[i]; });
    drift_ = no_drift(), fresh_ = wanted_ = false;
    iterate();
    gather_solution();
    return end_;
  }
  // Returns the solution. It is as long as the other vectors; its halo is not used.
  const std::vector<double>& solution() const { return solution_; }

  // Computes out = A in. Both vectors must have room for the halo.
  void product(Vector* in, Vector* out) { multiply(in, out); }

  // Computes r = b - A x in double precision, whatever the solver's own. The halo of `x` is filled.
  void residual(const std::vector<double>& b, std::vector<double>* x, std::vector<double>* r) {
    comm_.exchange_halo(x);
    each([&](int i) { (*r)[at(i)] = b[at(i)] - row(a_.value, *x, i); });
  }

  // Returns the square of the norm of `v` over all ranks.
  double square(const std::vector<double>& v) {
    std::array<double, 3> sums = {dot<double>(v, v)};
    comm_.sum(&sums);
    return sums[0];
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  template <class Body>
  void each(const Body& body) const {
    const int rows = a_.rows;
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (int i = 0; i < rows; ++i) body(i);
  }

  // Returns this rank's part of the inner product. It adds in chunks, so that the number of threads
  // does not change the order of the additions.
  template <class Sum, class V>
  Sum dot(const V& a, const V& b) const {
    constexpr int chunk = 4096;
    const int rows = a_.rows, chunks = (rows + chunk - 1) / chunk;
    std::vector<Sum> sums(at(chunks));
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (int c = 0; c < chunks; ++c) {
      Sum four[4] = {};
      const int first = c * chunk, last = std::min(rows, first + chunk);
      for (int i = first; i < last; ++i)
        four[i & 3] += static_cast<Sum>(a[at(i)]) * static_cast<Sum>(b[at(i)]);
      sums[at(c)] = (four[0] + four[1]) + (four[2] + four[3]);
    }
    Sum total = 0;
    for (const Sum one : sums) total += one;
    return total;
  }

  T weight(int i) const {
    if constexpr (sizeof(M) == sizeof(double)) return a_.inverse_diagonal[at(i)];
    return static_cast<T>(a_.inverse_diagonal_single[at(i)]);
  }
  template <class Values, class V>
  auto row(const Values& values, const V& x, int i) const {
    // Prefetching makes the product 1.6 times as fast, since the processor's own prefetching is not
    // far enough ahead.
    constexpr int kValuesAhead = 256, kColumnsAhead = 512;
    const int first = a_.start[at(i)], past_all = a_.start.back();
    __builtin_prefetch(values.data() + std::min(first + kValuesAhead, past_all));
    __builtin_prefetch(a_.column.data() + std::min(first + kColumnsAhead, past_all));
    typename V::value_type sum = 0;
    for (int k = first; k < a_.start[at(i + 1)]; ++k) {
      sum += static_cast<typename V::value_type>(values[at(k)]) * x[at(a_.column[at(k)])];
    }
    return sum;
  }
  T row(const Vector& x, int i) const {
    if constexpr (sizeof(M) == sizeof(double)) return row(a_.value, x, i);
    return static_cast<T>(row(a_.value_single, x, i));
  }
  void rows_of(const std::vector<int>& which, const Vector& in, Vector* out) const {
    const int count = static_cast<int>(which.size());
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (int k = 0; k < count; ++k) (*out)[at(which[at(k)])] = row(in, which[at(k)]);
  }

  // Computes out = A in. The halo exchange overlaps with the interior rows if that is asked for.
  void multiply(Vector* in, Vector* out) {
    if (comm_.overlap() == Overlap::master) {
      multiply_beside_master(in, out, nullptr);
    } else if (comm_.overlap() == Overlap::none) {
      comm_.exchange_halo(in);
      rows_of(a_.interior, *in, out);
      rows_of(a_.boundary, *in, out);
    } else {
      comm_.begin_halo(in);
      rows_of(a_.interior, *in, out);
      comm_.end_halo();
      rows_of(a_.boundary, *in, out);
    }
  }

  // Calls prepare(), which computes `in`, and then computes out = A in. Both overlap with the sum
  // of inner products if that is asked for.
  template <class Prepare>
  void multiply(Vector* in, Vector* out, Products* sums, const Prepare& prepare) {
    if (comm_.overlap() == Overlap::master) {
      prepare();
      multiply_beside_master(in, out, sums);
    } else {
      comm_.sum(sums, [&] {
        prepare();
        multiply(in, out);
      });
    }
  }

  // Computes out = A in. The master thread makes blocking MPI calls while the other threads
  // multiply the interior rows.
  void multiply_beside_master(Vector* in, Vector* out, Products* products) {
    const int interior = static_cast<int>(a_.interior.size());
    const int boundary = static_cast<int>(a_.boundary.size());
#pragma omp parallel num_threads(threads_)
    {
#pragma omp master
      {
        if (products) comm_.sum(products);
        comm_.exchange_halo(in);
      }
#pragma omp for schedule(dynamic, 256)
      for (int k = 0; k < interior; ++k) {
        (*out)[at(a_.interior[at(k)])] = row(*in, a_.interior[at(k)]);
      }
#pragma omp for schedule(static)
      for (int k = 0; k < boundary; ++k) {
        (*out)[at(a_.boundary[at(k)])] = row(*in, a_.boundary[at(k)]);
      }
    }
  }

  Products products(S first, S second) {
    return {first, second, dot<S>(r_, r_)};
  }

  // Returns whether the iteration ends; `end_` then says why.
  bool ended(const Products& sums, int iteration) {
    const double norm = std::sqrt(static_cast<double>(sums[2]));
    outcome_->iterations = before_ + iteration;
    if (iteration == 0) first_norm_ = norm;
    if (!std::isfinite(norm) || norm > 1e8 * first_norm_) return end("diverged");
    wanted_ = norm <= target_ && norm > 0 && drifted(sums[0]);
    if (norm <= target_ && !wanted_) return end("");
    fresh_ = false;
    if (iteration >= most_) return end("not converged in " + std::to_string(most_) + " iterations");
    if (!(sums[0] > 0)) return end(not_positive(iteration));
    norm_ = norm;
    return false;
  }
  bool end(const std::string& how) {
    end_ = how;
    before_ = outcome_->iterations;
    return true;
  }
  // Returns whether a replacement has made the residual much larger. It does not fit the old search
  // directions then, so these begin anew.
  bool jumped(const Products& sums) const {
    return fresh_ && std::sqrt(static_cast<double>(sums[2])) > 2 * norm_;
  }
  bool breaks_down(S curvature, int iteration) {
    return curvature > 0 ? false : end(not_positive(iteration));
  }
  static std::string not_positive(int iteration) {
    return "breakdown in iteration " + std::to_string(iteration + 1) +
           ": not positive definite, or too much rounding";
  }

  ResidualDrift no_drift() const {
    const std::string& method = settings_.method;
    const Recurrences recurrences = method == "classic"     ? Recurrences::residual
                                    : method == "pipelined" ? Recurrences::all
                                                            : Recurrences::direction;
    return {recurrences, {unit_roundoff<M>, unit_roundoff<T>, unit_roundoff<S>}, a_.norm};
  }
  bool drifted(S gamma) const {
    return settings_.replaces() && drift_.is_large(static_cast<double>(gamma));
  }
  // Records the step alpha along the search direction, which was made with beta; gamma: (r,u)
  // before the step. Returns whether the residual must be replaced.
  bool replacement_is_due(S alpha, S beta, S gamma) {
    drift_.step(static_cast<double>(alpha), static_cast<double>(beta), static_cast<double>(gamma));
    return wanted_ || drifted(gamma);
  }
  // Computes the residual from the solution, and the vectors that follow from it. directions: also
  // A p. all: also A u and A M⁻¹ A p.
  void replace(bool directions, bool all) {
    gather_solution();
    std::vector<double> exact(at(a_.rows));
    residual(*b_, &solution_, &exact);
    each([&](int i) { r_[i] = static_cast<T>(exact[at(i)]), u_[i] = weight(i) * r_[i]; });
    if (directions) multiply(&p_, &s_);
    if (all) {
      multiply(&u_, &w_);
      each([&](int i) { q_[i] = weight(i) * s_[i]; });
      multiply(&q_, &z_);
    }
    drift_.replaced();
    ++outcome_->replacements;
    fresh_ = true;
  }
  void gather_solution() {
    each([&](int i) { solution_[at(i)] += static_cast<double>(x_[i]), x_[i] = 0; });
  }

  void iterate() {
    if (settings_.method == "classic") return classic();
    if (settings_.method == "chronopoulos-gear") return chronopoulos_gear();
    if (settings_.method == "gropp") return gropp();
    pipelined();
  }

  void classic() {
    Products sums = products(dot<S>(r_, u_), 0);
    comm_.sum(&sums);
    each([&](int i) { p_[i] = u_[i]; });
    S beta = 0;
    for (int k = 0; !ended(sums, k); ++k) {
      multiply(&p_, &s_);
      Products curvature = {dot<S>(p_, s_)};
      comm_.sum(&curvature);
      if (breaks_down(curvature[0], k)) break;
      const S gamma = sums[0], alpha = gamma / curvature[0];
      each([&](int i) { r_[i] -= T(alpha) * s_[i], u_[i] = weight(i) * r_[i]; });
      if (replacement_is_due(alpha, beta, gamma)) {
        add_to_solution(alpha);
        replace(false, false);
        comm_.sum(&(sums = products(dot<S>(r_, u_), 0)));
      } else {
        comm_.sum(&(sums = products(dot<S>(r_, u_), 0)), [&] { add_to_solution(alpha); });
      }
      beta = jumped(sums) ? S(0) : sums[0] / gamma;
      each([&](int i) { p_[i] = u_[i] + T(beta) * p_[i]; });
    }
  }

  void chronopoulos_gear() {
    multiply(&u_, &w_);
    S alpha = 0, gamma = 0, missing = 0;  // step that was not yet added to the solution
    for (int k = 0;; ++k) {
      Products sums = products(dot<S>(r_, u_), dot<S>(w_, u_));
      comm_.sum(&sums, [&] { add_to_solution(missing); });
      const bool anew = k == 0 || jumped(sums);
      if (ended(sums, k)) break;
      const S beta = anew ? S(0) : sums[0] / gamma;
      const S curvature = sums[1] - (anew ? S(0) : beta * sums[0] / alpha);
      if (breaks_down(curvature, k)) break;
      gamma = sums[0], alpha = gamma / curvature;
      each([&](int i) {
        p_[i] = u_[i] + T(beta) * p_[i], s_[i] = w_[i] + T(beta) * s_[i];
        r_[i] -= T(alpha) * s_[i], u_[i] = weight(i) * r_[i];
      });
      missing = alpha;
      if (replacement_is_due(alpha, beta, gamma)) {
        add_to_solution(alpha);
        missing = 0;
        replace(true, false);
      }
      multiply(&u_, &w_);
    }
  }

  void gropp() {
    Products sums = products(dot<S>(r_, u_), 0);
    comm_.sum(&sums);
    each([&](int i) { p_[i] = u_[i]; });
    multiply(&p_, &s_);
    S beta = 0;
    for (int k = 0; !ended(sums, k); ++k) {
      Products curvature = {dot<S>(p_, s_)};
      comm_.sum(&curvature, [&] { each([&](int i) { q_[i] = weight(i) * s_[i]; }); });
      if (breaks_down(curvature[0], k)) break;
      const S gamma = sums[0], alpha = gamma / curvature[0];
      add_to_solution(alpha);
      each([&](int i) { r_[i] -= T(alpha) * s_[i], u_[i] -= T(alpha) * q_[i]; });
      if (replacement_is_due(alpha, beta, gamma)) replace(true, false);
      sums = products(dot<S>(r_, u_), 0);
      multiply(&u_, &w_, &sums, [] {});
      beta = jumped(sums) ? S(0) : sums[0] / gamma;
      each([&](int i) { p_[i] = u_[i] + T(beta) * p_[i], s_[i] = w_[i] + T(beta) * s_[i]; });
    }
  }

  void pipelined() {
    multiply(&u_, &w_);
    S alpha = 0, gamma = 0;
    for (int k = 0;; ++k) {
      Products sums = products(dot<S>(r_, u_), dot<S>(w_, u_));
      multiply(&m_, &n_, &sums, [&] { each([&](int i) { m_[i] = weight(i) * w_[i]; }); });
      const bool anew = k == 0 || jumped(sums);
      if (ended(sums, k)) break;
      const S beta = anew ? S(0) : sums[0] / gamma;
      const S curvature = sums[1] - (anew ? S(0) : beta * sums[0] / alpha);
      if (breaks_down(curvature, k)) break;
      gamma = sums[0], alpha = gamma / curvature;
      const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
      each([&](int i) {
        z_[i] = n_[i] + b * z_[i], q_[i] = m_[i] + b * q_[i];
        s_[i] = w_[i] + b * s_[i], p_[i] = u_[i] + b * p_[i];
        x_[i] += alpha * static_cast<S>(p_[i]), r_[i] -= a * s_[i];
        u_[i] -= a * q_[i], w_[i] -= a * z_[i];
      });
      if (replacement_is_due(alpha, beta, gamma)) replace(true, true);
    }
  }

  void add_to_solution(S alpha) {
    each([&](int i) { x_[i] += alpha * static_cast<S>(p_[i]); });
  }

  const Matrix& a_;
  const Settings& settings_;
  Communication& comm_;
  int threads_;
  Vector r_, u_, w_, p_, s_, q_, z_, m_, n_;
  std::vector<S> x_;
  std::vector<double> solution_;  // solution without what is in x_
  const std::vector<double>* b_ = nullptr;
  double target_ = 0, norm_ = 0, first_norm_ = 0;
  ResidualDrift drift_;
  int most_ = 0, before_ = 0;
  // Whether the residual was just replaced, and whether it must be replaced at once.
  bool fresh_ = false, wanted_ = false;
  Outcome* outcome_ = nullptr;
  std::string end_;
};

}  // namespace cg
