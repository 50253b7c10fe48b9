// atmosphere: shallow water on a rotating sphere by spherical harmonics: vorticity, divergence and
// geopotential, stepped by Runge and Kutta's method of fourth order. Grid points lie on the ranks
// by latitude, coefficients by zonal wave number; after each stage an Allgather brings all
// coefficients to all ranks. Why: the finding that pressure, advection, the transform and the
// output can hide this Allgather (jh250041). Here the gather of each variable travels behind one of
// them; the output, in atmosphere_output.h, is itself hidden behind the next steps. Most of the
// communication is the transpose from latitudes to wave numbers, which can travel, too. Source:
// Hack, Jakob, NCAR/TN-343 (1992), for the equations; the cases are in atmosphere_cases.h.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "atmosphere_cases.h"
#include "atmosphere_harmonics.h"
#include "atmosphere_output.h"
#include "trials.h"

namespace {

using harmonics::at, harmonics::Complex, harmonics::Field, harmonics::Fourier, harmonics::Waves;
using harmonics::Harmonics;

using cases::radius, cases::day;

struct Settings {
  int truncation = 42, steps = 12, seconds = 600, every = 0;
  double diffusion = 0;  // square metres per second
  std::string output, number = "2";
  // Products of two fields are exact; the transform takes a power of two.
  int longitudes() const {
    int points = 8;
    while (points < 3 * truncation + 1) points *= 2;
    return points;
  }
  int latitudes() const { return longitudes() / 2; }
};

// ---- How it communicates ------------------------------------------------------------------------

enum Variable { vorticity, divergence, geopotential };

struct Way {
  trials::Variant* variant;
  std::array<bool, 3> hidden;  // the gather of each variable
  output::Writing writing;
  bool transposes = false;  // travel behind what does not need them
};

// From latitudes to wave numbers. Its counts and buffers stay as they are until it has arrived.
struct Transpose {
  std::size_t fields = 0;
  std::vector<int> send, send_at, receive, receive_at;
  Waves out, in;
  MPI_Request request = MPI_REQUEST_NULL;
};

// ---- The model ----------------------------------------------------------------------------------

class Model {
 public:
  Model(const Settings& settings, const Harmonics& harmonics)
      : settings_(settings),
        harmonics_(harmonics),
        ranks_(trials::size_of(MPI_COMM_WORLD)),
        rank_(trials::rank_in(MPI_COMM_WORLD)),
        longitudes_(settings.longitudes()),
        fourier_(longitudes_) {
    // Wave numbers are dealt out in turn, since the small ones have most coefficients.
    int place = 0;
    places_.resize(at(settings.truncation + 1));
    for (int rank = 0; rank < ranks_; ++rank) {
      begins_.push_back(place);
      for (const int m : waves_of(rank)) {
        places_[at(m)] = place, place += settings.truncation + 1 - m;
      }
      counts_.push_back(place - begins_.back());
      rows_.push_back(first_row(rank));
    }
    rows_.push_back(settings.latitudes());
    for (Waves& one : all_) one.resize(at(place));
    start();
  }

  // Where this rank's rows belong among those of all.
  output::Shape shape() const {
    const int records = settings_.every ? (settings_.steps - 1) / settings_.every + 1 : 0;
    return {3, settings_.latitudes(), longitudes_, rows_[at(rank_)], rows(), records};
  }

  // The beginning of the case; the geopotential is that of the depth.
  void prepare(Way* way, output::FieldFile* file) {
    for (std::size_t q = 0; q < 3; ++q) all_[q] = start_[q];
    way_ = way, file_ = file;
    if (file_) file_->begin(way_->writing, way_->variant->comm);
  }

  // RK4: each stage's variables leave as soon as they are known.
  void carry_out() {
    constexpr double weights[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}, parts[3] = {0.5, 0.5, 1};
    for (int step = 0; step < settings_.steps; ++step) {
      for (std::size_t q = 0; q < 3; ++q) {
        if (requests_[q] != MPI_REQUEST_NULL) wait(static_cast<Variable>(q));
        old_[q].assign(all_[q].begin() + begins_[at(rank_)],
                       all_[q].begin() + begins_[at(rank_)] + counts_[at(rank_)]);
        sum_[q].assign(old_[q].size(), 0.0);
      }
      if (file_ && step % settings_.every == 0) write(step / settings_.every);
      for (int k = 0; k < 4; ++k) stage(weights[k], k < 3 ? parts[k] : 0, k == 3);
    }
    for (const Variable q : {vorticity, divergence, geopotential}) wait(q);
    if (file_) file_->finish();
  }

  const std::array<Waves, 3>& result() const { return all_; }

  // Of the geopotential against the beginning, as in the literature: root mean square, relative.
  double error() const {
    double sums[2] = {0, 0};
    for (std::size_t i = 0; i < all_[geopotential].size(); ++i) {
      sums[0] += std::norm(all_[geopotential][i] - start_[geopotential][i]);
      sums[1] += std::norm(start_[geopotential][i]);
    }
    return std::sqrt(sums[0] / sums[1]);
  }
  // Change of the mass, relative.
  double lost() const {
    const double before = start_[geopotential][0].real(), now = all_[geopotential][0].real();
    return std::fabs(now - before) / before;
  }
  // Collective: the energy, and the vorticity's least and most, negative.
  std::array<double, 3> measures() const {
    Field eastward, northward, spin;
    winds(&eastward, &northward, &spin);
    const Field depth = to_grid(all_[geopotential]);
    double energy = 0, extremes[2] = {-INFINITY, -INFINITY};
    for (std::size_t i = 0; i < spin.size(); ++i) {
      const double sine = harmonics_.sine(row_of(i));
      const double square = eastward[i] * eastward[i] + northward[i] * northward[i];
      energy += harmonics_.weight(row_of(i)) * depth[i] *
                (square / (1 - sine * sine) / 2 + depth[i] / 2 + mountain_[i]);
      extremes[0] = std::max(extremes[0], -spin[i]), extremes[1] = std::max(extremes[1], spin[i]);
    }
    MPI_Allreduce(MPI_IN_PLACE, &energy, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, extremes, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return {energy, -extremes[0], extremes[1]};
  }
  bool finite() const {
    double sum = 0;
    for (const Waves& one : all_) {
      for (const Complex& value : one) sum += std::norm(value);
    }
    return std::isfinite(sum);
  }

 private:
  int first_row(int rank) const { return settings_.latitudes() * rank / ranks_; }
  int rows() const { return rows_[at(rank_ + 1)] - rows_[at(rank_)]; }
  int points() const { return rows() * longitudes_; }
  std::vector<int> waves_of(int rank) const {
    std::vector<int> found;
    for (int m = rank; m <= settings_.truncation; m += ranks_) found.push_back(m);
    return found;
  }

  // ---- Stages

  // Each variable's gather travels behind what follows it: the vorticity's behind the pressure, the
  // divergence's behind the advection of mass, the geopotential's behind the next transform.
  void stage(double weight, double part, bool last) {
    wait(vorticity), wait(divergence);
    Field eastward, northward, spin;
    winds(&eastward, &northward, &spin);
    Field east_flux(spin.size()), north_flux(spin.size());
    for (std::size_t i = 0; i < spin.size(); ++i) {
      const double absolute = spin[i] + coriolis_[i];
      east_flux[i] = eastward[i] * absolute, north_flux[i] = northward[i] * absolute;
    }
    Transpose fluxes_travel = leave({&east_flux, &north_flux}), masses_travel;
    std::vector<Waves> fluxes;
    const auto turn = [&] {
      fluxes = arrive(&fluxes_travel);
      advance(vorticity, divergence_of(fluxes[0], fluxes[1], -1), weight, part, last);
    };
    if (!way_->transposes) turn();

    // Pressure
    wait(geopotential);
    const Field depth = to_grid(all_[geopotential]);
    Field energy(depth.size());
    for (std::size_t i = 0; i < depth.size(); ++i) {
      const double sine = harmonics_.sine(row_of(i));
      const double square = eastward[i] * eastward[i] + northward[i] * northward[i];
      energy[i] = depth[i] + mountain_[i] + square / (2 * (1 - sine * sine));
      eastward[i] *= depth[i], northward[i] *= depth[i];
    }
    Transpose energy_travels = leave({&energy});
    if (way_->transposes) masses_travel = leave({&eastward, &northward}), turn();
    Waves tendency = divergence_of(fluxes[1], fluxes[0], 1, -1);
    const Waves head = analysis(arrive(&energy_travels)[0]);
    each_wave(
        [&](int n, std::size_t i) { tendency[i] += n * (n + 1.0) / (radius * radius) * head[i]; });
    advance(divergence, tendency, weight, part, last);

    // Advection of mass
    if (!way_->transposes) masses_travel = leave({&eastward, &northward});
    const std::vector<Waves> masses = arrive(&masses_travel);
    advance(geopotential, divergence_of(masses[0], masses[1], -1), weight, part, last);
  }

  void advance(Variable q, const Waves& tendency, double weight, double part, bool last) {
    if (file_) file_->go_on();
    Complex* mine = all_[q].data() + begins_[at(rank_)];
    each_wave([&](int n, std::size_t i) {
      const double step = settings_.seconds;
      const double smooths = settings_.diffusion * n * (n + 1.0) / (radius * radius);
      const Complex change = smooths > 0 ? tendency[i] - smooths * mine[i] : tendency[i];
      sum_[q][i] += weight * change;
      mine[i] = old_[q][i] + step * (last ? sum_[q][i] : part * change);
    });
    gather(q);
  }

  void gather(Variable q) {
    if (way_->hidden[q]) {
      MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_[q].data(), counts_.data(),
                      begins_.data(), MPI_C_DOUBLE_COMPLEX, way_->variant->comm, &requests_[q]);
      return;
    }
    const double begin = MPI_Wtime();
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_[q].data(), counts_.data(),
                   begins_.data(), MPI_C_DOUBLE_COMPLEX, way_->variant->comm);
    way_->variant->communicating_s += MPI_Wtime() - begin;
  }
  void wait(Variable q) { MPI_Wait(&requests_[q], MPI_STATUS_IGNORE); }

  // The file gets fields of its own: the next steps change the variables.
  void write(int record) {
    Field fields;
    for (const Waves& one : all_) {
      const Field grid = to_grid(one);
      fields.insert(fields.end(), grid.begin(), grid.end());
    }
    const double begin = MPI_Wtime();
    file_->write(record, std::move(fields));
    way_->variant->communicating_s += MPI_Wtime() - begin;
  }

  // ---- Transforms

  int row_of(std::size_t point) const {
    return rows_[at(rank_)] + static_cast<int>(point) / longitudes_;
  }
  template <class Body>
  void each_wave(const Body& body) const {
    std::size_t i = 0;
    for (const int m : waves_of(rank_)) {
      for (int n = m; n <= settings_.truncation; ++n) body(n, i++);
    }
  }

  // One latitude's values from its sums over n, for each m.
  void finish_row(Waves* line, double* out) const {
    for (int m = 1; m <= settings_.truncation; ++m) {
      (*line)[at(longitudes_ - m)] = std::conj((*line)[at(m)]);
    }
    fourier_.carry_out<false>(line->data());
    for (int i = 0; i < longitudes_; ++i) out[i] = (*line)[at(i)].real();
  }

  Field to_grid(const Waves& waves) const {
    Field made(at(points()));
    for (int j = 0; j < rows(); ++j) {
      Waves line(at(longitudes_));
      for (int m = 0; m <= settings_.truncation; ++m) {
        const double* p = harmonics_.p(rows_[at(rank_)] + j, m);
        const Complex* c = waves.data() + places_[at(m)];
        for (int k = 0; k <= settings_.truncation - m; ++k) line[at(m)] += p[k] * c[k];
      }
      finish_row(&line, made.data() + j * longitudes_);
    }
    return made;
  }

  // Winds times the cosine of the latitude, from the stream function and the potential.
  void winds(Field* eastward, Field* northward, Field* spin) const {
    eastward->resize(at(points())), northward->resize(at(points())), spin->resize(at(points()));
    for (int j = 0; j < rows(); ++j) {
      Waves east(at(longitudes_)), north(at(longitudes_)), own(at(longitudes_));
      for (int m = 0; m <= settings_.truncation; ++m) {
        const double* p = harmonics_.p(rows_[at(rank_)] + j, m);
        const double* h = harmonics_.h(rows_[at(rank_)] + j, m);
        const Complex* z = all_[vorticity].data() + places_[at(m)];
        const Complex* d = all_[divergence].data() + places_[at(m)];
        for (int n = std::max(m, 1); n <= settings_.truncation; ++n) {
          const int k = n - m;
          const double inverse = -radius / (n * (n + 1.0));  // of the Laplacian, times 1/radius
          const double turn = m * p[k];                      // times i
          east[at(m)] += inverse * (turn * Complex(-d[k].imag(), d[k].real()) - h[k] * z[k]);
          north[at(m)] += inverse * (turn * Complex(-z[k].imag(), z[k].real()) + h[k] * d[k]);
          own[at(m)] += p[k] * z[k];
        }
        if (m == 0) own[0] += p[0] * z[0];
      }
      finish_row(&east, eastward->data() + j * longitudes_);
      finish_row(&north, northward->data() + j * longitudes_);
      finish_row(&own, spin->data() + j * longitudes_);
    }
  }

  // From this rank's rows to its wave numbers at all latitudes.
  Transpose leave(const std::vector<const Field*>& fields) const {
    Transpose made;
    made.fields = fields.size();
    const int count = static_cast<int>(fields.size());
    int sent = 0, received = 0;
    const int mine = static_cast<int>(waves_of(rank_).size());
    for (int peer = 0; peer < ranks_; ++peer) {
      made.send_at.push_back(sent), made.receive_at.push_back(received);
      made.send.push_back(count * rows() * static_cast<int>(waves_of(peer).size()));
      made.receive.push_back(count * mine * (rows_[at(peer + 1)] - rows_[at(peer)]));
      sent += made.send.back(), received += made.receive.back();
    }
    made.out.resize(at(sent)), made.in.resize(at(received));
    std::vector<Complex*> next;
    for (const int place : made.send_at) next.push_back(made.out.data() + place);
    for (const Field* field : fields) {
      for (int j = 0; j < rows(); ++j) {
        Waves line(field->begin() + j * longitudes_, field->begin() + (j + 1) * longitudes_);
        fourier_.carry_out<true>(line.data());
        for (int m = 0; m <= settings_.truncation; ++m) {
          *next[at(m % ranks_)]++ = line[at(m)] / static_cast<double>(longitudes_);
        }
      }
    }
    const double begin = MPI_Wtime();
    const MPI_Comm comm = way_ ? way_->variant->comm : MPI_COMM_WORLD;
    if (way_ && way_->transposes) {
      MPI_Ialltoallv(made.out.data(), made.send.data(), made.send_at.data(), MPI_C_DOUBLE_COMPLEX,
                     made.in.data(), made.receive.data(), made.receive_at.data(),
                     MPI_C_DOUBLE_COMPLEX, comm, &made.request);
      return made;
    }
    MPI_Alltoallv(made.out.data(), made.send.data(), made.send_at.data(), MPI_C_DOUBLE_COMPLEX,
                  made.in.data(), made.receive.data(), made.receive_at.data(), MPI_C_DOUBLE_COMPLEX,
                  comm);
    if (way_) way_->variant->communicating_s += MPI_Wtime() - begin;
    return made;
  }

  // Of each field: [wave number][latitude].
  std::vector<Waves> arrive(Transpose* one) const {
    MPI_Wait(&one->request, MPI_STATUS_IGNORE);
    const std::size_t mine = waves_of(rank_).size();
    std::vector<Waves> made(one->fields, Waves(mine * at(settings_.latitudes())));
    const Complex* from = one->in.data();
    for (int peer = 0; peer < ranks_; ++peer) {
      for (Waves& field : made) {
        for (int j = rows_[at(peer)]; j < rows_[at(peer + 1)]; ++j) {
          for (std::size_t w = 0; w < mine; ++w) {
            field[w * at(settings_.latitudes()) + at(j)] = *from++;
          }
        }
      }
    }
    return made;
  }

  // This rank's coefficients: for each wave number a sum over all latitudes of what the functions P
  // and H are multiplied with there.
  template <class Factors>
  Waves sum_latitudes(const Factors& factors) const {
    Waves made(at(counts_[at(rank_)]));
    std::size_t first = 0, w = 0;
    for (const int m : waves_of(rank_)) {
      for (int j = 0; j < settings_.latitudes(); ++j) {
        const double *p = harmonics_.p(j, m), *h = harmonics_.h(j, m);
        const auto [of_p, of_h] = factors(m, j, w * at(settings_.latitudes()) + at(j));
        Complex* sum = made.data() + first;
        for (int k = 0; k <= settings_.truncation - m; ++k) sum[k] += p[k] * of_p + h[k] * of_h;
      }
      first += at(settings_.truncation + 1 - m), ++w;
    }
    return made;
  }
  using Pair = std::pair<Complex, Complex>;
  Waves analysis(const Waves& a) const {
    return sum_latitudes(
        [&](int, int j, std::size_t i) { return Pair(harmonics_.weight(j) * a[i], 0); });
  }
  // Of a flux whose parts are multiplied with signs, by parts in the latitude.
  Waves divergence_of(const Waves& a, const Waves& b, double sign, double turned = 1) const {
    return sum_latitudes([&](int m, int j, std::size_t i) {
      const double sine = harmonics_.sine(j);
      const double scale = sign * harmonics_.weight(j) / (radius * (1 - sine * sine));
      return Pair(scale * m * Complex(-a[i].imag(), a[i].real()), -scale * turned * b[i]);
    });
  }

  // ---- The cases

  void start() {
    const cases::Case chosen(settings_.number);
    Field spin, depth;
    for (std::size_t i = 0; i < at(points()); ++i) {
      const double east = 2 * M_PI * static_cast<double>(i % at(longitudes_)) / longitudes_;
      const cases::Point point = chosen.begins(east, harmonics_.sine(row_of(i)));
      mountain_.push_back(point.mountain), coriolis_.push_back(point.coriolis);
      spin.push_back(point.spin), depth.push_back(point.depth);
    }
    Transpose travels = leave({&spin, &depth});
    const std::vector<Waves> both = arrive(&travels);
    start_ = all_;
    for (const Variable q : {vorticity, geopotential}) {
      const Waves mine = analysis(both[q == vorticity ? 0 : 1]);
      MPI_Allgatherv(mine.data(), counts_[at(rank_)], MPI_C_DOUBLE_COMPLEX, start_[q].data(),
                     counts_.data(), begins_.data(), MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    }
  }

  const Settings& settings_;
  const Harmonics& harmonics_;
  const int ranks_, rank_, longitudes_;
  const Fourier fourier_;
  std::vector<int> begins_, counts_, places_, rows_;
  std::array<Waves, 3> all_, start_, old_, sum_;
  std::array<MPI_Request, 3> requests_ = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  Field coriolis_, mountain_;
  Way* way_ = nullptr;
  output::FieldFile* file_ = nullptr;  // nullptr: nothing is written
};

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

// Without output its sections are measured, with it the ways of writing.
std::vector<Way> ways(std::vector<trials::Variant>* all, const std::string& engine, bool writes) {
  using output::Writing;
  const std::size_t whole = all->size();
  std::vector<Way> made(1, {nullptr, {}, Writing::all});
  const Writing behind =
      output::Store::all_write_behind ? Writing::all_behind : Writing::root_behind;
  made.resize(whole, {nullptr, {true, true, true}, behind, true});
  const auto add = [&](const char* name, bool overlaps, std::array<bool, 3> hidden,
                       Writing writing = Writing::nothing) {
    all->push_back(trials::variant(name, overlaps ? engine : "", "native"));
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

int measure(const Settings& settings, const trials::Settings& trial) {
  const Harmonics harmonics(settings.truncation, settings.latitudes());
  Model model(settings, harmonics);
  const bool writes = settings.every > 0;
  std::unique_ptr<output::FieldFile> file;
  if (writes) file = std::make_unique<output::FieldFile>(settings.output, model.shape());
  if (writes && !file->is_open()) {
    return trials::refuse("atmosphere", "cannot write " + settings.output +
                                            ": choose a file that can be made, by --output");
  }

  std::vector<trials::Variant> all = trials::blocking_and_overlapped(trial);
  std::vector<Way> made = ways(&all, trial.engines.back(), writes);
  model.prepare(&made[0], file.get());
  const std::array<double, 3> before = model.measures();
  model.carry_out();
  const std::array<double, 3> after = model.measures();
  const std::array<Waves, 3> first = model.result();
  const std::vector<char> written = writes ? file->content() : std::vector<char>();
  const bool finite = model.finite();
  if (trials::rank_in(MPI_COMM_WORLD) == 0) {
    if (finite) {
      std::printf(
          "case %s, %.2f days: geopotential differs from the beginning by %.2e, mass by %.1e\n"
          "energy differs by %.1e; vorticity from %.3e to %.3e per second\n",
          settings.number.c_str(), settings.steps * settings.seconds / day, model.error(),
          model.lost(), std::fabs(after[0] / before[0] - 1), after[1], after[2]);
      std::fflush(stdout);
    } else {
      std::printf("diverged: choose fewer --seconds for a step\n");
    }
  }
  int status = 1;
  if (finite) {
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
    status = trials::report(trial, "atmosphere", told(settings), all, wrong);
    if (writes) {  // what stays on the disk is whole, whichever variant came last
      model.prepare(&made[0], file.get());
      model.carry_out();
    }
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
  trial.offer(&options);
  std::string wrong = options.read(argc, argv);
  if (wrong.empty()) wrong = does_not_fit(settings);
  if (wrong.empty()) wrong = trial.cannot_write();
  if (!wrong.empty()) return trials::refuse("atmosphere", wrong);
  return measure(settings, trial);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
