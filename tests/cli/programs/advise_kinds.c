/* For each kind of advice that `weft advise` may give on a call: functions in which it is right,
 * and functions in which it would be wrong. Usage: advise_kinds MILLISECONDS ROUNDS. It prints a
 * checksum. The names of functions begin with what they are. room, none: between the call and
 * what must come after it there is computation, or nothing. plan, noplan: all calls have the
 * same arguments, or not. later, notlater: a wait for a call that was started could come later,
 * or not. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advise_busy.h"

enum { COUNT = 8192, MOST = 64 };
#define CASE __attribute__((noinline)) static void
#define SUM(from, to, count, comm) MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, comm)

static double total, ms;
static double* arrays[MOST];
static int taken, file, rank, ranks;

static double* doubles(int count) {
  double* made = aligned_alloc(4096, count * COUNT * sizeof *made);
  memset(made, 0, count * COUNT * sizeof *made);
  return made;
}
/* Returns an array that only one case uses. The cases take theirs in the order of their calls. */
static double* own(void) {
  if (!arrays[taken]) arrays[taken] = doubles(1);
  return arrays[taken++];
}
static void fill(double* values, int round) {
  for (int i = 0; i < COUNT; ++i) values[i] = (i + round) % 17;
}
static void use(const double* values) {
  for (int i = 0; i < COUNT; ++i) total += values[i] / ranks;
}
__attribute__((noinline)) static void wrapped(const double* from, double* to) {
  SUM(from, to, COUNT, MPI_COMM_WORLD);
  total += 1;
}

CASE room_after(int round) {
  double *in = own(), *out = own();
  fill(in, round);
  SUM(in, out, COUNT, MPI_COMM_WORLD);
  busy(ms);
  use(out);
}
CASE room_in_a_wrapper(int round) {
  double *in = own(), *out = own();
  fill(in, round);
  wrapped(in, out); /* room */
  busy(ms);
  use(out);
}
CASE none_used_at_once(int round) {
  double *in = own(), *out = own();
  fill(in, round);
  SUM(in, out, COUNT, MPI_COMM_WORLD);
  use(out);
  busy(ms);
}
CASE none_in_a_wrapper(int round) {
  double *in = own(), *out = own();
  fill(in, round);
  wrapped(in, out); /* none */
  use(out);
  busy(ms);
}
CASE none_sent_again(int round) {
  double *in = own(), *out = own();
  fill(in, round);
  SUM(in, out, COUNT, MPI_COMM_WORLD);
  fill(in, round + 1);
  busy(ms);
  use(out);
}
CASE none_given_to_mpi(int round) {
  double *in = own(), *out = own(), *more = own();
  fill(in, round);
  SUM(in, out, COUNT, MPI_COMM_WORLD);
  MPI_Reduce(out, more, COUNT, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  busy(ms);
  use(out);
}
CASE none_written_to_a_file(int round) {
  double *in = own(), *out = own();
  fill(in, round);
  SUM(in, out, COUNT, MPI_COMM_WORLD);
  total += pwrite(file, out, COUNT, 0);
  busy(ms);
  use(out);
}
CASE none_copied(int round) {
  double *in = own(), *out = own(), *copy = own();
  fill(in, round);
  SUM(in, out, COUNT, MPI_COMM_WORLD);
  memcpy(copy, out, COUNT * sizeof *copy);
  busy(ms);
  use(copy);
}
CASE none_on_the_stack(int round) {
  double *in = own(), out[64];
  fill(in, round);
  SUM(in, out, 64, MPI_COMM_WORLD);
  busy(ms);
  total += out[round % 64];
}

CASE plan_the_same(int round) {
  double *in = own(), *out = own();
  fill(in, round);
  SUM(in, out, COUNT, MPI_COMM_WORLD);
  use(out);
}
CASE noplan_buffers_in_turn(int round) {
  double *in = own(), *one = own(), *other = own();
  SUM(in, round % 2 ? one : other, COUNT, MPI_COMM_WORLD);
}
CASE noplan_counts(int round) {
  double *in = own(), *out = own();
  SUM(in, out, COUNT - round % 3, MPI_COMM_WORLD);
}
CASE noplan_communicators(void) {
  double *in = own(), *out = own();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  SUM(in, out, COUNT, comm);
  MPI_Comm_free(&comm);
}
CASE noplan_roots(int round) {
  double* data = own();
  MPI_Bcast(data, COUNT, MPI_DOUBLE, round % ranks, MPI_COMM_WORLD);
}
CASE noplan_operators(int round) {
  double *in = own(), *out = own();
  MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, round % 2 ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
}
CASE noplan_on_the_stack(int round) {
  double in[64] = {round}, out[64];
  SUM(in, out, 64, MPI_COMM_WORLD);
  total += out[0];
}

CASE later_wait(int round) {
  double *in = own(), *out = own();
  MPI_Request request;
  fill(in, round);
  MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  busy(ms);
  use(out);
}
CASE notlater_used_at_once(int round) {
  double *in = own(), *out = own();
  MPI_Request request;
  fill(in, round);
  MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use(out);
  busy(ms);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  ms = atof(argv[1]);
  char name[] = "/tmp/weft-kinds-XXXXXX";
  file = mkstemp(name);
  unlink(name);
  const int rounds = atoi(argv[2]);
  for (int i = 0; i < rounds; ++i) {
    taken = 0;
    room_after(i);
    room_in_a_wrapper(i);
    none_used_at_once(i);
    none_in_a_wrapper(i);
    none_sent_again(i);
    none_given_to_mpi(i);
    none_written_to_a_file(i);
    none_copied(i);
    none_on_the_stack(i);
    plan_the_same(i);
    noplan_buffers_in_turn(i);
    noplan_counts(i);
    noplan_communicators();
    noplan_roots(i);
    noplan_operators(i);
    noplan_on_the_stack(i);
    later_wait(i);
    notlater_used_at_once(i);
  }
  if (rank == 0) printf("checksum %.6f\n", total);
  MPI_Finalize();
  return 0;
}
