// The arithmetic of gpu_cg: pipelined conjugate gradients (Ghysels, Vanroose, Parallel Computing
// 40, 2014) without a preconditioner, for the 7-point Laplacian on a grid of n x n x n points. Each
// rank has some planes. The device runs these functions, and so does an implementation on the host
// for tests. A barrier is a function that all threads of a block call.
#pragma once

#include "weft_gpu_device.h"

// CgSums: the two inner products of an iteration, which are summed over all ranks.
struct CgSums {
  double rr;  // (r, r)
  double wr;  // (w, r)
};

// CgSteps: the step lengths of the last iteration, on the device.
struct CgSteps {
  double rr;     // (r, r); 0 before the first iteration
  double alpha;  // length of the step
};

struct Cg {
  double *x, *r, *w, *p, *s, *z, *q;  // vectors of planes * n * n numbers
  double* halo;                       // the plane below the first one, then the one above the last
  double* edge;                       // the first and the last plane of w, for the neighbours
  CgSums* partial;                    // a thread's part of the inner products, for kCgParts threads
  CgSums* sums;                       // this rank's part, then the sum over all ranks
  CgSteps* steps;                     // two: even and odd iterations read one and write the other
  int n, planes;
  int first;  // number of the first plane in the whole grid
  int odd;    // whether the iteration is odd
};

constexpr long kCgParts = 64 * 256;  // threads of the update
constexpr int kCgSumThreads = 256;   // threads of the one block that adds the parts

WEFT_DEVICE long cg_plane(const Cg& c) {
  return static_cast<long>(c.n) * c.n;
}

// Returns the solution at a point, which the right-hand side is made of; 0 outside of the grid.
WEFT_DEVICE double cg_solution(const Cg& c, int x, int y, int z) {
  if (x < 0 || y < 0 || z < 0 || x >= c.n || y >= c.n || z >= c.n) return 0;
  return (x * 7 + y * 3 + z * 5) % 11 - 5;
}

// Begins at x = 0: r = b, and the other vectors are 0. w gets b, too, whose product replaces it.
WEFT_DEVICE void cg_begin_share(const Cg& c, long thread, long threads) {
  const long plane = cg_plane(c);
  for (long i = thread; i < plane * c.planes; i += threads) {
    const int x = static_cast<int>(i % c.n), y = static_cast<int>(i / c.n % c.n);
    const int z = static_cast<int>(i / plane) + c.first;
    const double beside = cg_solution(c, x - 1, y, z) + cg_solution(c, x + 1, y, z) +
                          cg_solution(c, x, y - 1, z) + cg_solution(c, x, y + 1, z) +
                          cg_solution(c, x, y, z - 1) + cg_solution(c, x, y, z + 1);
    const double b = 6 * cg_solution(c, x, y, z) - beside;
    c.x[i] = c.p[i] = c.s[i] = c.z[i] = c.q[i] = 0;
    c.r[i] = c.w[i] = b;
    if (i < plane) c.edge[i] = b;
    if (i >= plane * (c.planes - 1)) c.edge[i - plane * (c.planes - 2)] = b;
  }
  if (thread == 0) c.steps[0] = c.steps[1] = {0, 0};
}

// Computes q = A w at one point.
WEFT_DEVICE void cg_product_point(const Cg& c, long i) {
  const long plane = cg_plane(c), last = plane * (c.planes - 1);
  const int x = static_cast<int>(i % c.n), y = static_cast<int>(i / c.n % c.n);
  const double below = i >= plane ? c.w[i - plane] : c.halo[i];
  const double above = i < last ? c.w[i + plane] : c.halo[i - last + plane];
  double sum = below + above;
  if (x > 0) sum += c.w[i - 1];
  if (x < c.n - 1) sum += c.w[i + 1];
  if (y > 0) sum += c.w[i - c.n];
  if (y < c.n - 1) sum += c.w[i + c.n];
  c.q[i] = 6 * c.w[i] - sum;
}

// Computes q = A w on the planes that need no halo, or on the other two.
WEFT_DEVICE void cg_product_share(const Cg& c, bool inside, long thread, long threads) {
  const long plane = cg_plane(c), last = plane * (c.planes - 1);
  if (inside) {
    for (long i = plane + thread; i < last; i += threads) cg_product_point(c, i);
    return;
  }
  for (long i = thread; i < plane; i += threads) {
    cg_product_point(c, i);
    if (last > 0) cg_product_point(c, last + i);
  }
}

// Keeps a thread's part of the inner products of r and w.
WEFT_DEVICE void cg_keep(const Cg& c, CgSums mine, long thread) {
  c.partial[thread] = mine;
}

// Replaces w by the first product q, copies its edges, and begins the inner products.
WEFT_DEVICE void cg_first_share(const Cg& c, long thread, long threads) {
  const long plane = cg_plane(c);
  CgSums mine = {0, 0};
  for (long i = thread; i < plane * c.planes; i += threads) {
    const double w = c.q[i];
    c.w[i] = w;
    if (i < plane) c.edge[i] = w;
    if (i >= plane * (c.planes - 1)) c.edge[i - plane * (c.planes - 2)] = w;
    mine.rr += c.r[i] * c.r[i], mine.wr += w * c.r[i];
  }
  cg_keep(c, mine, thread);
}

// Adds all threads' parts of the inner products.
template <class Barrier>
WEFT_DEVICE void cg_sum(const Cg& c, int thread, int threads, const Barrier& barrier) {
  CgSums mine = {0, 0};
  for (long i = thread; i < kCgParts; i += threads) {
    mine.rr += c.partial[i].rr, mine.wr += c.partial[i].wr;
  }
  cg_keep(c, mine, thread);
  barrier();
  if (thread != 0) return;
  CgSums all = {0, 0};
  for (int i = 0; i < threads; ++i) all.rr += c.partial[i].rr, all.wr += c.partial[i].wr;
  *c.sums = all;
}

// Takes the iteration's step, with the sums over all ranks and q = A w, and begins the inner
// products of the next iteration.
WEFT_DEVICE void cg_update_share(const Cg& c, long thread, long threads) {
  const CgSums sums = *c.sums;
  const CgSteps before = c.steps[c.odd];
  const double beta = before.rr > 0 ? sums.rr / before.rr : 0;
  const double curvature = sums.wr - (beta > 0 ? beta * sums.rr / before.alpha : 0);
  const double alpha = curvature != 0 ? sums.rr / curvature : 0;
  const long plane = cg_plane(c);
  CgSums mine = {0, 0};
  for (long i = thread; i < plane * c.planes; i += threads) {
    const double z = c.q[i] + beta * c.z[i], s = c.w[i] + beta * c.s[i];
    const double p = c.r[i] + beta * c.p[i];
    const double r = c.r[i] - alpha * s, w = c.w[i] - alpha * z;
    c.z[i] = z, c.s[i] = s, c.p[i] = p, c.r[i] = r, c.w[i] = w;
    c.x[i] += alpha * p;
    if (i < plane) c.edge[i] = w;
    if (i >= plane * (c.planes - 1)) c.edge[i - plane * (c.planes - 2)] = w;
    mine.rr += r * r, mine.wr += w * r;
  }
  cg_keep(c, mine, thread);
  if (thread == 0) c.steps[1 - c.odd] = {sums.rr, alpha};
}
