// The three-dimensional transform of fft3d, whose transposes are pipelined: one block is
// transformed while the next one is in transit; and grids whose transforms are known.
// references/fftw_mpi.cc uses it, too. FFTW transforms lines and planes.
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
  int columns = 1;  // columns of the grid of ranks; 1 divides the data into slabs
  int blocks = 4;   // number of blocks in each transpose
  int work = 1;     // with slabs, how often forward() makes each of FFTW's transforms
};

// Returns the reason why the grid cannot be divided among this many ranks; "" if it can.
inline std::string cannot_be_dealt_out(const Settings& settings, int ranks) {
  const int* n = settings.grid;
  if (ranks % settings.columns != 0) {
    return "--columns " + std::to_string(settings.columns) + " does not divide " +
           std::to_string(ranks) + " ranks: choose a divisor";
  }
  const int rows = ranks / settings.columns;
  if (n[0] < rows || n[1] < std::max(rows, settings.columns) || n[2] < settings.columns) {
    return "the grid has too few points for " + std::to_string(rows) + " x " +
           std::to_string(settings.columns) + " ranks: choose a larger --grid or fewer ranks";
  }
  return "";
}

// A contiguous part of an axis that is divided among ranks. Sizes of parts differ by at most one.
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

// Transforms of a plane [rows][columns] along one axis or both. FFTW is given the strides, so that
// nothing need be transposed in memory.
class Plan {
 public:
  enum Axes { of_rows = 1, of_columns = 2, of_both = 3 };
  struct Shape {
    int rows, columns;
    Axes axes;
    int sign;
    bool in_place;
    auto operator<=>(const Shape&) const = default;
  };
  explicit Plan(const Shape& shape) {
    const fftw_iodim64 dimensions[2] = {{shape.rows, shape.columns, shape.columns},
                                        {shape.columns, 1, 1}};
    std::vector<fftw_iodim64> transformed, others;
    for (const int axis : {0, 1}) {
      (shape.axes & (1 << axis) ? transformed : others).push_back(dimensions[axis]);
    }
    Array from(at(std::int64_t{shape.rows} * shape.columns)), to(shape.in_place ? 0 : from.size());
    plan_ =
        fftw_plan_guru64_dft(static_cast<int>(transformed.size()), transformed.data(),
                             static_cast<int>(others.size()), others.data(), raw(from.data()),
                             raw((shape.in_place ? from : to).data()), shape.sign, FFTW_MEASURE);
  }
  ~Plan() { fftw_destroy_plan(plan_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  void transform(Complex* from, Complex* to) const { fftw_execute_dft(plan_, raw(from), raw(to)); }

  // Returns the plan for this shape. Each shape is planned only once, so that all variants give the
  // same bits.
  static const Plan& of(Shape shape) {
    static std::map<Shape, Plan> planned;
    return planned.try_emplace(shape, shape).first->second;
  }
  static fftw_complex* raw(Complex* data) { return reinterpret_cast<fftw_complex*>(data); }

 private:
  fftw_plan plan_;
};

// ---- What travels -------------------------------------------------------------------------------

// How many values are sent to or received from each rank, and where they begin.
struct Ends {
  std::vector<int> counts, places;
  void add(std::int64_t count, std::int64_t place) {
    counts.push_back(static_cast<int>(count)), places.push_back(static_cast<int>(place));
  }
};

// Divides planes into a piece for each rank. A piece has, from each of the plane's `lines` lines,
// the rank's part of `total` points of `run` values each. In a message its values lie plane by
// plane and line by line.
struct Cut {
  int total, ranks, run, lines;

  Ends ends(int planes) const {
    Ends made;
    for (int rank = 0, place = 0; rank < ranks; ++rank) {
      made.add(planes * lines * part_of(total, ranks, rank).size * run, place);
      place += made.counts.back();
    }
    return made;
  }
  void pack(const Complex* plane, int number, const Ends& ends, Complex* message) const {
    each_run(number, ends, [&](std::int64_t in_plane, std::int64_t in_message, int size) {
      std::copy_n(plane + in_plane, size, message + in_message);
    });
  }
  void unpack(const Complex* message, int number, const Ends& ends, Complex* plane) const {
    each_run(number, ends, [&](std::int64_t in_plane, std::int64_t in_message, int size) {
      std::copy_n(message + in_message, size, plane + in_plane);
    });
  }

 private:
  template <class Body>
  void each_run(int number, const Ends& ends, const Body& body) const {
    for (int rank = 0; rank < ranks; ++rank) {
      const Part part = part_of(total, ranks, rank);
      const int size = part.size * run;
      for (int i = 0; i < lines; ++i) {
        body((std::int64_t{i} * total + part.first) * run,
             ends.places[at(rank)] + (std::int64_t{number} * lines + i) * size, size);
      }
    }
  }
};

// A block of a transpose in transit. Later blocks use its memory again.
struct Flight {
  Ends out, in;
  Array sent, received;
  MPI_Request request = MPI_REQUEST_NULL;
};

// ---- The transform ------------------------------------------------------------------------------

// The ranks form a grid of rows and columns. The input is [x][y][z] with all z: x is divided among
// the rows of ranks, and y within a row. The first transpose, within a row, divides z instead of y,
// so that each rank has all y. The second one, within a column, divides y instead of x, so that
// each has all x. The output is [x][y][z] with all x. Blocks of x go through both transposes, one
// after the other. The backward transform does the reverse.
class Transform {
 public:
  Transform(const Settings& settings, trials::Variant* variant)
      : settings_(settings), variant_(variant) {
    const int rank = trials::rank_in(variant->comm);
    columns_ = settings.columns, rows_ = trials::size_of(variant->comm) / columns_;
    row_ = rank / columns_, column_ = rank % columns_;
    row_comm_ = communicator(row_, column_), column_comm_ = communicator(column_, row_);
    const int ny = settings.grid[1], nz = settings.grid[2];
    x = part_of(settings.grid[0], rows_, row_), y = part_of(ny, columns_, column_);
    z = part_of(nz, columns_, column_), y_after = part_of(ny, rows_, row_);
    by_z_ = {nz, columns_, 1, y.size}, by_y_ = {ny, columns_, z.size, 1};
    by_y_after_ = {ny, rows_, z.size, 1};
    plane_.resize(at(std::int64_t{ny} * z.size));
    if (columns_ > 1) enlarge(&row_flights_);
    if (rows_ > 1) enlarge(&column_flights_);
  }
  ~Transform() { MPI_Comm_free(&row_comm_), MPI_Comm_free(&column_comm_); }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  // Computes the forward transform. It overwrites the input, as backward() does.
  void forward(Array* in, Array* out) {
    const int ny = settings_.grid[1], nz = settings_.grid[2];
    out->resize(at(settings_.grid[0] * plane_after()));
    for (int k = 0; k < blocks() + 2; ++k) {
      if (k < blocks() && columns_ > 1) {
        Flight* row =
            prepare(&row_flights_[k % 2], by_z_.ends(block(k).size), by_y_.ends(block(k).size));
        const Plan& lines = Plan::of({y.size, nz, Plan::of_columns, FFTW_FORWARD, true});
        each_plane(k, [&](int number, int i) {
          Complex* plane = in->data() + std::int64_t{i} * y.size * nz;
          lines.transform(plane, plane);
          by_z_.pack(plane, number, row->out, row->sent.data());
        });
        start(row, row->sent.data(), row->received.data(), row_comm_);
      }
      if (k >= 1 && k - 1 < blocks()) {
        Flight& row = row_flights_[(k - 1) % 2];
        wait(&row);
        Flight* column = prepare(&column_flights_[(k - 1) % 2], by_y_after_.ends(block(k - 1).size),
                                 by_x(k - 1));
        each_plane(k - 1, [&](int number, int i) {
          Complex* plane = rows_ > 1 ? plane_.data() : out->data() + i * plane_after();
          if (columns_ > 1) {
            by_y_.unpack(row.received.data(), number, row.in, plane);
            Plan::of({ny, z.size, Plan::of_rows, FFTW_FORWARD, true}).transform(plane, plane);
          } else {
            const Plan& both = Plan::of({ny, nz, Plan::of_both, FFTW_FORWARD, false});
            for (int time = 0; time < settings_.work; ++time) {
              both.transform(in->data() + std::int64_t{i} * ny * nz, plane);
            }
          }
          if (rows_ > 1) by_y_after_.pack(plane, number, column->out, column->sent.data());
        });
        if (rows_ > 1) start(column, column->sent.data(), out->data(), column_comm_);
      }
      if (k >= 2) wait(&column_flights_[k % 2]);
    }
    // The repeated transforms are in place, forward and backward in turn.
    for (int time = 0; time < settings_.work; ++time) {
      along_x(time % 2 ? FFTW_BACKWARD : FFTW_FORWARD, out);
    }
  }

  // Computes the backward transform, which is not scaled (as FFTW's).
  void backward(Array* in, Array* out) {
    const int ny = settings_.grid[1], nz = settings_.grid[2];
    out->resize(at(std::int64_t{x.size} * y.size * nz));
    along_x(FFTW_BACKWARD, in);
    for (int k = 0; k < blocks() + 2; ++k) {
      if (k < blocks() && rows_ > 1) {
        Flight* column = prepare(&column_flights_[k % 2], by_x(k), by_y_after_.ends(block(k).size));
        start(column, in->data(), column->received.data(), column_comm_);
      }
      if (k >= 1 && k - 1 < blocks()) {
        Flight& column = column_flights_[(k - 1) % 2];
        wait(&column);
        Flight* row = prepare(&row_flights_[(k - 1) % 2], by_y_.ends(block(k - 1).size),
                              by_z_.ends(block(k - 1).size));
        each_plane(k - 1, [&](int number, int i) {
          Complex* plane = rows_ > 1 ? plane_.data() : in->data() + i * plane_after();
          if (rows_ > 1) by_y_after_.unpack(column.received.data(), number, column.in, plane);
          if (columns_ > 1) {
            Plan::of({ny, z.size, Plan::of_rows, FFTW_BACKWARD, true}).transform(plane, plane);
            by_y_.pack(plane, number, row->out, row->sent.data());
          } else {
            Plan::of({ny, nz, Plan::of_both, FFTW_BACKWARD, false})
                .transform(plane, out->data() + std::int64_t{i} * ny * nz);
          }
        });
        if (columns_ > 1) start(row, row->sent.data(), row->received.data(), row_comm_);
      }
      if (k >= 2 && columns_ > 1) {
        Flight& row = row_flights_[k % 2];
        wait(&row);
        const Plan& lines = Plan::of({y.size, nz, Plan::of_columns, FFTW_BACKWARD, true});
        each_plane(k - 2, [&](int number, int i) {
          Complex* plane = out->data() + std::int64_t{i} * y.size * nz;
          by_z_.unpack(row.received.data(), number, row.in, plane);
          lines.transform(plane, plane);
        });
      }
    }
  }

  Part x, y, z, y_after;  // this rank's part of each axis in the input, and of y in the output

 private:
  // Returns the number of blocks, which is equal on all ranks. The blocking form transposes
  // everything at once.
  int blocks() const { return variant_->name == "overlapped" ? settings_.blocks : 1; }
  Part block(int k) const { return part_of(x.size, blocks(), k); }
  // Calls body() for each plane of block k: with its number in the block, and with its number among
  // all planes of this rank.
  template <class Body>
  void each_plane(int k, const Body& body) const {
    for (int number = 0; number < block(k).size; ++number) body(number, block(k).first + number);
  }

  std::int64_t plane_after() const { return std::int64_t{y_after.size} * z.size; }
  // Returns where block k of each rank of the column lies in the array with all x.
  Ends by_x(int k) const {
    Ends made;
    for (int rank = 0; rank < rows_; ++rank) {
      const Part theirs = part_of(settings_.grid[0], rows_, rank);
      const Part part = part_of(theirs.size, blocks(), k);
      made.add(part.size * plane_after(), (theirs.first + part.first) * plane_after());
    }
    return made;
  }
  void along_x(int sign, Array* whole) const {
    Plan::of({settings_.grid[0], static_cast<int>(plane_after()), Plan::of_rows, sign, true})
        .transform(whole->data(), whole->data());
  }

  // Allocates memory for the largest block.
  void enlarge(Flight (*flights)[2]) const {
    const std::int64_t most = (x.size + blocks() - 1) / blocks();
    const std::int64_t plane = std::max(std::int64_t{y.size} * settings_.grid[2],
                                        std::int64_t{z.size} * settings_.grid[1]);
    for (Flight& one : *flights) one.sent.resize(at(most * plane)), one.received = one.sent;
  }
  static Flight* prepare(Flight* flight, Ends out, Ends in) {
    flight->out = std::move(out), flight->in = std::move(in);
    return flight;
  }
  void start(Flight* flight, const Complex* sent, Complex* received, MPI_Comm comm) const {
    const auto type = MPI_C_DOUBLE_COMPLEX;
    const Ends &out = flight->out, &in = flight->in;
    if (variant_->name == "overlapped") {
      MPI_Ialltoallv(sent, out.counts.data(), out.places.data(), type, received, in.counts.data(),
                     in.places.data(), type, comm, &flight->request);
      return;
    }
    const double begin = MPI_Wtime();
    MPI_Alltoallv(sent, out.counts.data(), out.places.data(), type, received, in.counts.data(),
                  in.places.data(), type, comm);
    variant_->communicating_s += MPI_Wtime() - begin;
  }
  static void wait(Flight* flight) { MPI_Wait(&flight->request, MPI_STATUS_IGNORE); }

  MPI_Comm communicator(int color, int key) const {
    MPI_Comm made;
    MPI_Comm_split(variant_->comm, color, key, &made);
    trials::use_engine(made, *variant_);
    return made;
  }

  const Settings& settings_;
  trials::Variant* variant_;
  int rows_ = 1, columns_ = 1, row_ = 0, column_ = 0;
  MPI_Comm row_comm_ = MPI_COMM_NULL, column_comm_ = MPI_COMM_NULL;
  Cut by_z_, by_y_, by_y_after_;
  Array plane_;
  Flight row_flights_[2], column_flights_[2];
};

// ---- Data whose transform is known --------------------------------------------------------------

// Returns the value of the test data at a point. It depends only on the point, so that every rank
// knows the whole grid.
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
    fftw_plan plan = fftw_plan_dft_3d(n_[0], n_[1], n_[2], Plan::raw(whole.data()),
                                      Plan::raw(whole.data()), FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    serial_ = std::move(whole);
  }
  std::int64_t points() const { return std::int64_t{n_[0]} * n_[1] * n_[2]; }

  // Returns this rank's input, shifted along all three axes.
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
  // Returns this rank's part of a plane wave, whose transform is a single point.
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
  // Calls body() for each point of this rank's spectrum, in the order of memory.
  template <class Body>
  void spectrum(const Transform& parts, const Body& body) const {
    std::size_t next = 0;
    for (int i = 0; i < n_[0]; ++i) {
      for (int j = 0; j < parts.y_after.size; ++j) {
        for (int k = 0; k < parts.z.size; ++k) {
          body(next++, i, parts.y_after.first + j, parts.z.first + k);
        }
      }
    }
  }
  // Returns the spectrum of a point at `shift`. Multiplying by it shifts the data.
  Array shift(const Transform& parts, const int (&shift)[3]) const {
    Array made;
    spectrum(parts, [&](std::size_t, int i, int j, int k) {
      const double turns =
          1.0 * i * shift[0] / n_[0] + 1.0 * j * shift[1] / n_[1] + 1.0 * k * shift[2] / n_[2];
      made.push_back(std::polar(1.0 / static_cast<double>(points()), -2 * M_PI * turns));
    });
    return made;
  }

  // Returns the error at a point of the spectrum, relative to the root of the number of points.
  double error_at(Complex found, int i, int j, int k) const {
    return std::abs(found - serial_[at(place(i, j, k))]) / std::sqrt(static_cast<double>(points()));
  }
  double error_of_forward(const Transform& parts, const Array& found) const {
    double error = 0;
    spectrum(parts, [&](std::size_t here, int i, int j, int k) {
      error = trials::greater(error, error_at(found[here], i, j, k));
    });
    return error;
  }
  double error_of_wave(const Transform& parts, const Array& found, const int (&number)[3]) const {
    double error = 0;
    const double peak = static_cast<double>(points());
    spectrum(parts, [&](std::size_t here, int i, int j, int k) {
      const bool there = place(i, j, k) == place(number[0], number[1], number[2]);
      error = trials::greater(error, std::abs(found[here] / peak - (there ? 1.0 : 0.0)));
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
  for (std::size_t i = 0; i < a.size(); ++i) most = trials::greater(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace fourier
