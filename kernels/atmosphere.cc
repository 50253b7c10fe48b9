// atmosphere: shallow water on a rotating sphere, computed with spherical harmonics: vorticity,
// divergence and geopotential, stepped by the Runge-Kutta method of fourth order. Ranks have the
// grid points of some latitudes, and the coefficients of some zonal wave numbers. After each stage
// an Allgather brings all coefficients to all ranks. Project jh250041 found that pressure,
// advection, the transform and output can hide this Allgather. Here the Allgather of each variable
// overlaps with one of these; the output, in atmosphere_output.h, overlaps with the next steps.
// Most of the communication is the transpose from latitudes to wave numbers, which can overlap,
// too. Source: Hack, Jakob, NCAR/TN-343 (1992), for the equations; atmosphere_cases.h has the test
// cases.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "atmosphere_model.h"
#include "stream.h"
#include "trials.h"

namespace {

using namespace atmosphere;

// ---- The program --------------------------------------------------------------------------------

std::string does_not_fit(const Settings& settings) {
  const int ranks = trials::size_of(MPI_COMM_WORLD);
  if (settings.latitudes() < ranks || settings.truncation + 1 < ranks) {
    return "--truncation " + std::to_string(settings.truncation) +
           " has too few wave numbers for " + std::to_string(ranks) +
           " ranks: choose a larger one, or fewer ranks";
  }
  if (settings.every && settings.output.empty()) return "--every needs --output FILE";
  if (!settings.output.empty() && !settings.every) return "--output needs --every STEPS";
  if (settings.every && output::would_crash()) {
    return "Open MPI crashes where a file is written without blocking while a second thread, such"
           " as Weft's, is in MPI: leave out --output, or run it without Weft, or take MPICH";
  }
  return "";
}

// Returns the ways of communicating to compare. Without output, they differ in what is hidden
// behind which part of a step; with output, in how the file is written.
std::vector<Way> ways(std::vector<trials::Variant>* all, const trials::Settings& trial,
                      bool writes) {
  using output::Writing;
  const std::size_t whole = all->size();
  std::vector<Way> made(1, {nullptr, {}, Writing::all});
  const Writing behind =
      output::Store::all_write_behind ? Writing::all_behind : Writing::root_behind;
  made.resize(whole, {nullptr, {true, true, true}, behind, true});
  const auto add = [&](const char* name, bool overlaps, std::array<bool, 3> hidden,
                       Writing writing = Writing::nothing) {
    if (!trial.has_overlapped()) return;
    all->push_back(trials::variant(name, overlaps ? trial.engines.back() : "", "native"));
    made.push_back({nullptr, hidden, writing});
  };
  if (writes) {
    if (output::Store::all_write_behind) add("behind steps", true, {}, Writing::all_behind);
    add("rank 0 writes", false, {}, Writing::root);
    add("rank 0 behind steps", true, {}, Writing::root_behind);
    add("nothing written", false, {});
  } else {
    add("behind pressure", true, {true, false, false});
    add("behind advection", true, {false, true, false});
    add("behind transform", true, {false, false, true});
    add("behind all three", true, {true, true, true});
  }
  for (std::size_t i = 0; i < made.size(); ++i) made[i].variant = &(*all)[i];
  return made;
}

std::string in_words(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

std::string told(const Settings& settings) {
  return "case " + settings.number + ", T" + std::to_string(settings.truncation) + ", " +
         std::to_string(settings.steps) + " steps" +
         (settings.diffusion > 0 ? ", diffusion " + in_words(settings.diffusion) : "") +
         (settings.every ? ", output every " + std::to_string(settings.every) : "");
}

void tell(const Settings& settings, const Model& model, const Measures& before,
          const Measures& after) {
  std::printf("case %s, %.2f days: geopotential differs from the beginning by %.2e, mass by %.1e\n",
              settings.number.c_str(), settings.steps * settings.seconds / day, model.error(),
              model.lost());
  std::printf("energy differs by %.1e; vorticity from %.3e to %.3e per second\n",
              std::fabs(after.energy / before.energy - 1), after.least_vorticity,
              after.most_vorticity);
  std::printf(
      "potential enstrophy differs by %.1e; potential vorticity at most %.4e per metre and second,"
      " at the beginning %.4e\n",
      std::fabs(after.potential_enstrophy / before.potential_enstrophy - 1),
      after.most_potential_vorticity, before.most_potential_vorticity);
  std::fflush(stdout);
}

// Compares the operations per second of a transform with those of multiply-adds in registers alone,
// in turn. A transform reads little and computes much, so this is its limit.
void compare(const char* what, double operations, int repetitions,
             const std::function<void()>& work) {
  constexpr int rounds = 1 << 20;
  volatile double kept = 0;
  double most = 0;
  const auto multiply_adds = [&] {
    harmonics::with_loops([&](auto loops) {
      kept = loops.multiply_adds(rounds), most = 2.0 * 12 * loops.width * rounds;
    });
  };
  multiply_adds(), work();
  std::vector<double> rates, most_rates, shares;
  for (int i = 0; i < repetitions; ++i) {
    const double seconds = stream::seconds_of(multiply_adds);
    most_rates.push_back(most / seconds / 1e9);
    rates.push_back(operations / stream::seconds_of(work) / 1e9);
    shares.push_back(rates.back() / most_rates.back());
  }
  std::sort(shares.begin(), shares.end());
  std::printf("%s: %.1f GFlop/s, multiply-adds alone %.1f GFlop/s, share %.2f [%.2f-%.2f]\n", what,
              trials::median(rates), trials::median(most_rates), trials::median(shares),
              shares[shares.size() / 4], shares[shares.size() - 1 - shares.size() / 4]);
}

int speed(const Settings& settings, int repetitions) {
  Model model(settings);
  model.prepare(nullptr, nullptr);
  Field grid(at(settings.latitudes() * settings.longitudes()), 1.0);
  compare("transform to winds and vorticity", model.operations(3), repetitions,
          [&] { model.winds(); });
  compare("transform of fluxes to their convergence and curl", model.operations(2), repetitions,
          [&] { model.to_convergence(grid, grid); });
  compare("transform to the grid", model.operations(1), repetitions,
          [&] { model.to_grid(model.result()[geopotential], &grid); });
  return 0;
}

int measure(const Settings& settings, const trials::Settings& trial) {
  Model model(settings);
  const bool writes = settings.every > 0;
  std::unique_ptr<output::FieldFile> file;
  if (writes) file = std::make_unique<output::FieldFile>(settings.output, model.shape());
  if (writes && !file->is_open()) {
    return trials::refuse("atmosphere", "cannot write " + settings.output +
                                            ": choose a file that can be made, by --output");
  }

  std::vector<trials::Variant> all = trials::blocking_and_overlapped(trial);
  std::vector<Way> made = ways(&all, trial, writes);
  model.prepare(&made[0], file.get());
  const Measures before = model.measures();
  model.carry_out();
  const Measures after = model.measures();
  const std::array<Waves, 3> first = model.result();
  const bool finite = model.finite();
  if (trials::rank_in(MPI_COMM_WORLD) == 0) {
    if (finite) {
      tell(settings, model, before, after);
    } else {
      std::printf("diverged: choose fewer --seconds for a step\n");
    }
  }
  if (settings.what == "flow" || !finite) {
    trials::release(&all);
    return finite ? 0 : 1;
  }
  const std::vector<char> written = writes ? file->content() : std::vector<char>();
  const auto way_of = [&](trials::Variant& one) { return &made[at(&one - all.data())]; };
  const int wrong = trials::measure(
      trial, &all, [&](trials::Variant& one) { model.prepare(way_of(one), file.get()); },
      [&](trials::Variant&) { model.carry_out(); },
      [&](trials::Variant& one) {
        bool same = true;
        for (std::size_t q = 0; q < 3; ++q) {
          same &= std::memcmp(model.result()[q].data(), first[q].data(),
                              first[q].size() * sizeof(Complex)) == 0;
        }
        if (writes) {
          const bool nothing = way_of(one)->writing == output::Writing::nothing;
          same &= file->content() == (nothing ? std::vector<char>() : written);
        }
        trials::compare_bits(&one, same);
        const bool must_stay = settings.number == "2" && settings.diffusion == 0;
        const bool steady = !must_stay || model.error() < 1e-10;
        return same && steady && model.lost() < 1e-10;
      });
  const int status = trials::report(trial, "atmosphere", told(settings), all, wrong);
  if (writes) {  // leaves a complete file on the disk, whichever variant ran last
    model.prepare(&made[0], file.get());
    model.carry_out();
  }
  trials::release(&all);
  return status;
}

int run(int argc, char** argv) {
  Settings settings;
  trials::Settings trial;
  trials::Options options;
  options.choice("case", &settings.number, cases::names);
  options.real("diffusion", &settings.diffusion);
  options.number("truncation", &settings.truncation, 2, 340);
  options.number("steps", &settings.steps);
  options.number("seconds", &settings.seconds, 1, 86400);
  options.text("output", &settings.output);
  options.number("every", &settings.every);
  options.choice("what", &settings.what, {"measure", "flow", "speed"});
  trial.offer(&options);
  trial.offer_blocking(&options);
  std::string wrong = options.read(argc, argv);
  if (wrong.empty()) wrong = does_not_fit(settings);
  const bool measures = settings.what == "measure";
  if (wrong.empty() && settings.what == "speed" && trials::size_of(MPI_COMM_WORLD) > 1) {
    wrong = "--what speed is for one rank";
  }
  if (wrong.empty() && settings.what == "speed" && settings.every) {
    wrong = "--what speed writes no file; leave out --output";
  }
  if (wrong.empty() && !measures && !trial.json.empty()) {
    wrong = "--what " + settings.what + " writes no file; leave out --json";
  }
  if (wrong.empty()) wrong = trial.cannot_write();
  if (!wrong.empty()) return trials::refuse("atmosphere", wrong);
  return settings.what == "speed" ? speed(settings, trial.repetitions) : measure(settings, trial);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
