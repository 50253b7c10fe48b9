/* Functions with a collective each. "CALL name" marks its line, "USE name" the first use measured.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef N
#define N 64
#define TIMES 1
#endif
#define SUM_UP(from, to) MPI_Allreduce(from, to, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)
#define CHECK(call)              \
  do {                           \
    if ((call) != MPI_SUCCESS) { \
      return -1;                 \
    }                            \
  } while (0)

static double far_part[N], far_total[N];
typedef struct {
  double *part, *total;
  int n;
  MPI_Comm comm;
} Field;

static double busy(int n) {
  double x = 1;
  for (int i = 0; i < n; ++i) {
    x = 0.5 * x + 1 / (x + i);
  }
  return x;
}

static double peek(void) {
  return far_total[1];
}

static double* filled(int seed) {
  double* x = malloc(N * sizeof *x);
  for (int i = 0; i < N; ++i) {
    x[i] = seed + i;
  }
  return x;
}

static double plain(void) {
  double *part = filled(1), *total = filled(2);
  MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL plain */
  double sum = busy(100);
  for (int i = 0; i < N; ++i) {
    sum += part[i] * 2;
  }
  sum += total[3]; /* USE plain */
  free(part);
  free(total);
  return sum;
}

static double looped(void) {
  double *part = filled(1), *total = filled(2), sum = 0;
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < N; ++i) {
      part[i] += step;
    }
    MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, /* CALL looped */
                  MPI_COMM_WORLD);
    sum += busy(50);
    for (int i = 0; i < N; ++i) {
      sum += total[i]; /* USE looped */
    }
  }
  free(part);
  free(total);
  return sum;
}

static double next_iteration(void) {
  double *part = filled(1), *total = filled(2), sum = 0;
  for (int step = 0; step < 3; ++step) {
    sum += total[step]; /* USE next_iteration */
    part[0] = step;
    MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL next_iteration */
    sum += busy(20);
  }
  free(part);
  free(total);
  return sum;
}

static double lagged(void) {
  double *part = filled(1), *total = filled(2), sum = 0;
  for (int step = 0; step < 5; ++step) {
    if (step == 3) continue;
    const double x = busy(20);
    if (step > 0) {
      sum += total[step]; /* USE lagged */
    }
    part[0] = x;
    MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL lagged */
    sum += step;
    if (sum < 0) break;
  }
  free(part);
  free(total);
  return sum;
}

static double lagged_away(int give_up) {
  double *part = filled(1), *total = filled(2), sum = 0;
  for (int step = 0; step < 3; ++step) {
    sum += total[step]; /* USE lagged_away */
    if (give_up) return 0;
    part[0] = step;
    MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL lagged_away */
    sum += busy(20);
  }
  free(part);
  free(total);
  return sum;
}

static double at_once(void) {
  double *part = filled(1), *total = filled(2);
  MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL at_once */
  double sum = total[0];                                              /* USE at_once */
  free(part);
  free(total);
  return sum + busy(10);
}

static double written(void) {
  double *part = filled(1), *total = filled(2), sum = 0;
  MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL written */
  for (int i = 0; i < N; ++i) {
    part[i] = busy(3);
  }
  sum += total[0] + part[1]; /* USE written */
  free(part);
  free(total);
  return sum;
}

static double alias(void) {
  double *part = filled(1), *total = filled(2);
  double* half = total + N / 2;
  MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL alias */
  double sum = busy(10);
  sum += half[1];
  sum += total[0]; /* USE alias */
  free(part);
  free(total);
  return sum;
}

static double early_return(int give_up) {
  double *part = filled(1), *total = filled(2);
  MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL early_return */
  if (give_up) return -1;
  double sum = busy(10) + total[0]; /* USE early_return */
  free(part);
  free(total);
  return sum;
}

static double late_return(int give_up) {
  double *part = filled(1), *total = filled(2);
  MPI_Bcast(part, N, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* CALL late_return */
  double sum = busy(10);
  if (give_up) goto out;
  sum += part[0]; /* USE late_return */
out:
  free(part);
  free(total);
  return sum;
}

static double by_macro(void) {
  double *part = filled(1), *total = filled(2);
  SUM_UP(part, total);              /* CALL by_macro */
  double sum = busy(10) + total[0]; /* USE by_macro */
  free(part);
  free(total);
  return sum;
}

static double checked(void) {
  double part[N] = {1}, total[N];
  CHECK(MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)); /* CALL checked */
  return busy(10) + total[0];                                                /* USE checked */
}

static double error_code(void) {
  double *part = filled(1), *total = filled(2);
  int err = 0;
  err = MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL error_code */
  double sum = busy(10);
  if (err != MPI_SUCCESS) sum = 0;
  sum += total[0]; /* USE error_code */
  free(part);
  free(total);
  return sum;
}

static double in_condition(int yes) {
  double *part = filled(1), *total = filled(2);
  if (yes)
    MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL in_condition */
  double sum = busy(10) + total[0];                                     /* USE in_condition */
  free(part);
  free(total);
  return sum;
}

static double derived_type(void) {
  double* part = filled(1);
  MPI_Datatype pairs;
  MPI_Type_contiguous(2, MPI_DOUBLE, &pairs);
  MPI_Type_commit(&pairs);
  MPI_Bcast(part, N / 2, pairs, 0, MPI_COMM_WORLD); /* CALL derived_type */
  double sum = busy(10);
  MPI_Type_free(&pairs);
  sum += busy(12);
  sum += part[5]; /* USE derived_type */
  free(part);
  return sum;
}

static double part_of_world(void) {
  double *part = filled(1), *all = malloc(8 * N * sizeof *all), sum = 0;
  MPI_Comm some;
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &some);
  MPI_Comm_size(some, &ranks);
  if (ranks <= 8) {
    MPI_Allgather(part, N, MPI_DOUBLE, all, N, MPI_DOUBLE, some); /* CALL part_of_world */
    sum += busy(10);
    for (int i = 0; i < N * ranks; ++i) {
      sum += all[i]; /* USE part_of_world */
    }
  }
  MPI_Comm_free(&some);
  free(part);
  free(all);
  return sum;
}

static double counts_change(void) {
  double *part = filled(1), *all = filled(2);
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int *counts = calloc(ranks, sizeof *counts), *places = calloc(ranks, sizeof *places);
  MPI_Alltoallv(part, counts, places, MPI_DOUBLE, all, counts, places, /* CALL counts_change */
                MPI_DOUBLE, MPI_COMM_WORLD);
  double sum = busy(10);
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1;
  }
  sum += all[0] + counts[0]; /* USE counts_change */
  free(part);
  free(all);
  free(counts);
  free(places);
  return sum;
}

static double global_seen(void) {
  MPI_Allreduce(far_part, far_total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL global_seen */
  double sum = busy(10) + peek();
  return sum + far_total[0]; /* USE global_seen */
}

static double global_unseen(void) {
  MPI_Allreduce(far_part, far_total, N, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD); /* CALL global_unseen */
  double sum = busy(10);
  return sum + far_total[0]; /* USE global_unseen */
}

static double members(Field* field) {
  MPI_Allreduce(field->part, field->total, field->n, /* CALL members */
                MPI_DOUBLE, MPI_SUM, field->comm);
  double sum = 0;
  for (int i = 0; i < field->n; ++i) {
    sum += 0.5 * i;
  }
  return sum + field->total[0]; /* USE members */
}

static double total_of(const double* total) {
  return total[0] + total[1]; /* USE in_callee total_of */
}

static double in_callee(void) {
  double *part = filled(1), *total = filled(2);
  MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL in_callee */
  double sum = busy(10);
  sum += total_of(total);
  free(part);
  free(total);
  return sum;
}

static double threads(void) {
  double *part = filled(1), *total = filled(2), sum = busy(3);
  MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL threads */
  sum += busy(10);
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < N; ++i) {
    sum += total[i]; /* USE threads */
  }
  free(part);
  free(total);
  return sum;
}

static double sooner(void) {
  double *part = filled(1), *total = filled(2), sum = 0;
  for (int i = 0; i < N; ++i) {
    part[i] = i; /* WRITE sooner */
  }
  sum += busy(10);
  MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL sooner */
  sum += total[0];                                                    /* USE sooner */
  free(part);
  free(total);
  return sum;
}

static double planned(void) {
  double *part = filled(1), *total = filled(2), sum = 0;
  int rank;
  MPI_Comm some;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &some);
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < N; ++i) part[i] += step;
    if (step != 1) {
      MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, some); /* CALL planned */
      sum += busy(20);
      sum += total[0]; /* USE planned */
    }
  }
  MPI_Comm_free(&some);
  free(part);
  free(total);
  return sum;
}

static double not_planned(void) {
  double *part = filled(1), *total = filled(2), *half = filled(3), sum = 0;
  for (int step = 0; step < 3; ++step) {
    MPI_Allreduce(part, total, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL not_planned */
    sum += busy(20);
    sum += total[0]; /* USE not_planned */
    double* old = part;
    part = half;
    half = old;
  }
  free(part);
  free(total);
  free(half);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int i = 0; i < N; ++i) {
    far_part[i] = i;
  }
  Field field = {filled(1), filled(2), N, MPI_COMM_WORLD};
  double answers[25];
  for (int time = 0; time < TIMES; ++time) {
    const double now[] = {
        plain(),       looped(),        next_iteration(), at_once(),       written(),
        alias(),       early_return(0), late_return(0),   by_macro(),      checked(),
        error_code(),  in_condition(1), derived_type(),   part_of_world(), counts_change(),
        global_seen(), global_unseen(), members(&field),  in_callee(),     threads(),
        sooner(),      planned(),       not_planned(),    lagged(),        lagged_away(0)};
    memcpy(answers, now, sizeof now);
  }
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (unsigned i = 0; rank == 0 && i < sizeof answers / sizeof *answers; ++i) {
    printf("%u %.12g\n", i, answers[i]);
  }
  free(field.part);
  free(field.total);
  return MPI_Finalize();
}
