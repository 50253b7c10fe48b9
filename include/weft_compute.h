/* weft_compute.h: the interface by which `weft bench` runs your own computation beside collectives.
 *
 * Compile a shared library with these three functions, which make no MPI calls, and name it:
 *   cc -O2 -shared -fPIC mywork.c -o mywork.so
 *   weft bench --compute-library ./mywork.so
 * Each rank loads it once. `weft bench` measures how long an iteration takes. One iteration should
 * take at least a microsecond, and at most a tenth of the shortest collective that is measured.
 */
#ifndef WEFT_COMPUTE_H
#define WEFT_COMPUTE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Is called once on each rank, after MPI_Init and before the first run. It must return 0; after any
 * other value the program ends. */
int weft_compute_init(int rank, int ranks);

/* Carries out `iterations` iterations of the computation, all of which must take equally long in
 * every call. It is called any number of times. */
void weft_compute_run(long iterations);

/* Is called after each run, outside the measured time. It must return 0 if the run's result is
 * right, otherwise any other value. */
int weft_compute_check(void);

#ifdef __cplusplus
}
#endif

#endif
