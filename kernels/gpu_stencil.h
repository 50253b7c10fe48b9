// The stencil's arithmetic, and the steps of its cooperative kernel. The device runs these
// functions, and so does an implementation on the host for tests.
#pragma once

#include "weft_gpu_device.h"

// Stencil: the rows of one rank and the neighbouring rows. out = mean of the four neighbours of
// each point of in.
struct Stencil {
  const double* in;
  double* out;
  const double* halo;  // the row above the first one, then the row below the last one
  double* edge;        // the new first and last rows, which the neighbouring ranks need
  int columns, rows;
};

WEFT_DEVICE double stencil_initial(int row, int column) {
  return row < 0 ? 0 : (row * 31 + column * 17) % 101;
}

// Sets this thread's share of the points to their initial values. first: number of the first row in
// the whole grid.
WEFT_DEVICE void stencil_fill_share(double* to, int first, int rows, int columns, long thread,
                                    long threads) {
  const long points = static_cast<long>(rows) * columns;
  for (long i = thread; i < points; i += threads) {
    const int row = static_cast<int>(i / columns), column = static_cast<int>(i % columns);
    to[i] = stencil_initial(first + row, column);
  }
}

// Computes one point. The first and the last column keep their values.
WEFT_DEVICE void stencil_point(const Stencil& s, int row, int column) {
  const auto at = [&s](int r, int c) { return static_cast<long>(r) * s.columns + c; };
  double value = s.in[at(row, column)];
  if (column > 0 && column < s.columns - 1) {
    const double above = row > 0 ? s.in[at(row - 1, column)] : s.halo[column];
    const double below = row < s.rows - 1 ? s.in[at(row + 1, column)] : s.halo[at(1, column)];
    value = 0.25 * (above + below + (s.in[at(row, column - 1)] + s.in[at(row, column + 1)]));
  }
  s.out[at(row, column)] = value;
  if (row == 0) s.edge[column] = value;
  if (row == s.rows - 1) s.edge[at(1, column)] = value;
}

// Computes this thread's share of the points in rows first, …, last - 1.
WEFT_DEVICE void stencil_share(const Stencil& s, int first, int last, long thread, long threads) {
  const int rows_ahead = static_cast<int>(threads / s.columns);
  const int columns_ahead = static_cast<int>(threads % s.columns);
  int row = first + static_cast<int>(thread / s.columns);
  int column = static_cast<int>(thread % s.columns);
  while (row < last) {  // counts up without a division for each point
    stencil_point(s, row, column);
    row += rows_ahead, column += columns_ahead;
    if (column >= s.columns) ++row, column -= s.columns;
  }
}

WEFT_DEVICE void stencil_edges(const Stencil& s, long thread, long threads) {
  stencil_share(s, 0, 1, thread, threads);
  stencil_share(s, s.rows - 1, s.rows, thread, threads);
}

// Carries out all steps in one kernel. sync() is a barrier of all threads of the grid.
template <class Sync>
WEFT_DEVICE void stencil_all(Stencil s, int steps, weft_gpu_flags flags, long thread, long threads,
                             const Sync& sync) {
  for (int step = 0; step < steps; ++step) {
    stencil_edges(s, thread, threads);
    sync();
    if (thread == 0) weft_device_start(flags);
    stencil_share(s, 1, s.rows - 1, thread, threads);
    if (thread == 0) weft_device_wait(flags);
    sync();
    double* const next = const_cast<double*>(s.in);
    s.in = s.out;
    s.out = next;
  }
}
