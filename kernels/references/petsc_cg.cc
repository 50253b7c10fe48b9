// petsc_cg: runs PETSc's cg, with two reductions and with a single one, groppcg and pipecg on the
// matrices of kernels/pipecg, with the same right-hand side, tolerance and diagonal preconditioner.
// It is a reference for Weft's own solvers. Its line of results has the form of pipecg's.
#include <petscksp.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "../partition.h"
#include "../sparse.h"
#include "../stream.h"
#include "../trials.h"

namespace {

constexpr const char* single_reduction = "cg-single-reduction";  // method of Chronopoulos and Gear

struct Settings {
  sparse::Problem problem;
  std::string method = "pipecg";
  double tolerance = 1e-8;
  int iterations = 2000;
};

// This rank's rows, divided among the ranks as in kernels/pipecg.
struct Rows {
  int order = 0, first = 0;
  std::vector<int> numbers;  // numbers of the rows before they were partitioned
  std::vector<sparse::Entry> entries;

  int last() const { return first + static_cast<int>(numbers.size()); }
  std::vector<PetscInt> lengths() const {
    std::vector<PetscInt> found(numbers.size());
    for (const sparse::Entry& one : entries) ++found[static_cast<std::size_t>(one.row - first)];
    return found;
  }
};

// Makes this rank's rows. For a grid in blocks a rank makes no other rows. Returns "" or a sentence
// that says why that is impossible.
std::string rows_of(const sparse::Problem& problem, Rows* rows) {
  const int ranks = trials::size_of(MPI_COMM_WORLD), rank = trials::rank_in(MPI_COMM_WORLD);
  const bool metis = problem.partition == "metis";
  if (problem.file.empty() && problem.mesh == "grid" && !metis && problem.numbering == "natural") {
    rows->order = problem.grid[0] * problem.grid[1] * problem.grid[2];
    const sparse::Blocks blocks{rows->order, ranks};
    rows->first = blocks.first(rank);
    rows->numbers.resize(static_cast<std::size_t>(blocks.first(rank + 1) - rows->first));
    std::iota(rows->numbers.begin(), rows->numbers.end(), rows->first);
    rows->entries = sparse::seven_point(problem, rows->first, rows->last());
    return "";
  }
  const std::string sentence = sparse::whole_matrix(problem, &rows->order, &rows->entries);
  if (!sentence.empty()) return sentence;
  if (metis && !sparse::all_have_metis()) return "--partition metis needs METIS";
  const sparse::Parts parts = metis ? sparse::by_metis(rows->entries, rows->order, ranks)
                                    : sparse::in_blocks(rows->order, ranks);
  if (parts.empty()) return "METIS cannot divide the matrix";
  const auto part = [&](int row) { return parts[static_cast<std::size_t>(row)]; };
  std::vector<int> sorted;
  const auto before = [&](int a, int b) { return part(a) < part(b); };
  sparse::renumber(&rows->entries, sparse::numbers_by(rows->order, before, &sorted));
  rows->first = static_cast<int>(
      std::count_if(parts.begin(), parts.end(), [&](int owner) { return owner < rank; }));
  std::copy_if(sorted.begin(), sorted.end(), std::back_inserter(rows->numbers),
               [&](int row) { return part(row) == rank; });
  std::erase_if(rows->entries, [&](const sparse::Entry& one) {
    return one.row < rows->first || one.row >= rows->last();
  });
  return "";
}

Mat matrix_of(const Rows& rows) {
  Mat made = nullptr;
  const int count = rows.last() - rows.first;
  MatCreate(MPI_COMM_WORLD, &made);
  MatSetSizes(made, count, count, rows.order, rows.order);
  MatSetType(made, MATAIJ);
  const std::vector<PetscInt> lengths = rows.lengths();
  MatSeqAIJSetPreallocation(made, 0, lengths.data());
  MatMPIAIJSetPreallocation(made, 0, lengths.data(), 0, lengths.data());
  for (const sparse::Entry& one : rows.entries) {
    MatSetValue(made, one.row, one.column, one.value, ADD_VALUES);
  }
  MatAssemblyBegin(made, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(made, MAT_FINAL_ASSEMBLY);
  return made;
}

// Sets the solution that pipecg uses, too: 1 + sin(row), with rows as numbered before partitioning.
void set_known(const Rows& rows, Vec known) {
  for (int row = rows.first; row < rows.last(); ++row) {
    const int number = rows.numbers[static_cast<std::size_t>(row - rows.first)];
    VecSetValue(known, row, 1 + std::sin(number), INSERT_VALUES);
  }
  VecAssemblyBegin(known);
  VecAssemblyEnd(known);
}

double norm_of(Vec v) {
  double norm = 0;
  VecNorm(v, NORM_2, &norm);
  return norm;
}

KSP solver_of(const Settings& settings, Mat a) {
  KSP solver;
  PC diagonal;
  KSPCreate(MPI_COMM_WORLD, &solver);
  KSPSetOperators(solver, a, a);
  const bool once = settings.method == single_reduction;
  KSPSetType(solver, once ? KSPCG : settings.method.c_str());
  if (once) KSPCGUseSingleReduction(solver, PETSC_TRUE);
  KSPGetPC(solver, &diagonal);
  PCSetType(diagonal, PCJACOBI);
  KSPSetNormType(solver, KSP_NORM_UNPRECONDITIONED);
  KSPSetTolerances(solver, settings.tolerance, 0, PETSC_DEFAULT, settings.iterations);
  KSPSetUp(solver);
  return solver;
}

int solve(const Settings& settings, const Rows& rows, Mat a) {
  Vec known, b, x, r;
  MatCreateVecs(a, &known, &b);
  VecDuplicate(known, &x), VecDuplicate(b, &r);
  set_known(rows, known);
  MatMult(a, known, b);
  KSP solver = solver_of(settings, a);
  KSPSolve(solver, b, x);
  PetscInt iterations = 0;
  KSPConvergedReason reason{};
  KSPGetIterationNumber(solver, &iterations);
  KSPGetConvergedReason(solver, &reason);
  MatMult(a, x, r);
  VecAYPX(r, -1, b);  // computes r = b - A x
  VecAXPY(x, -1, known);
  const double residual = norm_of(r) / norm_of(b), error = norm_of(x) / norm_of(known);
  PetscPrintf(MPI_COMM_WORLD, "PETSc's %s: %d iterations, true residual %.1e, error %.1e, %s\n",
              settings.method.c_str(), static_cast<int>(iterations), residual, error,
              reason > 0 ? "converged" : KSPConvergedReasons[reason]);
  KSPDestroy(&solver);
  for (Vec* one : {&known, &b, &x, &r}) VecDestroy(one);
  return reason > 0 ? 0 : 1;
}

// Compares the bandwidth of PETSc's matrix-vector product with that of STREAM's triad, on one rank.
int speed(Mat a, int repetitions) {
  Vec x, y;
  MatInfo about;
  PetscInt rows = 0;
  MatCreateVecs(a, &x, &y);
  VecSet(x, 1);
  MatGetInfo(a, MAT_LOCAL, &about);
  VecGetSize(x, &rows);
  stream::compare("PETSc's product with the matrix", about.nz_used * (8 + 4) + rows * (4 + 8 + 8.0),
                  repetitions, [&] { MatMult(a, x, y); });
  VecDestroy(&x), VecDestroy(&y);
  return 0;
}

int run(int argc, char** argv) {
  Settings settings;
  std::string what = "measure";
  int repetitions = 11;
  trials::Options options;
  options.grid("grid", &settings.problem.grid);
  options.choice("coefficients", &settings.problem.coefficients,
                 {"poisson", "anisotropic", "heterogeneous"});
  options.real("contrast", &settings.problem.contrast);
  options.choice("mesh", &settings.problem.mesh, {"grid", "tetrahedra"});
  options.choice("numbering", &settings.problem.numbering, {"natural", "random"});
  options.choice("partition", &settings.problem.partition, {"blocks", "metis"});
  options.text("matrix", &settings.problem.file);
  options.choice("method", &settings.method, {KSPCG, single_reduction, KSPGROPPCG, KSPPIPECG});
  options.real("tolerance", &settings.tolerance);
  options.number("iterations", &settings.iterations);
  options.choice("what", &what, {"measure", "speed"});
  options.number("repetitions", &repetitions);
  std::string wrong = options.read(argc, argv);
  Rows rows;
  if (wrong.empty()) wrong = rows_of(settings.problem, &rows);
  if (wrong.empty() && what == "speed" && trials::size_of(MPI_COMM_WORLD) > 1) {
    wrong = "--what speed is for one rank";
  }
  if (!wrong.empty()) return trials::refuse("petsc_cg", wrong);
  Mat a = matrix_of(rows);
  const int status = what == "speed" ? speed(a, repetitions) : solve(settings, rows, a);
  MatDestroy(&a);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  PetscInitializeNoArguments();
  const int status = run(argc, argv);
  PetscFinalize();
  return status;
}
