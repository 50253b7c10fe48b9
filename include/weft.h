/* weft.h: the public C interface of Weft.
 *
 * No program needs this interface: `weft run -- ./app` works on unmodified programs. A program that
 * uses it is not linked to Weft. This header declares the functions as weak symbols, so their
 * addresses are null unless Weft was loaded, and the program must test that before it calls one.
 *
 * Info keys on a communicator work without this header: weft_engine=native leaves the
 * communicator's collectives to the MPI library (see the documentation on hints).
 */
#ifndef WEFT_H
#define WEFT_H

#ifdef __cplusplus
extern "C" {
#endif

#ifndef WEFT_API
#define WEFT_API __attribute__((weak, visibility("default")))
#endif

/* Returns the version of the loaded library, "major.minor.patch". Never fails. May be called before
 * MPI_Init. */
WEFT_API const char* weft_version(void);

/* Progresses this process's collectives without waiting for any of them. Call it now and then in a
 * long computation if they have the engine `function`, which has no thread (as the progress
 * function of LibNBC: Hoefler, Lumsdaine, Rehm, SC07). Returns how many collectives Weft still has
 * in progress; 0 before MPI_Init. Thread-safe if the MPI library provides MPI_THREAD_MULTIPLE. */
WEFT_API int weft_progress(void);

/* The following functions are declared only if <mpi.h> was included before this header. */
#ifdef MPI_VERSION

/* weft_rows: some rows of a matrix that are sent to one rank, or received from it. Several lists
 * may name the same rank; their rows then form one message, in the order of the lists. */
typedef struct weft_rows {
  int rank;        /* the other rank in the communicator; may be this rank itself */
  int count;       /* number of rows; may be 0 */
  const int* rows; /* numbers of the rows, in any order; row 0 is the first of the matrix */
} weft_rows;

/* Initialises a persistent exchange of matrix rows, as sparse tensor codes need it (MTTKRP in
 * SPLATT: Smith, Ravindran, Sidiropoulos, Karypis, IPDPS 2015): in every iteration each rank sends
 * some rows of `from` to an irregular set of ranks, and receives rows into `to` from others; the
 * ranks and rows are the same each time. Each rank sends one message to each rank that gets rows,
 * without a copy if these are consecutive. Receives are posted before sends, and the largest
 * message is sent first. If it was measured to be faster, one message carries all rows from one
 * node to another. All ranks of `comm` must make the call, as for MPI_Neighbor_alltoallw_init; a
 * topology is not needed.
 *
 *   from, to     the two matrices; no row that is received may be sent in the same exchange
 *   sent         `sends` lists of rows to send
 *   received     `receives` lists of rows to receive; from each rank as many rows as it sends
 *   row          datatype of one row; its extent is the distance from one row to the next
 *   request      gets a persistent request, for MPI_Start, MPI_Wait, MPI_Test and similar calls,
 *                and finally MPI_Request_free
 *
 * The lists may be changed as soon as the call has returned. MPI must be initialised. Every engine
 * carries the exchange out; under `native` it progresses only in MPI calls of the application.
 *
 * Returns MPI_SUCCESS or an error, with which the error handler of `comm` was called: MPI_ERR_RANK,
 * MPI_ERR_COUNT or MPI_ERR_ARG if a list is wrong; MPI_ERR_COMM if the MPI library has no further
 * communicator for Weft; MPI_ERR_OTHER if persistent collectives on `comm` use all of its tags (at
 * least 2,048), in which case a duplicate of `comm` has new ones. */
WEFT_API int weft_exchange_rows_init(const void* from, int sends, const weft_rows sent[], void* to,
                                     int receives, const weft_rows received[], MPI_Datatype row,
                                     MPI_Comm comm, MPI_Request* request);

#endif

#ifdef __cplusplus
}
#endif

#endif
