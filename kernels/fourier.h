// fourier.h: the three-dimensional transform of fft3d, whose transposes are pipelined: one block of
// a transpose is transformed while the next one travels; and grids whose transforms are known. Why
// apart: what is compared with it (references/fftw_mpi.cc) needs the same transform and grids.
// Lines are transformed by FFTW.
#pragma once
#include <fftw3.h>
#include <mpi.h>

#include <algorithm>
#include <compare>
#include <complex>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trials.h"

namespace fourier {

using Complex = std::complex<double>;
using Array = std::vector<Complex>;

struct Settings {
  int grid[3] = {64, 64, 64};
  int columns = 1;  // of the grid of ranks: 1 makes slabs
  int blocks = 4;   // of each transpose
};

// Part `part` of `parts` of `total` points: sizes differ by one at most.
struct Part {
  int first, size;
};
inline Part part_of(int total, int parts, int part) {
  const auto begin = [&](int i) {
    return static_cast<int>(static_cast<std::int64_t>(total) * i / parts);
  };
  return {begin(part), begin(part + 1) - begin(part)};
}

inline std::size_t at(std::int64_t place) {
  return static_cast<std::size_t>(place);
}

// Transforms of single lines in place, all by the same plan, so that blocks do not change the
// result. Every line begins at a whole number of complex values, which is all that FFTW asks for.
class Line {
 public:
  Line(int length, int sign) : length_(length), sign_(sign), scratch_(at(length)) {
    plan_ =
        fftw_plan_dft_1d(length, raw(scratch_.data()), raw(scratch_.data()), sign, FFTW_MEASURE);
  }
  ~Line() { fftw_destroy_plan(plan_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  void transform(Complex* line) const { fftw_execute_dft(plan_, raw(line), raw(line)); }
  int sign() const { return sign_; }
  static fftw_complex* raw(Complex* data) { return reinterpret_cast<fftw_complex*>(data); }

 private:
  int length_, sign_;
  Array scratch_;
  fftw_plan plan_;
};

// Transforms of all lines of a plane at once. Turning, they go to another plane: FFTW itself writes
// point k of line i to k * step + i, which saves a pass over the memory.
class Plane {
 public:
  struct Shape {
    int length, sign, count, distance;  // of a line; how many lines, and how far from each other
    int step;                           // 0: in place
    auto operator<=>(const Shape&) const = default;
  };
  explicit Plane(const Shape& shape) {
    const bool turns = shape.step > 0;
    Array from(at(std::int64_t{shape.count - 1} * shape.distance + shape.length));
    Array to(turns ? at(std::int64_t{shape.length - 1} * shape.step + shape.count) : 0);
    plan_ = fftw_plan_many_dft(1, &shape.length, shape.count, Line::raw(from.data()), nullptr, 1,
                               shape.distance, Line::raw((turns ? to : from).data()), nullptr,
                               turns ? shape.step : 1, turns ? 1 : shape.distance, shape.sign,
                               FFTW_MEASURE);
  }
  ~Plane() { fftw_destroy_plan(plan_); }
  Plane(const Plane&) = delete;
  Plane& operator=(const Plane&) = delete;
  void transform(Complex* from, Complex* to) const {
    fftw_execute_dft(plan_, Line::raw(from), Line::raw(to));
  }
  // Each shape is planned once, so that all variants have the same bits.
  static const Plane& of(const Shape& shape) {
    static std::map<Shape, Plane> planned;
    return planned.try_emplace(shape, shape).first->second;
  }

 private:
  fftw_plan plan_;
};

// ---- A transpose among the ranks of one communicator --------------------------------------------

// in[f][g][c] has all c and this rank's g; out[f][c][g] has all g and this rank's c. Nothing
// changes along f, so blocks of f travel one after the other. Strides say where f, and g or c, lie.
struct Side {
  int total;          // points along the split dimension, of all ranks
  std::int64_t f, i;  // strides of f and of the local dimension; the full one is contiguous
};

// One block of a transpose on its way; its memory serves the next blocks, too.
struct Flight {
  Part part{};
  Array sent, received;
  std::vector<int> send_counts, send_places, receive_counts, receive_places;
  MPI_Request request = MPI_REQUEST_NULL;
};

inline void enlarge(Array* array, std::int64_t size) {
  if (array->size() < at(size)) array->resize(at(size));
}

class Transpose {
 public:
  Transpose(int depth, Side in, Side out, int ranks, int rank)
      : depth_(depth), in_(in), out_(out), ranks_(ranks), rank_(rank) {}

  // `before` transforms a line of `in` before it leaves, `after` one of `out` that has arrived.
  void carry_out(const Line* before, const Line* after, Array* in, Array* out, int blocks,
                 trials::Variant* variant, MPI_Comm comm, Flight (*flights)[2]) {
    if (ranks_ == 1) return turn_at_home(before, after, in, out);
    const bool overlapped = variant->name == "overlapped";
    for (int k = 0; k <= blocks; ++k) {
      if (k < blocks) {
        Flight& next = (*flights)[k % 2];
        next.part = part_of(depth_, blocks, k);
        count(&next);
        pack(before, in, &next);
        start(overlapped, variant, comm, &next);
      }
      if (k > 0) {
        Flight& last = (*flights)[(k - 1) % 2];
        MPI_Wait(&last.request, MPI_STATUS_IGNORE);
        unpack(after, last, out);
      }
    }
  }

 private:
  // Nothing travels.
  void turn_at_home(const Line* before, const Line* after, Array* in, Array* out) const {
    const int from = static_cast<int>(in_.i), to = static_cast<int>(out_.i);
    for (int f = 0; f < depth_; ++f) {
      Complex* lines = line(out, out_, f, 0);
      if (before) {
        Plane::of({out_.total, before->sign(), in_.total, from, to})
            .transform(line(in, in_, f, 0), lines);
      } else {
        turn(line(in, in_, f, 0), in_.i, in_.total, out_.total, lines);
      }
      if (after) {
        Plane::of({in_.total, after->sign(), out_.total, to, 0}).transform(lines, lines);
      }
    }
  }

  // What travels to and from each rank.
  void count(Flight* flight) const {
    flight->send_counts.clear(), flight->send_places.clear();
    flight->receive_counts.clear(), flight->receive_places.clear();
    int sent = 0, received = 0;
    const int mine = part_of(in_.total, ranks_, rank_).size;   // of g
    const int here = part_of(out_.total, ranks_, rank_).size;  // of c
    for (int peer = 0; peer < ranks_; ++peer) {
      flight->send_places.push_back(sent), flight->receive_places.push_back(received);
      flight->send_counts.push_back(flight->part.size * mine *
                                    part_of(out_.total, ranks_, peer).size);
      flight->receive_counts.push_back(flight->part.size * here *
                                       part_of(in_.total, ranks_, peer).size);
      sent += flight->send_counts.back(), received += flight->receive_counts.back();
    }
    enlarge(&flight->sent, sent), enlarge(&flight->received, received);
  }

  // Each line leaves as soon as it is transformed, while it is in the cache.
  void pack(const Line* before, Array* in, Flight* flight) const {
    const int mine = part_of(in_.total, ranks_, rank_).size;
    for (int f = 0; f < flight->part.size; ++f) {
      for (int g = 0; g < mine; ++g) {
        Complex* from = line(in, in_, flight->part.first + f, g);
        if (before) before->transform(from);
        for (int peer = 0; peer < ranks_; ++peer) {
          const Part theirs = part_of(out_.total, ranks_, peer);
          std::copy_n(from + theirs.first, theirs.size,
                      flight->sent.data() + flight->send_places[at(peer)] +
                          std::int64_t{f * mine + g} * theirs.size);
        }
      }
    }
  }

  void start(bool overlapped, trials::Variant* variant, MPI_Comm comm, Flight* flight) const {
    const auto type = MPI_C_DOUBLE_COMPLEX;
    if (overlapped) {
      MPI_Ialltoallv(flight->sent.data(), flight->send_counts.data(), flight->send_places.data(),
                     type, flight->received.data(), flight->receive_counts.data(),
                     flight->receive_places.data(), type, comm, &flight->request);
      return;
    }
    const double begin = MPI_Wtime();
    MPI_Alltoallv(flight->sent.data(), flight->send_counts.data(), flight->send_places.data(), type,
                  flight->received.data(), flight->receive_counts.data(),
                  flight->receive_places.data(), type, comm);
    variant->communicating_s += MPI_Wtime() - begin;
  }

  void unpack(const Line* after, const Flight& flight, Array* out) const {
    const int here = part_of(out_.total, ranks_, rank_).size;
    for (int f = 0; f < flight.part.size; ++f) {
      Complex* lines = line(out, out_, flight.part.first + f, 0);
      for (int peer = 0; peer < ranks_; ++peer) {
        const Part theirs = part_of(in_.total, ranks_, peer);
        turn(flight.received.data() + flight.receive_places[at(peer)] +
                 std::int64_t{f} * theirs.size * here,
             here, theirs.size, here, lines + theirs.first);
      }
      for (int c = 0; after && c < here; ++c) after->transform(lines + c * out_.i);
    }
  }
  // from[g][c] to lines[c][g], in tiles of as many values as a line of the cache has.
  void turn(const Complex* from, std::int64_t stride, int size, int here, Complex* lines) const {
    constexpr int few = 4;
    const auto tile = [&](int g, int c, int height, int width) {
      for (int j = c; j < c + width; ++j) {
        for (int i = g; i < g + height; ++i) lines[j * out_.i + i] = from[i * stride + j];
      }
    };
    for (int g = 0; g < size; g += few) {
      for (int c = 0; c < here; c += few) {
        const int height = std::min(few, size - g), width = std::min(few, here - c);
        height == few&& width == few ? tile(g, c, few, few) : tile(g, c, height, width);
      }
    }
  }

  static Complex* line(Array* array, const Side& side, int f, int i) {
    return array->data() + f * side.f + i * side.i;
  }

  int depth_;
  Side in_, out_;
  int ranks_, rank_;
};

// ---- The transform: x over the rows of ranks, y and z over the columns --------------------------

// Input [x][y][z] with all z; output [z][y][x] with all x.
class Transform {
 public:
  Transform(const Settings& settings, trials::Variant* variant)
      : settings_(settings), variant_(variant) {
    const int rank = trials::rank_in(variant->comm);
    columns_ = settings.columns, rows_ = trials::size_of(variant->comm) / columns_;
    row_ = rank / columns_, column_ = rank % columns_;
    row_comm_ = communicator(row_, column_), column_comm_ = communicator(column_, row_);
    const int nx = settings.grid[0], ny = settings.grid[1], nz = settings.grid[2];
    x = part_of(nx, rows_, row_), y = part_of(ny, columns_, column_);
    z = part_of(nz, columns_, column_), y_after = part_of(ny, rows_, row_);
  }
  ~Transform() { MPI_Comm_free(&row_comm_), MPI_Comm_free(&column_comm_); }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  void forward(Array* in, Array* out) {
    const Lines& lines = forward_lines();
    enlarge(&middle_, std::int64_t{x.size} * z.size * settings_.grid[1]);
    out->resize(at(std::int64_t{z.size} * y_after.size * settings_.grid[0]));
    first().carry_out(&lines.z, nullptr, in, &middle_, blocks(), variant_, row_comm_, &flights_);
    second().carry_out(&lines.y, &lines.x, &middle_, out, blocks(), variant_, column_comm_,
                       &flights_);
  }
  // Unscaled, as FFTW's.
  void backward(Array* in, Array* out) {
    const Lines& lines = backward_lines();
    enlarge(&middle_, std::int64_t{x.size} * z.size * settings_.grid[1]);
    out->resize(at(std::int64_t{x.size} * y.size * settings_.grid[2]));
    Transpose back(z.size, out_of_second(), into_second(), rows_, row_);
    back.carry_out(&lines.x, &lines.y, in, &middle_, blocks(), variant_, column_comm_, &flights_);
    Transpose last(x.size, out_of_first(), into_first(), columns_, column_);
    last.carry_out(nullptr, &lines.z, &middle_, out, blocks(), variant_, row_comm_, &flights_);
  }

  Part x, y, z, y_after;  // this rank's parts

 private:
  struct Lines {
    Line x, y, z;
  };
  const Lines& forward_lines() const {
    static const Lines lines{{settings_.grid[0], FFTW_FORWARD},
                             {settings_.grid[1], FFTW_FORWARD},
                             {settings_.grid[2], FFTW_FORWARD}};
    return lines;
  }
  const Lines& backward_lines() const {
    static const Lines lines{{settings_.grid[0], FFTW_BACKWARD},
                             {settings_.grid[1], FFTW_BACKWARD},
                             {settings_.grid[2], FFTW_BACKWARD}};
    return lines;
  }
  // The blocking form is the usual one: each transpose whole. As many blocks on all ranks.
  int blocks() const { return variant_->name == "overlapped" ? settings_.blocks : 1; }

  MPI_Comm communicator(int color, int key) const {
    MPI_Comm made;
    MPI_Comm_split(variant_->comm, color, key, &made);
    trials::use_engine(made, *variant_);
    return made;
  }

  // First: y gathered, z split; [x][y][all z] becomes [x][z][all y]. Nothing changes along x.
  Side into_first() const {
    const int nz = settings_.grid[2];
    return {settings_.grid[1], std::int64_t{y.size} * nz, nz};
  }
  Side out_of_first() const {
    const int ny = settings_.grid[1];
    return {settings_.grid[2], std::int64_t{z.size} * ny, ny};
  }
  // Second: x gathered, y split; [x][z][all y] becomes [z][y][all x]. Nothing changes along z.
  Side into_second() const {
    const int ny = settings_.grid[1];
    return {settings_.grid[0], ny, std::int64_t{z.size} * ny};
  }
  Side out_of_second() const {
    const int nx = settings_.grid[0];
    return {settings_.grid[1], std::int64_t{y_after.size} * nx, nx};
  }
  Transpose first() const { return {x.size, into_first(), out_of_first(), columns_, column_}; }
  Transpose second() const { return {z.size, into_second(), out_of_second(), rows_, row_}; }

  const Settings& settings_;
  trials::Variant* variant_;
  int rows_ = 1, columns_ = 1, row_ = 0, column_ = 0;
  MPI_Comm row_comm_ = MPI_COMM_NULL, column_comm_ = MPI_COMM_NULL;
  Array middle_;
  Flight flights_[2];
};

// ---- Data whose transform is known --------------------------------------------------------------

// Depends on the point alone, so that every rank knows the whole grid.
inline Complex value_at(std::uint64_t point) {
  const auto part = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
  };
  return {part((2 * point + 1) * 0x9e3779b97f4a7c15ull),
          part((2 * point + 2) * 0x9e3779b97f4a7c15ull)};
}

class Problem {
 public:
  explicit Problem(const Settings& settings) : settings_(settings), n_(settings.grid) {
    Array whole(at(points()));
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = value_at(i);
    fftw_plan plan = fftw_plan_dft_3d(n_[0], n_[1], n_[2], Line::raw(whole.data()),
                                      Line::raw(whole.data()), FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    serial_ = std::move(whole);
  }
  std::int64_t points() const { return std::int64_t{n_[0]} * n_[1] * n_[2]; }

  // This rank's input, shifted along all three axes.
  Array input(const Transform& parts, const int (&shift)[3] = {0, 0, 0}) const {
    Array made;
    for (int i = 0; i < parts.x.size; ++i) {
      for (int j = 0; j < parts.y.size; ++j) {
        for (int k = 0; k < n_[2]; ++k) {
          made.push_back(value_at(static_cast<std::uint64_t>(
              place(parts.x.first + i - shift[0], parts.y.first + j - shift[1], k - shift[2]))));
        }
      }
    }
    return made;
  }
  // A plane wave; its transform is one point.
  Array wave(const Transform& parts, const int (&number)[3]) const {
    Array made;
    for (int i = 0; i < parts.x.size; ++i) {
      for (int j = 0; j < parts.y.size; ++j) {
        for (int k = 0; k < n_[2]; ++k) {
          const double turns = 1.0 * number[0] * (parts.x.first + i) / n_[0] +
                               1.0 * number[1] * (parts.y.first + j) / n_[1] +
                               1.0 * number[2] * k / n_[2];
          made.push_back(std::polar(1.0, 2 * M_PI * turns));
        }
      }
    }
    return made;
  }
  // Calls back with each point of this rank's spectrum, in the order in which it lies.
  template <class Body>
  void spectrum(const Transform& parts, const Body& body) const {
    std::size_t next = 0;
    for (int k = 0; k < parts.z.size; ++k) {
      for (int j = 0; j < parts.y_after.size; ++j) {
        for (int i = 0; i < n_[0]; ++i) {
          body(next++, i, parts.y_after.first + j, parts.z.first + k);
        }
      }
    }
  }
  // The spectrum of a point at `shift`: to multiply by it is to convolve with that point.
  Array shift(const Transform& parts, const int (&shift)[3]) const {
    Array made;
    spectrum(parts, [&](std::size_t, int i, int j, int k) {
      const double turns =
          1.0 * i * shift[0] / n_[0] + 1.0 * j * shift[1] / n_[1] + 1.0 * k * shift[2] / n_[2];
      made.push_back(std::polar(1.0 / static_cast<double>(points()), -2 * M_PI * turns));
    });
    return made;
  }

  // Errors are relative to the largest value that is right.
  double error_at(Complex found, int i, int j, int k) const {
    return std::abs(found - serial_[at(place(i, j, k))]) / std::sqrt(static_cast<double>(points()));
  }
  double error_of_forward(const Transform& parts, const Array& found) const {
    double error = 0;
    spectrum(parts, [&](std::size_t here, int i, int j, int k) {
      error = std::max(error, error_at(found[here], i, j, k));
    });
    return error;
  }
  double error_of_wave(const Transform& parts, const Array& found, const int (&number)[3]) const {
    double error = 0;
    const double peak = static_cast<double>(points());
    spectrum(parts, [&](std::size_t here, int i, int j, int k) {
      const bool there = place(i, j, k) == place(number[0], number[1], number[2]);
      error = std::max(error, std::abs(found[here] / peak - (there ? 1.0 : 0.0)));
    });
    return error;
  }

 private:
  std::int64_t place(int i, int j, int k) const {
    const auto wrapped = [](int value, int extent) { return (value % extent + extent) % extent; };
    return (std::int64_t{wrapped(i, n_[0])} * n_[1] + wrapped(j, n_[1])) * n_[2] +
           wrapped(k, n_[2]);
  }
  const Settings& settings_;
  const int (&n_)[3];
  Array serial_;
};

inline double difference(const Array& a, const Array& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace fourier
