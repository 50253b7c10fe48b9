/* Computation that lasts for a known time, by the program's own clock in milliseconds. */
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}
static volatile double sink;
static void busy(double ms) {
  const double end = now() + ms;
  double x = 1;
  while (now() < end) x = x * 1.0000001 + 1e-9;
  sink = x;
}
