// fft3d: a three-dimensional Fourier transform whose transposes are pipelined: one block is
// transformed while the next one is in transit. The grid is divided into slabs (--columns 1) or
// pencils; forward, backward or as a convolution. Project jh250041 found that transposes take far
// longer than transforms, which limits what overlap can gain. fourier.h has the transform; results
// are compared with FFTW's serial one.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "crossing.h"
#include "fourier.h"
#include "stream.h"
#include "trials.h"

namespace {

using namespace fourier;

constexpr double tolerance = 1e-12;
constexpr int shift[3] = {1, 2, 3};

// A convolution: a forward transform, a product with the spectrum of a point, and a backward
// transform.
struct Convolution {
  explicit Convolution(const Settings& settings, const Problem& problem, trials::Variant* variant)
      : transform(settings, variant),
        kernel(problem.shift(transform, shift)),
        expected(problem.input(transform, shift)) {}
  void carry_out() {
    transform.forward(&data, &spectrum);
    for (std::size_t i = 0; i < spectrum.size(); ++i) spectrum[i] *= kernel[i];
    transform.backward(&spectrum, &result);
  }
  Transform transform;
  Array kernel, expected, data, spectrum, result;
};

// Checks the forward transform against the serial one and a plane wave, and the backward transform
// against the input. Returns whether all are right.
bool right_once(const Problem& problem, const char* name, Convolution* one) {
  Array data = problem.input(one->transform), found, back;
  one->transform.forward(&data, &found);
  double error[3] = {problem.error_of_forward(one->transform, found), 0, 0};
  one->transform.backward(&found, &back);
  for (Complex& value : back) value /= static_cast<double>(problem.points());
  error[1] = difference(back, problem.input(one->transform));
  data = problem.wave(one->transform, shift);
  one->transform.forward(&data, &found);
  error[2] = problem.error_of_wave(one->transform, found, shift);
  MPI_Allreduce(MPI_IN_PLACE, error, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (trials::rank_in(MPI_COMM_WORLD) == 0) {
    std::printf("%s: error forward %.1e (serial FFTW), %.1e (plane wave), backward %.1e\n", name,
                error[0], error[2], error[1]);
  }
  return *std::max_element(error, error + 3) < tolerance;
}

// Compares the processor time of one rank's forward transform with that of FFTW's serial one of the
// whole grid, in turn. FFTW chooses both plans by measurement.
int speed(const Settings& settings, const Problem& problem, int repetitions) {
  trials::Variant variant = trials::variant("blocking");
  int wrong = 0;
  {
    Transform transform(settings, &variant);
    Array data = problem.input(transform), whole = data, serial(data.size()), out;
    const int* n = settings.grid;
    fftw_plan plan = fftw_plan_dft_3d(n[0], n[1], n[2], Plan::raw(whole.data()),
                                      Plan::raw(serial.data()), FFTW_FORWARD, FFTW_MEASURE);
    // FFTW's planning has overwritten the input.
    std::copy(data.begin(), data.end(), whole.begin());
    transform.forward(&data, &out), fftw_execute(plan);
    wrong = difference(out, serial) / std::sqrt(static_cast<double>(problem.points())) > tolerance;
    std::vector<double> ours, theirs, ratios;
    for (int i = 0; i < repetitions; ++i) {
      theirs.push_back(1e3 * stream::seconds_of([&] { fftw_execute(plan); }));
      ours.push_back(1e3 * stream::seconds_of([&] { transform.forward(&data, &out); }));
      ratios.push_back(ours.back() / theirs.back());
    }
    fftw_destroy_plan(plan);
    std::sort(ratios.begin(), ratios.end());
    std::printf("transform: %.2f ms, FFTW's serial one %.2f ms, ratio %.2f [%.2f-%.2f]\n",
                trials::median(ours), trials::median(theirs), trials::median(ratios),
                ratios[ratios.size() / 4], ratios[ratios.size() - 1 - ratios.size() / 4]);
    std::printf("%d wrong results\n", wrong);
  }
  MPI_Comm_free(&variant.comm);
  return wrong;
}

// Measures what overlap gains in the forward transform while the transforms of lines are repeated
// more and more often, so that communication becomes a smaller share. Prints up to which ratio
// overlap pays. It uses the last engine of the list.
int ratios(Settings settings, const Problem& problem, const trials::Settings& trial) {
  const bool root = trials::rank_in(MPI_COMM_WORLD) == 0;
  if (root) {
    std::printf("%5s %6s %13s %13s %6s\n", "work", "ratio", "blocking, ms", "overlapped", "won");
  }
  std::map<double, double> won_at;
  for (settings.work = 1; settings.work <= 64; settings.work *= 2) {
    std::vector<trials::Variant> all = {trials::variant("blocking", "", "native"),
                                        trials::variant("overlapped", trial.engines.back())};
    {
      Transform blocking(settings, &all[0]), overlapped(settings, &all[1]);
      Array data = problem.input(blocking), out;
      trials::measure(
          trial, &all, [](trials::Variant&) {},
          [&](trials::Variant& one) {
            (&one == all.data() ? blocking : overlapped).forward(&data, &out);
          },
          [](trials::Variant&) { return true; });
    }
    double figures[3] = {trials::median(all[0].samples_us), trials::median(all[1].samples_us),
                         trials::median(all[0].shares)};
    MPI_Bcast(figures, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const double ratio = figures[2] / (1 - figures[2]), won = 1 - figures[1] / figures[0];
    won_at[ratio] = won;
    if (root) {
      std::printf("%5d %6.2f %13.2f %13.2f %5.1f%%\n", settings.work, ratio, figures[0] / 1e3,
                  figures[1] / 1e3, 100 * won);
      std::fflush(stdout);
    }
    trials::release(&all);
  }
  if (root) crossing::tell(won_at);
  return 0;
}

std::string does_not_fit(const Settings& settings, const trials::Settings& trial) {
  const int ranks = trials::size_of(MPI_COMM_WORLD);
  const int* n = settings.grid;
  if (const std::string wrong = cannot_be_dealt_out(settings, ranks); !wrong.empty()) return wrong;
  const double points = 1.0 * n[0] * n[1] * n[2];
  if (points > 1 << 26) {
    return "--grid has more than 2^26 points, of which each rank keeps a serial transform to "
           "compare with: choose a smaller one";
  }
  // For each variant: the spectrum of the kernel, the expected result, the data, their spectrum and
  // the result.
  const std::size_t variants = trial.has_overlapped() ? 1 + trial.engines.size() : 1;
  const double needed = points + 5 * points * static_cast<double>(variants) / ranks;
  return trials::more_than_memory(16 * needed, "choose a smaller --grid");
}

int run(int argc, char** argv) {
  Settings settings;
  std::string what = "measure";
  trials::Settings trial;
  trials::Options options;
  options.grid("grid", &settings.grid);
  options.number("columns", &settings.columns);
  options.number("blocks", &settings.blocks, 1, 4096);
  options.choice("what", &what, {"measure", "ratios", "speed"});
  trial.offer(&options);
  trial.offer_blocking(&options);
  std::string wrong = options.read(argc, argv);
  if (wrong.empty()) wrong = does_not_fit(settings, trial);
  if (wrong.empty() && what == "speed" && trials::size_of(MPI_COMM_WORLD) > 1) {
    wrong = "--what speed is for one rank";
  }
  if (wrong.empty() && what == "ratios" && settings.columns > 1) {
    wrong = "--what ratios is for slabs; leave out --columns";
  }
  if (wrong.empty() && what != "measure" && !trial.json.empty()) {
    wrong = "--what " + what + " writes no file; leave out --json";
  }
  if (wrong.empty()) wrong = trial.cannot_write();
  if (!wrong.empty()) return trials::refuse("fft3d", wrong);

  const Problem problem(settings);
  if (what == "ratios") return ratios(settings, problem, trial);
  if (what == "speed") return speed(settings, problem, trial.repetitions);
  std::vector<trials::Variant> all = trials::blocking_and_overlapped(trial);
  std::vector<std::unique_ptr<Convolution>> convolutions;
  bool right = true;
  for (trials::Variant& one : all) {
    convolutions.push_back(std::make_unique<Convolution>(settings, problem, &one));
    const std::string name = one.name + (one.engine.empty() ? "" : ", " + one.engine);
    right &= right_once(problem, name.c_str(), convolutions.back().get());
  }
  const auto of = [&](const trials::Variant& one) {
    return convolutions[at(&one - all.data())].get();
  };
  Array first;
  of(all[0])->data = problem.input(of(all[0])->transform);
  of(all[0])->carry_out();
  first = of(all[0])->result;
  const int failures = trials::measure(
      trial, &all, [&](trials::Variant& one) { of(one)->data = problem.input(of(one)->transform); },
      [&](trials::Variant& one) { of(one)->carry_out(); },
      [&](trials::Variant& one) {
        const Array& found = of(one)->result;
        const bool same = trials::compare_bits(
            &one, std::memcmp(found.data(), first.data(), first.size() * sizeof(Complex)) == 0);
        return same && difference(found, of(one)->expected) < tolerance;
      });
  char text[120];
  std::snprintf(text, sizeof text, "convolution %dx%dx%d, %s, %d blocks", settings.grid[0],
                settings.grid[1], settings.grid[2], settings.columns == 1 ? "slabs" : "pencils",
                settings.blocks);
  const int status = trials::report(trial, "fft3d", text, all, failures + (right ? 0 : 1));
  convolutions.clear();
  trials::release(&all);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
