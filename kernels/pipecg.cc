// pipecg: conjugate gradients whose inner products travel behind the product with the matrix:
// classic, Chronopoulos and Gear's, Gropp's, and Ghysels and Vanroose's pipelined method, in
// double, mixed and single precision, stabilised by residual replacement, iterative refinement or
// both. Why: the finding that hiding all communication wins 27 % and only the halo's 6 % less
// (jh250041). Sources: Ghysels, Vanroose, Parallel Computing 40 (2014); van der Vorst, Ye, SIAM J.
// Sci. Comput. 22 (2000), for when to replace; Nakajima et al. 2025 for the communication on the
// master thread.
#include <mpi.h>

#include <array>
#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sparse.h"
#include "sparse_communication.h"
#include "trials.h"

namespace {

using sparse::Communication;
using sparse::Matrix;
using sparse::Overlap;

struct Settings {
  sparse::Problem problem;
  // mixed: single precision for matrix and preconditioner; mixed-vectors: for the vectors, too.
  std::string method = "pipelined", precision = "double", stabilise = "none";
  double tolerance = 1e-8, inner_tolerance = 1e-4;
  int iterations = 2000, threads = 1;
  bool replaces() const { return stabilise == "replacement" || stabilise == "both"; }
  bool refines() const { return stabilise == "refinement" || stabilise == "both"; }
};

struct Outcome {
  int iterations = 0, replacements = 0, refinements = 0;
  double residual = 0;  // the true one, relative to the right-hand side
  std::string end;      // empty: converged
};

// ---- The solver: matrix of type M, vectors of T, solution and scalars of S ----------------------

template <class M, class T, class S>
class Solver {
 public:
  using Vector = std::vector<T>;
  using Products = std::array<S, 4>;  // (r,u), another one, (r,r), (x,x)

  Solver(const Matrix& matrix, const Settings& settings, Communication* communication)
      : a_(matrix), settings_(settings), comm_(*communication), threads_(settings.threads) {
    const auto length = static_cast<std::size_t>(matrix.rows + matrix.halo());
    for (Vector* vector : {&r_, &u_, &w_, &p_, &s_, &q_, &z_, &m_, &n_}) vector->resize(length);
    x_.resize(length);
    inexact_.resize(length);
  }

  // Solves A x = b from x = 0 down to a residual of `target`. Why it ended; empty: it is there.
  std::string solve(const std::vector<double>& b, double target, int most, Outcome* outcome) {
    b_ = &b, target_ = target, most_ = most, outcome_ = outcome;
    std::fill(x_.begin(), x_.end(), S(0));
    each([&](int i) { r_[i] = static_cast<T>(b[at(i)]), u_[i] = weight(i) * r_[i]; });
    drift_ = drift_at_start_ = 0, last_norm_ = 0, fresh_ = wanted_ = false;
    if (settings_.method == "classic") return classic();
    if (settings_.method == "chronopoulos-gear") return chronopoulos_gear();
    if (settings_.method == "gropp") return gropp();
    return pipelined();
  }
  const std::vector<S>& solution() const { return x_; }

  // b - A x in double precision, whatever the solver's own; `x` gets its halo.
  void residual(const std::vector<double>& b, std::vector<double>* x, std::vector<double>* r) {
    comm_.exchange_halo(x);
    each([&](int i) { (*r)[at(i)] = b[at(i)] - row(a_.value, *x, i); });
  }

  // Squared norm over all ranks.
  double square(const std::vector<double>& v) {
    std::array<double, 4> sums = {dot<double>(v, v)};
    comm_.sum(&sums);
    return sums[0];
  }

 private:
  static constexpr double eps = std::numeric_limits<M>::epsilon() / 2;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  template <class Body>
  void each(const Body& body) const {
    const int rows = a_.rows;
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (int i = 0; i < rows; ++i) body(i);
  }

  // In chunks, so that the number of threads does not change the order of the additions.
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
    typename V::value_type sum = 0;
    for (int k = a_.start[at(i)]; k < a_.start[at(i + 1)]; ++k) {
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

  // out = A in, while the halo travels; with `products`, these are summed over all ranks meanwhile.
  void multiply(Vector* in, Vector* out, Products* products = nullptr) {
    if (comm_.overlap() == Overlap::master) {
      multiply_beside_master(in, out, products);
    } else if (comm_.overlap() == Overlap::none) {
      if (products) comm_.sum(products);
      comm_.exchange_halo(in);
      rows_of(a_.interior, *in, out);
      rows_of(a_.boundary, *in, out);
    } else if (products) {
      comm_.sum(products, [&] { multiply(in, out); });
    } else {
      comm_.begin_halo(in);
      rows_of(a_.interior, *in, out);
      comm_.end_halo();
      rows_of(a_.boundary, *in, out);
    }
  }

  // The master thread communicates, blocking, while the others multiply the interior rows.
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
    const S norm = dot<S>(r_, r_);
    return {first, second, norm, settings_.replaces() ? dot<S>(x_, x_) : S(0)};
  }

  // True: the iteration ends, and `end_` says how.
  bool ended(const Products& sums, int iteration) {
    const double norm = std::sqrt(static_cast<double>(sums[2]));
    outcome_->iterations = before_ + iteration;
    if (iteration == 0) first_norm_ = norm;
    if (!std::isfinite(norm) || norm > 1e8 * first_norm_) return end("diverged");
    if (norm <= target_ && (fresh_ || !settings_.replaces())) return end("");
    wanted_ = norm <= target_;  // a recurrence is believed once the residual was replaced
    fresh_ = false;
    if (iteration >= most_) return end("not converged in " + std::to_string(most_) + " iterations");
    if (!(sums[0] > 0)) return end(not_positive(iteration));
    norm_ = norm, solution_norm_ = std::sqrt(static_cast<double>(sums[3]));
    return false;
  }
  bool end(const std::string& how) {
    end_ = how;
    before_ = outcome_->iterations;
    return true;
  }
  // A residual that grows as it is replaced belongs to no old direction: these begin anew.
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

  // Van der Vorst and Ye: replace where the recurrence's residual may have drifted from the true
  // one.
  bool replacement_is_due() {
    if (!settings_.replaces()) return false;
    if (wanted_) return true;
    const double level = std::sqrt(eps), before = drift_;
    drift_ += eps * (norm_ + 7 * a_.norm * solution_norm_);
    if (drift_at_start_ == 0) drift_at_start_ = drift_;
    const bool due = last_norm_ > 0 && before <= level * last_norm_ && drift_ > level * norm_ &&
                     drift_ > 1.1 * drift_at_start_;
    last_norm_ = norm_;
    return due;
  }
  // The residual from the solution, and what follows from it; `pipelined`: all recurrences.
  void replace(bool directions, bool all) {
    for (std::size_t i = 0; i < x_.size(); ++i) inexact_[i] = static_cast<double>(x_[i]);
    std::vector<double> exact(at(a_.rows));
    residual(*b_, &inexact_, &exact);
    each([&](int i) { r_[i] = static_cast<T>(exact[at(i)]), u_[i] = weight(i) * r_[i]; });
    if (directions) multiply(&p_, &s_);
    if (all) {
      multiply(&u_, &w_);
      each([&](int i) { q_[i] = weight(i) * s_[i]; });
      multiply(&q_, &z_);
    }
    drift_ = drift_at_start_ = eps * (norm_ + 7 * a_.norm * solution_norm_);
    ++outcome_->replacements;
    fresh_ = true;
  }

  std::string classic() {
    Products sums = products(dot<S>(r_, u_), 0);
    comm_.sum(&sums);
    each([&](int i) { p_[i] = u_[i]; });
    for (int k = 0; !ended(sums, k); ++k) {
      multiply(&p_, &s_);
      Products curvature = {dot<S>(p_, s_)};
      comm_.sum(&curvature);
      if (breaks_down(curvature[0], k)) break;
      const S gamma = sums[0], alpha = gamma / curvature[0];
      each([&](int i) { r_[i] -= T(alpha) * s_[i], u_[i] = weight(i) * r_[i]; });
      if (replacement_is_due()) {
        add_to_solution(alpha);
        replace(false, false);
        comm_.sum(&(sums = products(dot<S>(r_, u_), 0)));
      } else {
        comm_.sum(&(sums = products(dot<S>(r_, u_), 0)), [&] { add_to_solution(alpha); });
      }
      const T beta = jumped(sums) ? T(0) : static_cast<T>(sums[0] / gamma);
      each([&](int i) { p_[i] = u_[i] + beta * p_[i]; });
    }
    return end_;
  }

  std::string chronopoulos_gear() {
    multiply(&u_, &w_);
    S alpha = 0, gamma = 0;
    for (int k = 0;; ++k) {
      Products sums = products(dot<S>(r_, u_), dot<S>(w_, u_));
      comm_.sum(&sums, [&] { add_to_solution(alpha); });  // of the iteration before
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
      if (replacement_is_due()) {
        // The step belongs into the solution first; the next iteration must not add it again.
        add_to_solution(alpha);
        replace(true, false);
        each([&](int i) { x_[i] -= alpha * static_cast<S>(p_[i]); });
      }
      multiply(&u_, &w_);
    }
    return end_;
  }

  std::string gropp() {
    Products sums = products(dot<S>(r_, u_), 0);
    comm_.sum(&sums);
    each([&](int i) { p_[i] = u_[i]; });
    multiply(&p_, &s_);
    for (int k = 0; !ended(sums, k); ++k) {
      Products curvature = {dot<S>(p_, s_)};
      comm_.sum(&curvature, [&] { each([&](int i) { q_[i] = weight(i) * s_[i]; }); });
      if (breaks_down(curvature[0], k)) break;
      const S gamma = sums[0], alpha = gamma / curvature[0];
      add_to_solution(alpha);
      each([&](int i) { r_[i] -= T(alpha) * s_[i], u_[i] -= T(alpha) * q_[i]; });
      if (replacement_is_due()) replace(true, false);
      sums = products(dot<S>(r_, u_), 0);
      multiply(&u_, &w_, &sums);
      const T beta = jumped(sums) ? T(0) : static_cast<T>(sums[0] / gamma);
      each([&](int i) { p_[i] = u_[i] + beta * p_[i], s_[i] = w_[i] + beta * s_[i]; });
    }
    return end_;
  }

  std::string pipelined() {
    multiply(&u_, &w_);
    S alpha = 0, gamma = 0;
    for (int k = 0;; ++k) {
      Products sums = products(dot<S>(r_, u_), dot<S>(w_, u_));
      each([&](int i) { m_[i] = weight(i) * w_[i]; });
      multiply(&m_, &n_, &sums);
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
      if (replacement_is_due()) replace(true, true);
    }
    return end_;
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
  std::vector<double> inexact_;
  const std::vector<double>* b_ = nullptr;
  double target_ = 0, norm_ = 0, first_norm_ = 0, solution_norm_ = 0;
  double drift_ = 0, drift_at_start_ = 0, last_norm_ = 0;
  int most_ = 0, before_ = 0;
  bool fresh_ = false, wanted_ = false;  // just replaced; to be replaced at once
  Outcome* outcome_ = nullptr;
  std::string end_;
};

// ---- One solution, refined or not ---------------------------------------------------------------

// Iterative refinement: corrections in the solver's precision, residuals in double.
template <class M, class T, class S>
std::string refine(Solver<M, T, S>* solver, const Settings& settings, const std::vector<double>& b,
                   std::vector<double>* x, Outcome* outcome) {
  std::vector<double> r = b;
  const double target = settings.tolerance * std::sqrt(solver->square(b));
  double norm = std::sqrt(solver->square(r)), best = norm;
  while (norm > target) {
    const int left = settings.iterations - outcome->iterations;
    if (left <= 0) return "not converged in " + std::to_string(settings.iterations) + " iterations";
    for (double& value : r) value /= norm;
    const double inner = std::max(settings.inner_tolerance, 0.5 * target / norm);
    const std::string end = solver->solve(r, inner, left, outcome);
    for (std::size_t i = 0; i < b.size(); ++i) {
      (*x)[i] += norm * static_cast<double>(solver->solution()[i]);
    }
    solver->residual(b, x, &r);
    ++outcome->refinements;
    norm = std::sqrt(solver->square(r));
    if (!std::isfinite(norm)) return "diverged";
    if (norm > 0.9 * best) return end.empty() ? "refinement gains nothing any more" : end;
    best = norm;
  }
  return "";
}

template <class M, class T, class S>
Outcome solve_in(const Matrix& matrix, const Settings& settings, Communication* communication,
                 const std::vector<double>& b, std::vector<double>* x) {
  Outcome outcome;
  Solver<M, T, S> solver(matrix, settings, communication);
  x->assign(static_cast<std::size_t>(matrix.rows + matrix.halo()), 0.0);
  const double norm = std::sqrt(solver.square(b));
  if (settings.refines()) {
    outcome.end = refine(&solver, settings, b, x, &outcome);
  } else {
    outcome.end = solver.solve(b, settings.tolerance * norm, settings.iterations, &outcome);
    for (std::size_t i = 0; i < b.size(); ++i) (*x)[i] = static_cast<double>(solver.solution()[i]);
  }
  std::vector<double> r(b.size());
  solver.residual(b, x, &r);
  outcome.residual = std::sqrt(solver.square(r)) / norm;
  if (outcome.end.empty() && !(outcome.residual <= 2 * settings.tolerance)) {
    outcome.end = "the recurrence converged, the true residual did not";
  }
  return outcome;
}

Outcome solve(const Matrix& matrix, const Settings& settings, Communication* communication,
              const std::vector<double>& b, std::vector<double>* x) {
  const std::string& precision = settings.precision;
  if (precision == "double") {
    return solve_in<double, double, double>(matrix, settings, communication, b, x);
  }
  if (precision == "mixed") {
    return solve_in<float, double, double>(matrix, settings, communication, b, x);
  }
  if (precision == "mixed-vectors") {
    return solve_in<float, float, double>(matrix, settings, communication, b, x);
  }
  return solve_in<float, float, float>(matrix, settings, communication, b, x);
}

// ---- The program --------------------------------------------------------------------------------

// A right-hand side whose solution is known: 1 + sin(row).
std::vector<double> known_solution(const Matrix& matrix) {
  std::vector<double> x(static_cast<std::size_t>(matrix.rows));
  for (int i = 0; i < matrix.rows; ++i)
    x[static_cast<std::size_t>(i)] = 1 + std::sin(matrix.first + i);
  return x;
}

std::vector<double> right_hand_side(const Matrix& matrix, std::vector<double> x) {
  trials::Variant plain = trials::variant("blocking");
  std::vector<double> b(x.size()), zero(x.size());
  {
    Communication communication(matrix, Overlap::none, &plain);
    const Settings settings;
    Solver<double, double, double> solver(matrix, settings, &communication);
    x.resize(static_cast<std::size_t>(matrix.rows + matrix.halo()));
    solver.residual(zero, &x, &b);
  }
  for (double& value : b) value = -value;
  MPI_Comm_free(&plain.comm);
  return b;
}

double error_of(const std::vector<double>& x, const std::vector<double>& known) {
  double sums[2] = {0, 0};
  for (std::size_t i = 0; i < known.size(); ++i) {
    sums[0] += (x[i] - known[i]) * (x[i] - known[i]), sums[1] += known[i] * known[i];
  }
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return std::sqrt(sums[0] / sums[1]);
}

void tell(const Settings& settings, const Outcome& outcome, double error) {
  if (trials::rank_in(MPI_COMM_WORLD) != 0) return;
  std::printf(
      "%s, %s, %s: %d iterations, %d replacements, %d refinements, true residual %.1e, "
      "error %.1e, %s\n",
      settings.method.c_str(), settings.precision.c_str(), settings.stabilise.c_str(),
      outcome.iterations, outcome.replacements, outcome.refinements, outcome.residual, error,
      outcome.end.empty() ? "converged" : outcome.end.c_str());
}

// All precisions and stabilisations of one method, blocking and interleaved: a line of a table
// each.
int study(const Matrix& matrix, const Settings& settings, int repetitions,
          const std::vector<double>& b) {
  struct Row {
    Settings settings;
    Outcome outcome = {};
    std::vector<double> each_us = {};
  };
  std::vector<Row> rows;
  for (const char* precision : {"double", "mixed", "mixed-vectors", "single"}) {
    for (const char* stabilise : {"none", "replacement", "refinement", "both"}) {
      rows.push_back({settings});
      rows.back().settings.precision = precision, rows.back().settings.stabilise = stabilise;
    }
  }
  trials::Variant plain = trials::variant("blocking");
  auto communication = std::make_unique<Communication>(matrix, Overlap::none, &plain);
  std::vector<double> x;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (Row& row : rows) {
      const std::clock_t begin = std::clock();
      row.outcome = solve(matrix, row.settings, communication.get(), b, &x);
      const double used_us = 1e6 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      row.each_us.push_back(used_us / std::max(1, row.outcome.iterations));
    }
  }
  communication.reset();
  MPI_Comm_free(&plain.comm);
  if (trials::rank_in(MPI_COMM_WORLD) != 0) return 0;
  std::printf("%s, %s, %d ranks\n", settings.method.c_str(), settings.problem.in_words().c_str(),
              trials::size_of(MPI_COMM_WORLD));
  std::printf("| precision | stabilised by | iterations | time of one | true residual | end |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows) {
    std::printf("| %s | %s | %d | %.2f | %.1e | %s |\n", row.settings.precision.c_str(),
                row.settings.stabilise.c_str(), row.outcome.iterations,
                trials::median(row.each_us) / trials::median(rows[0].each_us), row.outcome.residual,
                row.outcome.end.empty() ? "converged" : row.outcome.end.c_str());
  }
  std::printf("processor time of one iteration, in that of double precision: %.0f us\n",
              trials::median(rows[0].each_us));
  return 0;
}

Overlap overlap_of(const trials::Variant& variant) {
  if (variant.name == "blocking") return Overlap::none;
  if (variant.name == "halo only") return Overlap::halo;
  return variant.name == "master thread" ? Overlap::master : Overlap::all;
}

int measure(const Matrix& matrix, const Settings& settings, const trials::Settings& trial,
            const std::vector<double>& b, const std::vector<double>& known) {
  std::vector<trials::Variant> all = trials::blocking_and(trial.engines);
  all.push_back(trials::variant("halo only"));
  if (settings.threads > 1) all.push_back(trials::variant("master thread"));
  std::vector<std::unique_ptr<Communication>> communications;
  for (trials::Variant& one : all) {
    communications.push_back(std::make_unique<Communication>(matrix, overlap_of(one), &one));
  }
  std::vector<double> x, first;
  Outcome outcome = solve(matrix, settings, communications[0].get(), b, &first);
  first.resize(static_cast<std::size_t>(matrix.rows));
  tell(settings, outcome, error_of(first, known));
  int status = 1;
  if (outcome.end.empty()) {
    const int wrong = trials::measure(
        trial, &all, [](trials::Variant&) {},
        [&](trials::Variant& one) {
          outcome = solve(matrix, settings,
                          communications[static_cast<std::size_t>(&one - all.data())].get(), b, &x);
        },
        [&](trials::Variant& one) {
          trials::compare_bits(
              &one, std::memcmp(x.data(), first.data(), first.size() * sizeof(double)) == 0);
          return outcome.end.empty();
        });
    const std::string problem =
        settings.method + " " + settings.precision + " " + settings.problem.in_words();
    status = trials::report(trial, "pipecg", problem, all, wrong);
  }
  communications.clear();
  trials::release(&all);
  return status;
}

int run(int argc, char** argv) {
  Settings settings;
  trials::Settings trial;
  std::string what = "measure";
  trials::Options options;
  options.grid("grid", &settings.problem.grid);
  options.choice("coefficients", &settings.problem.coefficients,
                 {"poisson", "anisotropic", "heterogeneous"});
  options.real("contrast", &settings.problem.contrast);
  options.text("matrix", &settings.problem.file);
  options.choice("method", &settings.method,
                 {"classic", "chronopoulos-gear", "gropp", "pipelined"});
  options.choice("precision", &settings.precision, {"double", "mixed", "mixed-vectors", "single"});
  options.choice("stabilise", &settings.stabilise, {"none", "replacement", "refinement", "both"});
  options.real("tolerance", &settings.tolerance);
  options.real("inner-tolerance", &settings.inner_tolerance);
  options.number("iterations", &settings.iterations);
  options.number("threads", &settings.threads, 1, 1024);
  options.choice("what", &what, {"measure", "study"});
  trial.offer(&options);
  std::string wrong = options.read(argc, argv);
#ifndef _OPENMP
  if (wrong.empty() && settings.threads > 1) {
    wrong = "this build has no threads: its compiler lacks OpenMP; leave out --threads";
  }
#endif
  Matrix matrix;
  if (wrong.empty()) wrong = sparse::matrix_of(settings.problem, &matrix);
  if (!wrong.empty()) return trials::refuse("pipecg", wrong);
  const std::vector<double> known = known_solution(matrix), b = right_hand_side(matrix, known);
  return what == "study" ? study(matrix, settings, trial.repetitions, b)
                         : measure(matrix, settings, trial, b, known);
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
