// Common part of programs that compare the results of collectives with separately computed values.
#include <stdio.h>

static int rank, ranks, wrong;

// Reports a wrong value. number: the number of the round, communicator or call.
static void expect(double found, double expected, const char* what, int number) {
  if (found == expected) return;
  if (wrong++ < 5) printf("rank %d, %s %d: %g, not %g\n", rank, what, number, found, expected);
}
