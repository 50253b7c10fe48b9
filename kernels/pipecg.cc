// pipecg: conjugate gradients whose inner products overlap with the matrix-vector product, in
// double, mixed and single precision, stabilised by residual replacement, iterative refinement or
// both. Project jh250041 found that hiding all communication gains 27 %, and hiding only the halo
// exchange 6 % less. conjugate_gradients.h has the methods and their sources; partition.h decides
// which rank has which rows.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "conjugate_gradients.h"
#include "partition.h"
#include "sparse.h"
#include "sparse_communication.h"
#include "stream.h"
#include "trials.h"

namespace {

using cg::Outcome;
using cg::Settings;
using cg::Solver;
using sparse::Communication;
using sparse::Matrix;
using sparse::Overlap;

// ---- One solution, refined or not ---------------------------------------------------------------

// Iterative refinement: computes corrections in the solver's precision and residuals in double
// precision. Returns "" or why it has not converged.
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
      (*x)[i] += norm * solver->solution()[i];
    }
    solver->residual(b, x, &r);
    ++outcome->refinements;
    norm = std::sqrt(solver->square(r));
    if (!std::isfinite(norm)) return "diverged";
    if (norm <= target) return "";
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
    for (std::size_t i = 0; i < b.size(); ++i) (*x)[i] = solver.solution()[i];
  }
  std::vector<double> r(b.size());
  solver.residual(b, x, &r);
  outcome.residual = trials::greater(0, std::sqrt(solver.square(r)) / norm);
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

// Returns the known solution 1 + sin(row), with rows as numbered before partitioning.
std::vector<double> known_solution(const Matrix& matrix) {
  std::vector<double> x(static_cast<std::size_t>(matrix.rows));
  for (int i = 0; i < matrix.rows; ++i)
    x[static_cast<std::size_t>(i)] = 1 + std::sin(matrix.number(i));
  return x;
}

std::vector<double> right_hand_side(const Matrix& matrix, MPI_Comm comm) {
  trials::Variant plain;
  plain.comm = comm;
  std::vector<double> x = known_solution(matrix), b(x.size()), zero(x.size());
  Communication communication(matrix, Overlap::none, &plain);
  const Settings settings;
  Solver<double, double, double> solver(matrix, settings, &communication);
  x.resize(static_cast<std::size_t>(matrix.rows + matrix.halo()));
  solver.residual(zero, &x, &b);
  for (double& value : b) value = -value;
  return b;
}

// Returns this rank's part of a vector of the unpartitioned system.
std::vector<double> own_part(const Matrix& matrix, const std::vector<double>& whole) {
  std::vector<double> part(static_cast<std::size_t>(matrix.rows));
  for (int i = 0; i < matrix.rows; ++i) {
    part[static_cast<std::size_t>(i)] = whole[static_cast<std::size_t>(matrix.number(i))];
  }
  return part;
}

double error_of(const std::vector<double>& x, const std::vector<double>& known) {
  double sums[2] = {0, 0};
  for (std::size_t i = 0; i < known.size(); ++i) {
    sums[0] += (x[i] - known[i]) * (x[i] - known[i]), sums[1] += known[i] * known[i];
  }
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return trials::greater(0, std::sqrt(sums[0] / sums[1]));
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

const trials::Words precisions = {"double", "mixed", "mixed-vectors", "single"};
const trials::Words stabilisations = {"none", "replacement", "refinement", "both"};

// Returns the rows of the study's table, as --rows names them: a precision and a kind of
// stabilisation.
trials::Words rows_of_study() {
  trials::Words names;
  for (const std::string& precision : precisions) {
    for (const std::string& by : stabilisations) names.push_back(precision + "/" + by);
  }
  return names;
}

// Compares these precisions and stabilisations of one method with double precision, blocking and
// interleaved, and prints a table line for each.
int study(const Matrix& matrix, const Settings& settings, const trials::Words& names,
          int repetitions, const std::vector<double>& b) {
  struct Row {
    Settings settings;
    Outcome outcome = {};
    std::vector<double> each_us = {};
  };
  std::vector<Row> rows = {{settings}};
  rows[0].settings.precision = precisions[0], rows[0].settings.stabilise = stabilisations[0];
  for (const std::string& name : names) {
    const trials::Words words = trials::split(name, '/');
    if (words[0] == precisions[0] && words[1] == stabilisations[0]) continue;
    rows.push_back({settings});
    rows.back().settings.precision = words[0], rows.back().settings.stabilise = words[1];
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
  std::printf("| precision | stabilised by | iterations | replacements | time of one |");
  std::printf(" true residual | end |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows) {
    std::printf("| %s | %s | %d | %d | %.3f | %.1e | %s |\n", row.settings.precision.c_str(),
                row.settings.stabilise.c_str(), row.outcome.iterations, row.outcome.replacements,
                trials::median(row.each_us) / trials::median(rows[0].each_us), row.outcome.residual,
                row.outcome.end.empty() ? "converged" : row.outcome.end.c_str());
  }
  std::printf("processor time of one iteration, in that of double precision: %.0f us\n",
              trials::median(rows[0].each_us));
  return 0;
}

// Compares the bandwidth of the matrix-vector product with that of STREAM's triad, on one rank.
int speed(const Matrix& matrix, int repetitions) {
  const Settings settings;
  trials::Variant plain = trials::variant("blocking");
  {
    Communication communication(matrix, Overlap::none, &plain);
    Solver<double, double, double> solver(matrix, settings, &communication);
    std::vector<double> in = known_solution(matrix), out(in.size());
    in.resize(in.size() + static_cast<std::size_t>(matrix.halo()));
    // Each of these is read or written once: values, columns, beginnings of rows, list of rows, and
    // both vectors.
    const double rows = matrix.rows, entries = static_cast<double>(matrix.value.size());
    stream::compare("product with the matrix", entries * (8 + 4) + rows * (4 + 4 + 8 + 8),
                    repetitions, [&] { solver.product(&in, &out); });
  }
  MPI_Comm_free(&plain.comm);
  return 0;
}

Overlap overlap_of(const trials::Variant& variant) {
  if (variant.name == "blocking") return Overlap::none;
  if (variant.name == "halo only") return Overlap::halo;
  return variant.name == "master thread" ? Overlap::master : Overlap::all;
}

// Solves the partitioned system and the unpartitioned one, which each rank solves by itself.
// Returns false if the products with the two matrices differ.
bool same_alone(const Matrix& matrix, const Matrix& alone, const Settings& settings,
                const std::vector<double>& b, const std::vector<double>& solution) {
  trials::Variant self;
  self.comm = MPI_COMM_SELF;
  Communication communication(alone, Overlap::none, &self);
  std::vector<double> x;
  const Outcome outcome =
      solve(alone, settings, &communication, right_hand_side(alone, MPI_COMM_SELF), &x);
  const double products = error_of(right_hand_side(matrix, MPI_COMM_WORLD), b);
  const double solutions = error_of(solution, own_part(matrix, x));
  if (trials::rank_in(MPI_COMM_WORLD) == 0) {
    std::printf(
        "unpartitioned: %d iterations, solutions differ by %.1e, right-hand sides by %.1e\n",
        outcome.iterations, solutions, products);
  }
  return products < 1e-12;
}

int measure(const Matrix& matrix, const Matrix& alone, const Settings& settings,
            const trials::Settings& trial, const std::vector<double>& b,
            const std::vector<double>& known) {
  std::vector<trials::Variant> all = trials::blocking_and_overlapped(trial);
  if (trial.has_overlapped()) all.push_back(trials::variant("halo only"));
  if (trial.has_overlapped() && settings.threads > 1)
    all.push_back(trials::variant("master thread", "", "native"));
  std::vector<std::unique_ptr<Communication>> communications;
  for (trials::Variant& one : all) {
    communications.push_back(std::make_unique<Communication>(matrix, overlap_of(one), &one));
  }
  std::vector<double> x, first;
  Outcome outcome = solve(matrix, settings, communications[0].get(), b, &first);
  first.resize(static_cast<std::size_t>(matrix.rows));
  tell(settings, outcome, error_of(first, known));
  const bool same = alone.order == 0 || same_alone(matrix, alone, settings, b, first);
  int status = 1;
  if (outcome.end.empty()) {
    const int wrong =
        !same + trials::measure(
                    trial, &all, [](trials::Variant&) {},
                    [&](trials::Variant& one) {
                      outcome = solve(
                          matrix, settings,
                          communications[static_cast<std::size_t>(&one - all.data())].get(), b, &x);
                    },
                    [&](trials::Variant& one) {
                      trials::compare_bits(&one, std::memcmp(x.data(), first.data(),
                                                             first.size() * sizeof(double)) == 0);
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
  options.choice("mesh", &settings.problem.mesh, {"grid", "tetrahedra"});
  options.choice("numbering", &settings.problem.numbering, {"natural", "random"});
  options.choice("partition", &settings.problem.partition, {"blocks", "metis"});
  options.text("matrix", &settings.problem.file);
  options.choice("method", &settings.method,
                 {"classic", "chronopoulos-gear", "gropp", "pipelined"});
  options.choice("precision", &settings.precision, precisions);
  options.choice("stabilise", &settings.stabilise, stabilisations);
  options.real("tolerance", &settings.tolerance);
  options.real("inner-tolerance", &settings.inner_tolerance);
  options.number("iterations", &settings.iterations);
  options.number("threads", &settings.threads, 1, 1024);
  options.choice("what", &what, {"measure", "study", "speed"});
  trials::Words rows = rows_of_study();
  options.choices("rows", &rows, rows);
  trial.offer(&options);
  trial.offer_blocking(&options);
  std::string wrong = options.read(argc, argv);
#ifndef _OPENMP
  if (wrong.empty() && settings.threads > 1) {
    wrong = "this build has no threads: its compiler lacks OpenMP; leave out --threads";
  }
#endif
  Matrix matrix, alone;  // this rank's part; and the whole matrix, if every rank has it
  if (wrong.empty()) wrong = sparse::matrix_of(settings.problem, &matrix, &alone);
  if (wrong.empty() && what == "speed" && trials::size_of(MPI_COMM_WORLD) > 1) {
    wrong = "--what speed is for one rank";
  }
  if (wrong.empty() && what != "measure" && !trial.json.empty()) {
    wrong = "--what " + what + " writes no file; leave out --json";
  }
  if (wrong.empty()) wrong = trial.cannot_write();
  if (!wrong.empty()) return trials::refuse("pipecg", wrong);
  if (what == "speed") return speed(matrix, trial.repetitions);
  const std::vector<double> known = known_solution(matrix);
  const std::vector<double> b = alone.order
                                    ? own_part(matrix, right_hand_side(alone, MPI_COMM_SELF))
                                    : right_hand_side(matrix, MPI_COMM_WORLD);
  return what == "study" ? study(matrix, settings, rows, trial.repetitions, b)
                         : measure(matrix, alone, settings, trial, b, known);
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
