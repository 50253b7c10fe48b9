// petsc_cg: PETSc's cg, with two reductions and with a single one, groppcg and pipecg on the
// matrices of kernels/pipecg, from the same right-hand side down to the same tolerance, with the
// diagonal as preconditioner.
// Why: a reference beside our own methods. Its line of results reads like that of pipecg.
#include <petscksp.h>

#include <cmath>
#include <string>
#include <vector>

#include "../sparse.h"
#include "../stream.h"
#include "../trials.h"

namespace {

constexpr const char* single_reduction = "cg-single-reduction";  // by Chronopoulos and Gear

struct Settings {
  sparse::Problem problem;
  std::string method = "pipecg";
  double tolerance = 1e-8;
  int iterations = 2000;
};

// How many entries each row has.
std::vector<PetscInt> lengths_of(const std::vector<sparse::Entry>& entries, int first, int rows) {
  std::vector<PetscInt> lengths(static_cast<std::size_t>(rows));
  for (const sparse::Entry& one : entries) ++lengths[static_cast<std::size_t>(one.row - first)];
  return lengths;
}

// This rank's rows as PETSc keeps them; the sentence that says why there are none.
std::string matrix_of(const sparse::Problem& problem, Mat* made) {
  std::vector<sparse::Entry> entries;
  int order = problem.grid[0] * problem.grid[1] * problem.grid[2];
  if (!problem.file.empty()) {
    const std::string sentence = sparse::entries_of_file(problem.file, &order, &entries);
    if (!sentence.empty()) return sentence;
  }
  const sparse::Blocks blocks{order, trials::size_of(MPI_COMM_WORLD)};
  const int rank = trials::rank_in(MPI_COMM_WORLD);
  const int first = blocks.first(rank), last = blocks.first(rank + 1);
  if (problem.file.empty()) entries = sparse::seven_point(problem, first, last);
  MatCreate(MPI_COMM_WORLD, made);
  MatSetSizes(*made, last - first, last - first, order, order);
  MatSetType(*made, MATAIJ);
  std::erase_if(entries,
                [&](const sparse::Entry& one) { return one.row < first || one.row >= last; });
  const std::vector<PetscInt> lengths = lengths_of(entries, first, last - first);
  MatSeqAIJSetPreallocation(*made, 0, lengths.data());
  MatMPIAIJSetPreallocation(*made, 0, lengths.data(), 0, lengths.data());
  for (const sparse::Entry& one : entries) {
    MatSetValue(*made, one.row, one.column, one.value, ADD_VALUES);
  }
  MatAssemblyBegin(*made, MAT_FINAL_ASSEMBLY);
  MatAssemblyEnd(*made, MAT_FINAL_ASSEMBLY);
  return "";
}

// The solution that pipecg chooses, too: 1 + sin(row).
void set_known(Vec known) {
  PetscInt first = 0, last = 0;
  VecGetOwnershipRange(known, &first, &last);
  for (PetscInt row = first; row < last; ++row) {
    VecSetValue(known, row, 1 + std::sin(row), INSERT_VALUES);
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

int solve(const Settings& settings, Mat a) {
  Vec known, b, x, r;
  MatCreateVecs(a, &known, &b);
  VecDuplicate(known, &x), VecDuplicate(b, &r);
  set_known(known);
  MatMult(a, known, b);
  KSP solver = solver_of(settings, a);
  KSPSolve(solver, b, x);
  PetscInt iterations = 0;
  KSPConvergedReason reason{};
  KSPGetIterationNumber(solver, &iterations);
  KSPGetConvergedReason(solver, &reason);
  MatMult(a, x, r);
  VecAYPX(r, -1, b);  // b - A x
  VecAXPY(x, -1, known);
  const double residual = norm_of(r) / norm_of(b), error = norm_of(x) / norm_of(known);
  PetscPrintf(MPI_COMM_WORLD, "PETSc's %s: %d iterations, true residual %.1e, error %.1e, %s\n",
              settings.method.c_str(), static_cast<int>(iterations), residual, error,
              reason > 0 ? "converged" : KSPConvergedReasons[reason]);
  KSPDestroy(&solver);
  for (Vec* one : {&known, &b, &x, &r}) VecDestroy(one);
  return reason > 0 ? 0 : 1;
}

// PETSc's product with the matrix beside STREAM's triad, on one rank.
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
  options.text("matrix", &settings.problem.file);
  options.choice("method", &settings.method, {KSPCG, single_reduction, KSPGROPPCG, KSPPIPECG});
  options.real("tolerance", &settings.tolerance);
  options.number("iterations", &settings.iterations);
  options.choice("what", &what, {"measure", "speed"});
  options.number("repetitions", &repetitions);
  std::string wrong = options.read(argc, argv);
  Mat a = nullptr;
  if (wrong.empty()) wrong = matrix_of(settings.problem, &a);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (wrong.empty() && what == "speed" && ranks > 1) wrong = "--what speed is for one rank";
  if (!wrong.empty()) return trials::refuse("petsc_cg", wrong);
  const int status = what == "speed" ? speed(a, repetitions) : solve(settings, a);
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
