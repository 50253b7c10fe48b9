#include "two_files.field.h"

void refresh(int step);

static double* attached;
static double held[length];

double work(int seed) {
  double x = seed;
  for (int i = 0; i < length; ++i) x = 0.5 * x + i % 3;
  return x;
}

double sum_of(const double* field) {
  double sum = 0;
  for (int i = 0; i < length; ++i) sum += field[i]; /* USE given sum_of */
  return sum;
}

void attach(double* field) {
  attached = field;
}

void refresh(int step) {
  for (int i = 0; i < length; ++i) attached[i] += step;
}

double* current(void) {
  return held;
}
