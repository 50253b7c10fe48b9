/* weft.h: the public C interface of Weft.
 *
 * No program needs it: `weft run -- ./app` works on unmodified programs. A program that wants to
 * use it links nothing; it declares the functions weak (as this header does) and calls them where
 * they are there, that is, where Weft has been loaded.
 */
#ifndef WEFT_H
#define WEFT_H

#ifdef __cplusplus
extern "C" {
#endif

#ifndef WEFT_API
#define WEFT_API __attribute__((weak, visibility("default")))
#endif

/* The version of the loaded library, "major.minor.patch". Never fails; needs no MPI_Init. */
WEFT_API const char* weft_version(void);

/* Lets collectives under way go on without waiting for any (engine `function`: the progress
 * function of LibNBC, Hoefler, Lumsdaine, Rehm, SC07). Call it now and then inside long
 * computation. Returns the number of collectives of Weft's still under way; 0 before MPI_Init.
 * Thread-safe where the MPI library grants MPI_THREAD_MULTIPLE. */
WEFT_API int weft_progress(void);

#ifdef __cplusplus
}
#endif

#endif
