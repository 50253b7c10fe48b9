/* weft_compute.h: your own computation behind the collectives of `weft bench`.
 *
 * Compile a shared library with these three functions and no MPI calls, and hand it over:
 *   cc -O2 -shared -fPIC mywork.c -o mywork.so
 *   weft bench --compute-library ./mywork.so
 * Each rank loads it once. `weft bench` finds out how many iterations an amount of computation is;
 * one iteration should take between a microsecond and a tenth of the shortest collective measured.
 */
#ifndef WEFT_COMPUTE_H
#define WEFT_COMPUTE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Called once, after MPI_Init, before the first run. Returns 0, or anything else to give up. */
int weft_compute_init(int rank, int ranks);

/* The computation: does `iterations` equal portions of work. Time per portion must not change from
 * call to call. Called any number of times. */
void weft_compute_run(long iterations);

/* Called after each run, outside of the time measured. Returns 0 if its result is right. */
int weft_compute_check(void);

#ifdef __cplusplus
}
#endif

#endif
