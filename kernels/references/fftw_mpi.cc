// fftw_mpi: compares FFTW's own transform over MPI, which uses slabs, with that of kernels/fft3d:
// forward, or backward from its result, on the same grid, in turn in one job. The spectrum has the
// order that needs no further transpose. A single rank keeps the order of FFTW's serial transform,
// as fft3d does. It is a reference for the time of the blocking form, and for the results.
#include <fftw3-mpi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "../fourier.h"
#include "../trials.h"

namespace {

using namespace fourier;

// FFTW's transform. Its slabs may differ from those of fourier.h, since FFTW decides which rank has
// which planes.
class Fftw {
 public:
  Fftw(const int (&grid)[3], MPI_Comm comm)
      : ny_(grid[1]), nz_(grid[2]), nx_(grid[0]), transposed_(trials::size_of(comm) > 1) {
    const std::ptrdiff_t most = fftw_mpi_local_size_3d_transposed(nx_, ny_, nz_, comm, &planes_,
                                                                  &first_, &lines_, &first_line_);
    in_.resize(at(std::max<std::ptrdiff_t>(most, 1)));
    out_.resize(in_.size());
    const auto plan = [&](Array* from, Array* to, int sign, unsigned transposed) {
      return fftw_mpi_plan_dft_3d(nx_, ny_, nz_, Plan::raw(from->data()), Plan::raw(to->data()),
                                  comm, sign, FFTW_MEASURE | (transposed_ ? transposed : 0u));
    };
    forward_ = plan(&in_, &out_, FFTW_FORWARD, FFTW_MPI_TRANSPOSED_OUT);
    backward_ = plan(&out_, &in_, FFTW_BACKWARD, FFTW_MPI_TRANSPOSED_IN);
  }
  ~Fftw() { fftw_destroy_plan(forward_), fftw_destroy_plan(backward_); }
  Fftw(const Fftw&) = delete;
  Fftw& operator=(const Fftw&) = delete;

  void prepare() {
    const auto begin = static_cast<std::uint64_t>(first_ * ny_ * nz_);
    for (std::ptrdiff_t i = 0; i < planes_ * ny_ * nz_; ++i) {
      in_[at(i)] = value_at(begin + static_cast<std::uint64_t>(i));
    }
  }
  void forward() { fftw_execute(forward_); }
  void backward() { fftw_execute(backward_); }
  // Returns the error after a forward and an unscaled backward transform of what prepare() has set.
  double error_of_backward(const Problem& problem) const {
    const auto begin = static_cast<std::uint64_t>(first_ * ny_ * nz_);
    const auto scale = static_cast<double>(problem.points());
    double most = 0;
    for (std::ptrdiff_t i = 0; i < planes_ * ny_ * nz_; ++i) {
      const Complex right = value_at(begin + static_cast<std::uint64_t>(i));
      most = trials::greater(most, std::abs(in_[at(i)] / scale - right));
    }
    return most;
  }
  // Returns the error of the forward transform. Its output is [y][x][z] with this rank's y; on a
  // single rank [x][y][z].
  double error_of_forward(const Problem& problem) const {
    double most = 0;
    for (int i = 0; i < nx_; ++i) {
      for (int j = 0; j < lines_; ++j) {
        const std::ptrdiff_t line = transposed_ ? std::ptrdiff_t{j} * nx_ + i : i * lines_ + j;
        for (int k = 0; k < nz_; ++k) {
          const Complex found = out_[at(line * nz_ + k)];
          most = trials::greater(most,
                                 problem.error_at(found, i, static_cast<int>(first_line_) + j, k));
        }
      }
    }
    return most;
  }

 private:
  int ny_, nz_, nx_;
  bool transposed_;
  std::ptrdiff_t planes_ = 0, first_ = 0, lines_ = 0, first_line_ = 0;
  Array in_, out_;
  fftw_plan forward_, backward_;
};

int run(int argc, char** argv) {
  Settings settings;
  trials::Settings trial;
  std::string way = "forward";
  trials::Options options;
  options.grid("grid", &settings.grid);
  options.number("columns", &settings.columns);
  options.number("blocks", &settings.blocks, 1, 4096);
  options.choice("way", &way, {"forward", "backward"});
  trial.offer(&options);
  std::string wrong = options.read(argc, argv);
  const int ranks = trials::size_of(MPI_COMM_WORLD);
  if (wrong.empty() && std::min(settings.grid[0], settings.grid[1]) < ranks) {
    wrong = "the grid has too few points for so many slabs: choose a larger --grid or fewer ranks";
  }
  if (wrong.empty()) wrong = cannot_be_dealt_out(settings, ranks);
  if (!wrong.empty()) return trials::refuse("fftw_mpi", wrong);

  const Problem problem(settings);
  std::vector<trials::Variant> all = trials::blocking_and_overlapped(trial);
  all.push_back(trials::variant("FFTW's own over MPI"));
  std::vector<std::unique_ptr<Transform>> ours;
  for (trials::Variant& one : all) ours.push_back(std::make_unique<Transform>(settings, &one));
  Fftw theirs(settings.grid, all.back().comm);
  Array in, out;
  const bool back = way == "backward";
  double worst[2] = {0, 0};  // largest errors of fft3d's transform and of FFTW's
  const auto is_theirs = [&](const trials::Variant& one) { return &one == &all.back(); };
  const auto own = [&](const trials::Variant& one) { return ours[at(&one - all.data())].get(); };
  const int failures = trials::measure(
      trial, &all,
      [&](trials::Variant& one) {
        if (is_theirs(one)) {
          theirs.prepare();
          if (back) theirs.forward();
          return;
        }
        in = problem.input(*own(one));
        if (back) own(one)->forward(&in, &out), std::swap(in, out);
      },
      [&](trials::Variant& one) {
        if (is_theirs(one)) return back ? theirs.backward() : theirs.forward();
        if (back) return own(one)->backward(&in, &out);
        own(one)->forward(&in, &out);
      },
      [&](trials::Variant& one) {
        double error = 0;
        if (is_theirs(one)) {
          error = back ? theirs.error_of_backward(problem) : theirs.error_of_forward(problem);
        } else if (back) {
          for (Complex& value : out) value /= static_cast<double>(problem.points());
          error = difference(out, problem.input(*own(one)));
        } else {
          error = problem.error_of_forward(*own(one), out);
        }
        worst[is_theirs(one)] = trials::greater(worst[is_theirs(one)], error);
        return error < 1e-12;
      });
  MPI_Allreduce(MPI_IN_PLACE, worst, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (trials::rank_in(MPI_COMM_WORLD) == 0) {
    std::printf("error against the %s: %.1e, FFTW's own over MPI %.1e\n",
                back ? "input" : "serial transform", worst[0], worst[1]);
  }
  char text[120];
  std::snprintf(text, sizeof text, "%s %dx%dx%d, %s", way.c_str(), settings.grid[0],
                settings.grid[1], settings.grid[2], settings.columns == 1 ? "slabs" : "pencils");
  const int status = trials::report(trial, "fftw_mpi", text, all, failures);
  ours.clear();
  trials::release(&all);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  fftw_mpi_init();
  const int status = run(argc, argv);
  fftw_mpi_cleanup();
  MPI_Finalize();
  return status;
}
