// What programs have in common that compute apart what a collective has to give.
#include <stdio.h>

static int rank, ranks, wrong;

// number: of the round, communicator or call.
static void expect(double found, double expected, const char* what, int number) {
  if (found == expected) return;
  if (wrong++ < 5) printf("rank %d, %s %d: %g, not %g\n", rank, what, number, found, expected);
}
