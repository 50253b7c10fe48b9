// The model of kernels/atmosphere: its steps, its communication, and the transforms between grid
// points and coefficients. atmosphere.cc measures it.
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

using harmonics::at, harmonics::Complex, harmonics::Eights, harmonics::Field, harmonics::Fourier;
using harmonics::Harmonics, harmonics::Waves;

using cases::radius, cases::day;

struct Settings {
  int truncation = 42, steps = 12, seconds = 600, every = 0;
  double diffusion = 0;  // diffusion in square metres per second
  std::string output, number = "2", what = "measure";
  // Returns the number of grid points along a latitude: enough for exact products of two fields,
  // and a power of two for the transform.
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
  std::array<bool, 3> hidden;  // whether the gather of each variable overlaps with computation
  output::Writing writing;
  bool transposes = false;  // whether transposes overlap with what does not need them
};

// A transpose from latitudes to wave numbers. The data for each other rank lie in the order
// [field][wave number][real, imaginary][row].
struct Transpose {
  std::vector<int> send, send_at, receive, receive_at;
  Field out, in;
  MPI_Request request = MPI_REQUEST_NULL;
};

// Quantities that the exact flow conserves (energy, potential enstrophy, the greatest potential
// vorticity), and the extremes of the vorticity. Potential vorticity is absolute vorticity divided
// by depth, which each column of water carries along.
struct Measures {
  double energy, potential_enstrophy, least_vorticity, most_vorticity, most_potential_vorticity;
};

// ---- The model ----------------------------------------------------------------------------------

class Model {
 public:
  explicit Model(const Settings& settings)
      : settings_(settings),
        ranks_(trials::size_of(MPI_COMM_WORLD)),
        rank_(trials::rank_in(MPI_COMM_WORLD)),
        longitudes_(settings.longitudes()),
        harmonics_(settings.truncation, settings.latitudes()),
        fourier_(longitudes_),
        line_(at(2 * (settings.truncation + 1))),
        column_(at(settings.latitudes())) {
    // Wave numbers are dealt to the ranks in turn, since small ones have more coefficients.
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
    for (int j = 0; j < settings.latitudes(); ++j) {
      const double square = 1 - harmonics_.sine(j) * harmonics_.sine(j);
      weights_.push_back(harmonics_.weight(j)), half_secant_.push_back(0.5 / square);
      flux_weights_.push_back(harmonics_.weight(j) / (radius * square));
    }
    for (int n = 0; n <= settings.truncation + 2; ++n) inverse_.push_back(n > 0 ? 1.0 / n : 0);
    for (Field* one :
         {&eastward_, &northward_, &spin_, &east_flux_, &north_flux_, &depth_, &energy_}) {
      one->resize(at(points()));
    }
    for (Waves* one : {&scalar_, &convergence_, &curl_}) one->resize(at(counts_[at(rank_)]));
    fluxes_ = transpose_of(2), energies_ = transpose_of(1), masses_ = transpose_of(2);
    start();
  }

  // Returns where this rank's rows lie among the rows of all ranks in the output.
  output::Shape shape() const {
    const int records = settings_.every ? (settings_.steps - 1) / settings_.every + 1 : 0;
    return {3, settings_.latitudes(), longitudes_, rows_[at(rank_)], rows(), records};
  }

  // Sets the variables to the initial state of the test case, and sets how to communicate and where
  // to write.
  void prepare(Way* way, output::FieldFile* file) {
    for (std::size_t q = 0; q < 3; ++q) all_[q] = start_[q];
    way_ = way, file_ = file;
    if (file_) file_->begin(way_->writing, way_->variant->comm);
  }

  // Carries out all steps by the Runge-Kutta method. Each variable of a stage is sent as soon as it
  // is known.
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

  // Returns the error of the geopotential against the initial state, for cases that do not change:
  // the root mean square, relative to the initial one, as in the literature.
  double error() const {
    double sums[2] = {0, 0};
    for (std::size_t i = 0; i < all_[geopotential].size(); ++i) {
      sums[0] += std::norm(all_[geopotential][i] - start_[geopotential][i]);
      sums[1] += std::norm(start_[geopotential][i]);
    }
    return std::sqrt(sums[0] / sums[1]);
  }
  // Returns the relative change of the total mass.
  double lost() const {
    const double before = start_[geopotential][0].real(), now = all_[geopotential][0].real();
    return std::fabs(now - before) / before;
  }
  // Computes the conserved quantities. All ranks must call it together.
  Measures measures() {
    winds();
    to_grid(all_[geopotential], &depth_);
    double sums[2] = {0, 0}, extremes[3] = {-INFINITY, -INFINITY, -INFINITY};
    each_point([&](int j, std::size_t i) {
      const double sine = harmonics_.sine(j), weight = harmonics_.weight(j);
      const double square = eastward_[i] * eastward_[i] + northward_[i] * northward_[i];
      const double spin = spin_[i], absolute = spin + coriolis_[i], depth = depth_[i];
      sums[0] += weight * depth * (square / (1 - sine * sine) / 2 + depth / 2 + mountain_[i]);
      sums[1] += weight * absolute * absolute / (2 * depth);
      extremes[0] = std::max(extremes[0], -spin), extremes[1] = std::max(extremes[1], spin);
      extremes[2] = std::max(extremes[2], cases::gravity * absolute / depth);
    });
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

  // Carries out one stage. Each variable's gather overlaps with what follows: the vorticity's with
  // the pressure, the divergence's with the advection of mass, the geopotential's with the next
  // transform.
  void stage(double weight, double part, bool last) {
    wait(vorticity), wait(divergence);
    winds();
    for (std::size_t i = 0; i < spin_.size(); ++i) {
      const double absolute = spin_[i] + coriolis_[i];
      east_flux_[i] = eastward_[i] * absolute, north_flux_[i] = northward_[i] * absolute;
    }
    leave({&east_flux_, &north_flux_}, &fluxes_);
    const auto turn = [&] {
      derive(&fluxes_);
      advance(vorticity, convergence_, weight, part, last);
    };
    if (!way_->transposes) turn();

    // Pressure
    wait(geopotential);
    to_grid(all_[geopotential], &depth_);
    each_point([&](int j, std::size_t i) {
      const double square = eastward_[i] * eastward_[i] + northward_[i] * northward_[i];
      energy_[i] = depth_[i] + mountain_[i] + square * half_secant_[at(j)];
      eastward_[i] *= depth_[i], northward_[i] *= depth_[i];
    });
    leave({&energy_}, &energies_);
    if (way_->transposes) leave({&eastward_, &northward_}, &masses_), turn();
    analyse(&energies_);
    each_wave(
        [&](int n, std::size_t i) { curl_[i] += n * (n + 1.0) / (radius * radius) * scalar_[i]; });
    advance(divergence, curl_, weight, part, last);

    // Advection of mass
    if (!way_->transposes) leave({&eastward_, &northward_}, &masses_);
    derive(&masses_);
    advance(geopotential, convergence_, weight, part, last);
  }

  void advance(Variable q, const Waves& tendency, double weight, double part, bool last) {
    if (file_) file_->progress();
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

  // Writes a copy of the fields to the file, since the next steps change the variables.
  void write(int record) {
    Field fields;
    for (const Waves& one : all_) {
      to_grid(one, &depth_);
      fields.insert(fields.end(), depth_.begin(), depth_.end());
    }
    const double begin = MPI_Wtime();
    file_->write(record, std::move(fields));
    way_->variant->communicating_s += MPI_Wtime() - begin;
  }

  // Calls body(j, i) for each grid point of this rank: j is the latitude, i the index in a field.
  template <class Body>
  void each_point(const Body& body) const {
    std::size_t i = 0;
    for (int j = rows_[at(rank_)]; j < rows_[at(rank_ + 1)]; ++j) {
      for (const std::size_t end = i + at(longitudes_); i < end; ++i) body(j, i);
    }
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
  void to_grid(const Waves& waves, Field* made) {
    harmonics_.to_latitudes<1>(rows_[at(rank_)], rows(), [&](int m, auto* own) {
      const auto count = settings_.truncation + 1 - m;
      std::copy_n(waves.begin() + places_[at(m)], count, (*own)[0].begin());
      (*own)[0][at(count)] = 0;
    });
    to_rows(0, made);
  }

  // Computes the winds times the cosine of the latitude, from stream function and potential, and
  // the vorticity. In a derivative along the meridian, times the cosine, each coefficient is a sum
  // of two neighbouring ones.
  void winds() {
    harmonics_.to_latitudes<3>(rows_[at(rank_)], rows(), [&](int m, auto* own) {
      const Complex* z = all_[vorticity].data() + places_[at(m)];
      const Complex* d = all_[divergence].data() + places_[at(m)];
      const double* epsilon = harmonics_.epsilons(m);
      const int last = settings_.truncation - m;
      for (int k = 0; k <= last + 1; ++k) {
        const double here = radius * inverse_[at(m + k)], next = inverse_[at(m + k + 1)];
        Complex east = 0, north = 0, spin = 0;
        if (k <= last) {
          const double turn = -m * here * next;  // to be multiplied by the imaginary unit
          east = turn * Complex(-d[k].imag(), d[k].real());
          north = turn * Complex(-z[k].imag(), z[k].real()), spin = z[k];
        }
        if (k < last) {
          const double share = radius * epsilon[k + 1] * next;
          east += share * z[k + 1], north -= share * d[k + 1];
        }
        if (k > 0 && m + k > 1) {
          const double share = epsilon[k] * here;
          east -= share * z[k - 1], north += share * d[k - 1];
        }
        (*own)[0][at(k)] = east, (*own)[1][at(k)] = north, (*own)[2][at(k)] = spin;
      }
    });
    to_rows(0, &eastward_), to_rows(1, &northward_), to_rows(2, &spin_);
  }

  // Returns this rank's coefficients of a field that is given on its rows of the grid.
  const Waves& to_waves(const Field& field) {
    leave({&field}, &energies_);
    analyse(&energies_);
    return scalar_;
  }
  // Returns this rank's coefficients of the convergence of a flux; those of its curl are then in
  // curl_.
  const Waves& to_convergence(const Field& east, const Field& north) {
    leave({&east, &north}, &fluxes_);
    derive(&fluxes_);
    return convergence_;
  }
  // Returns the number of floating-point operations in a transform of this many fields at all
  // latitudes.
  double operations(int fields) const {
    const double points = 1.0 * settings_.latitudes() * longitudes_;
    return 2 * harmonics_.multiply_adds(fields) + fields * 2.5 * points * std::log2(longitudes_);
  }

 private:
  // Computes the grid values of a field on this rank's rows from the values for each m. Latitudes
  // and their mirror images lie together.
  void to_rows(int field, Field* made) {
    const int north = settings_.latitudes() / 2;
    for (int eight = 0; 8 * eight < north; ++eight) {
      for (const bool south : {false, true}) {
        std::array<double*, 8> wanted = {};
        for (int j = 8 * eight; j < std::min(north, 8 * eight + 8); ++j) {
          const int row = (south ? settings_.latitudes() - 1 - j : j) - rows_[at(rank_)];
          if (row >= 0 && row < rows()) wanted[at(j % 8)] = made->data() + row * longitudes_;
        }
        if (std::any_of(wanted.begin(), wanted.end(), [](double* row) { return row; })) {
          fourier_.to_rows(harmonics_.line(field, eight, south), settings_.truncation, wanted);
        }
      }
    }
  }

  int count_of_waves(int rank) const { return (settings_.truncation - rank) / ranks_ + 1; }
  Transpose transpose_of(int fields) const {
    Transpose made;
    int sent = 0, received = 0;
    for (int peer = 0; peer < ranks_; ++peer) {
      made.send_at.push_back(sent), made.receive_at.push_back(received);
      made.send.push_back(2 * fields * rows() * count_of_waves(peer));
      made.receive.push_back(2 * fields * count_of_waves(rank_) *
                             (rows_[at(peer + 1)] - rows_[at(peer)]));
      sent += made.send.back(), received += made.receive.back();
    }
    made.out.resize(at(sent)), made.in.resize(at(received));
    return made;
  }

  // Transforms this rank's rows along the latitudes, and starts the transpose, by which each rank
  // gets its wave numbers at all latitudes.
  void leave(const std::vector<const Field*>& fields, Transpose* made) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      for (int j = 0; j < rows(); j += 8) {
        const int count = std::min(8, rows() - j);
        std::array<const double*, 8> from = {};
        for (int k = 0; k < count; ++k) from[at(k)] = fields[f]->data() + (j + k) * longitudes_;
        fourier_.from_rows(from, settings_.truncation, line_.data());
        for (int m = 0; m <= settings_.truncation; ++m) {
          const int peer = m % ranks_,
                    wave = static_cast<int>(f) * count_of_waves(peer) + m / ranks_;
          double* to = made->out.data() + made->send_at[at(peer)] + 2 * wave * rows() + j;
          for (int part = 0; part < 2; ++part, to += rows()) {
            const double* values = line_[at(2 * m + part)].of;
            if (count == 8) {  // a constant length lets the compiler emit better code
              std::copy_n(values, 8, to);
            } else {
              std::copy_n(values, count, to);
            }
          }
        }
      }
    }
    const double begin = MPI_Wtime();
    const MPI_Comm comm = way_ ? way_->variant->comm : MPI_COMM_WORLD;
    if (way_ && way_->transposes) {
      MPI_Ialltoallv(made->out.data(), made->send.data(), made->send_at.data(), MPI_DOUBLE,
                     made->in.data(), made->receive.data(), made->receive_at.data(), MPI_DOUBLE,
                     comm, &made->request);
      return;
    }
    MPI_Alltoallv(made->out.data(), made->send.data(), made->send_at.data(), MPI_DOUBLE,
                  made->in.data(), made->receive.data(), made->receive_at.data(), MPI_DOUBLE, comm);
    if (way_) way_->variant->communicating_s += MPI_Wtime() - begin;
  }

  // Waits for a transpose, and calls made(first, m, sums) for each m of this rank. sums: the
  // coefficients of each field times `weights`, up to one wave number more than is kept. first:
  // index of the m's first coefficient.
  template <int fields, class Made>
  void each_sum(Transpose* one, const Field& weights, const Made& made) {
    MPI_Wait(&one->request, MPI_STATUS_IGNORE);
    const int mine = count_of_waves(rank_);
    std::size_t first = 0;
    for (int w = 0; w < mine; ++w) {
      const int m = rank_ + w * ranks_;
      for (int i = 0; i < 2 * fields; ++i) {
        for (int peer = 0; peer < ranks_; ++peer) {
          const int count = rows_[at(peer + 1)] - rows_[at(peer)];
          const int place = (i / 2 * mine + w) * 2 + i % 2;
          const auto from = one->in.begin() + one->receive_at[at(peer)] + place * count;
          std::copy_n(from, count, column_.begin() + rows_[at(peer)]);
        }
        harmonics_.set(i / 2, i % 2 == 1, column_.data(), weights);
      }
      made(first, m, harmonics_.to_waves<fields>(m));
      first += at(settings_.truncation + 1 - m);
    }
  }
  void analyse(Transpose* one) {
    each_sum<1>(one, weights_, [&](std::size_t first, int m, const auto& sums) {
      std::copy_n(sums[0].begin(), settings_.truncation + 1 - m,
                  scalar_.begin() + static_cast<std::ptrdiff_t>(first));
    });
  }
  // Computes convergence and curl of a flux, with the derivative along the meridian by partial
  // integration.
  void derive(Transpose* one) {
    each_sum<2>(one, flux_weights_, [&](std::size_t first, int m, const auto& sums) {
      const double* epsilon = harmonics_.epsilons(m);
      const Complex *a = sums[0].data(), *b = sums[1].data();
      for (int k = 0; k <= settings_.truncation - m; ++k) {
        const double next = (m + k) * epsilon[k + 1];
        Complex along = -next * a[k + 1], across = -next * b[k + 1];
        if (k > 0) {
          const double last = (m + k + 1) * epsilon[k];
          along += last * a[k - 1], across += last * b[k - 1];
        }
        convergence_[first + at(k)] = across + 1.0 * m * Complex(a[k].imag(), -a[k].real());
        curl_[first + at(k)] = along + 1.0 * m * Complex(-b[k].imag(), b[k].real());
      }
    });
  }

  // ---- The cases

  void start() {
    const cases::Case chosen(settings_.number);
    Field spin, depth;
    each_point([&](int j, std::size_t i) {
      const double east = 2 * M_PI * static_cast<double>(i % at(longitudes_)) / longitudes_;
      const cases::Point point = chosen.begins(east, harmonics_.sine(j));
      mountain_.push_back(point.mountain), coriolis_.push_back(point.coriolis);
      spin.push_back(point.spin), depth.push_back(point.depth);
    });
    start_ = all_;
    for (const Variable q : {vorticity, geopotential}) {
      const Waves& mine = to_waves(q == vorticity ? spin : depth);
      MPI_Allgatherv(mine.data(), counts_[at(rank_)], MPI_C_DOUBLE_COMPLEX, start_[q].data(),
                     counts_.data(), begins_.data(), MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    }
  }

  const Settings& settings_;
  const int ranks_, rank_, longitudes_;
  Harmonics harmonics_;
  Fourier fourier_;
  std::vector<int> begins_, counts_, places_, rows_;
  std::array<Waves, 3> all_, start_, old_, sum_;
  std::array<MPI_Request, 3> requests_ = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  // Buffers that a stage needs, kept from one stage to the next.
  Transpose fluxes_, energies_, masses_;
  Field eastward_, northward_, spin_, east_flux_, north_flux_, depth_, energy_;
  Waves scalar_, convergence_, curl_;
  Eights line_;
  Field column_, weights_, flux_weights_, half_secant_, inverse_;
  Field coriolis_, mountain_;
  Way* way_ = nullptr;
  output::FieldFile* file_ = nullptr;  // file for output; nullptr if nothing is written
};

}  // namespace atmosphere
