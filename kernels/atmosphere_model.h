// atmosphere_model.h: the model of kernels/atmosphere: its steps, what travels in them, and the
// transforms between the grid and the coefficients. Why apart: atmosphere.cc measures it.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <string>
#include <utility>
#include <vector>

#include "atmosphere_cases.h"
#include "atmosphere_harmonics.h"
#include "atmosphere_output.h"
#include "trials.h"

namespace atmosphere {

using harmonics::at, harmonics::Complex, harmonics::Field, harmonics::Fourier, harmonics::Waves;
using harmonics::Harmonics;

using cases::radius, cases::day;

struct Settings {
  int truncation = 42, steps = 12, seconds = 600, every = 0;
  double diffusion = 0;  // square metres per second
  std::string output, number = "2", what = "measure";
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

// What the flow keeps as it is, up to what the truncation takes, but for the vorticity. Potential
// vorticity is the absolute one by the depth, which each column of water carries along.
struct Measures {
  double energy, potential_enstrophy, least_vorticity, most_vorticity, most_potential_vorticity;
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
  // Collective.
  Measures measures() const {
    Field eastward, northward, spin;
    winds(&eastward, &northward, &spin);
    const Field depth = to_grid(all_[geopotential]);
    double sums[2] = {0, 0}, extremes[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (std::size_t i = 0; i < spin.size(); ++i) {
      const double sine = harmonics_.sine(row_of(i)), weight = harmonics_.weight(row_of(i));
      const double square = eastward[i] * eastward[i] + northward[i] * northward[i];
      const double absolute = spin[i] + coriolis_[i];
      sums[0] += weight * depth[i] * (square / (1 - sine * sine) / 2 + depth[i] / 2 + mountain_[i]);
      sums[1] += weight * absolute * absolute / (2 * depth[i]);
      extremes[0] = std::max(extremes[0], -spin[i]), extremes[1] = std::max(extremes[1], spin[i]);
      extremes[2] = std::max(extremes[2], cases::gravity * absolute / depth[i]);
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, extremes, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return {sums[0], sums[1], -extremes[0], extremes[1], extremes[2]};
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

  // ---- Transforms

 public:
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

  // This rank's coefficients of a field on its rows of the grid.
  Waves to_waves(const Field& field) const {
    Transpose travels = leave({&field});
    return analysis(arrive(&travels)[0]);
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

 private:
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

 public:
  // Of a flux whose parts are multiplied with signs, by parts in the latitude.
  Waves divergence_of(const Waves& a, const Waves& b, double sign, double turned = 1) const {
    return sum_latitudes([&](int m, int j, std::size_t i) {
      const double sine = harmonics_.sine(j);
      const double scale = sign * harmonics_.weight(j) / (radius * (1 - sine * sine));
      return Pair(scale * m * Complex(-a[i].imag(), a[i].real()), -scale * turned * b[i]);
    });
  }

 private:
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
    start_ = all_;
    for (const Variable q : {vorticity, geopotential}) {
      const Waves mine = to_waves(q == vorticity ? spin : depth);
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

}  // namespace atmosphere
