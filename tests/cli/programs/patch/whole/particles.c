/* Particles in cells of a grid of ranks: a derived type in a communicator of a row, counts that
 * change afterwards, and sums that lie beside each other in a structure.
 * EXPECT exchange: changed
 * EXPECT sums: left: may write
 * EXPECT mass: changed
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { n = 5000, steps = 15 };
typedef struct {
  double place[3];
  int cell;
} Particle;
typedef struct {
  double mass, momentum, energy;
} Sums;

static double work(int seed) {
  double x = seed;
  for (int i = 0; i < 4 * n; ++i) x = 0.5 * x + i % 3;
  return x;
}

static MPI_Datatype particle_type(void) {
  MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT}, packed, whole;
  int lengths[] = {3, 1};
  MPI_Aint places[] = {offsetof(Particle, place), offsetof(Particle, cell)};
  MPI_Type_create_struct(2, lengths, places, types, &packed);
  MPI_Type_create_resized(packed, 0, sizeof(Particle), &whole);
  MPI_Type_free(&packed);
  MPI_Type_commit(&whole);
  return whole;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm row;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
  MPI_Comm_size(row, &ranks);
  Particle* own = calloc(n, sizeof *own);
  Particle* all = calloc((size_t)n * ranks, sizeof *all);
  int *counts = calloc(ranks, sizeof *counts), *starts = calloc(ranks, sizeof *starts);
  Sums* mine = calloc(4096, sizeof *mine);
  Sums* total = calloc(4096, sizeof *total);
  double sum = 0;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < n; ++i) own[i] = (Particle){{i, rank, step}, i % 9};
    for (int r = 0; r < ranks; ++r) {
      counts[r] = n - 1;
      starts[r] = r * n;
    }
    MPI_Datatype type = particle_type();
    MPI_Allgatherv(own, n - 1, type, all, counts, starts, /* CALL exchange */
                   type, row);
    sum += work(step);
    MPI_Type_free(&type);
    for (int i = 0; i < n; ++i) sum += all[i].place[2] + all[i].cell; /* USE exchange */

    mine->mass = 1 + step;
    mine->momentum = sum;
    MPI_Allreduce(&mine->mass, &total->mass, 3, MPI_DOUBLE, MPI_SUM, row); /* CALL sums */
    mine->energy = work(step);
    sum += work(2) + total->momentum; /* USE sums */

    MPI_Allreduce(&mine->mass, &total->mass, 1, MPI_DOUBLE, MPI_MAX, row); /* CALL mass */
    mine->energy = work(step);
    sum += mine->energy;
    sum += total->mass; /* USE mass */
  }
  if (rank == 0) printf("%.10g\n", sum);
  MPI_Comm_free(&row);
  free(own);
  free(all);
  free(counts);
  free(starts);
  free(mine);
  free(total);
  return MPI_Finalize();
}
