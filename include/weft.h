/* weft.h: the public C interface of Weft.
 *
 * No program needs it: `weft run -- ./app` works on unmodified programs. A program that wants to
 * use it links nothing; it declares the functions weak (as this header does) and calls them where
 * they are there, that is, where Weft has been loaded.
 *
 * Info keys on a communicator need not even that: weft_engine=native leaves its collectives to the
 * MPI library; see the page on hints.
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

/* The rest is declared where <mpi.h> has been included before. */
#ifdef MPI_VERSION

/* Rows of a matrix that go to, or come from, one other rank. The same rank may be named several
 * times; what goes to it then travels as one message, in the order of the lists. */
typedef struct weft_rows {
  int rank;        /* in the communicator; this rank itself is allowed */
  int count;       /* of rows; 0 is allowed */
  const int* rows; /* their numbers, in units of the row's extent, in any order */
} weft_rows;

/* The exchange of sparse tensor codes (MTTKRP in SPLATT: Smith, Ravindran, Sidiropoulos, Karypis,
 * IPDPS 2015): in every iteration each rank sends some rows of `from` to, and receives rows into
 * `to` from, an irregular set of partners, the same ones each time. All is arranged here, once: one
 * message per partner, without a copy where its rows are consecutive, receives before sends, the
 * largest message first; or, where that was measured to be faster, one message from node to node.
 * Collective over `comm`, as MPI_Neighbor_alltoallw_init, but without a topology.
 *
 *   from, to     the two matrices; no row that is received may be sent in the same exchange
 *   sent         `sends` lists; `received`: `receives` lists. The rows that a rank sends to another
 *                must be as many as that one receives from it.
 *   row          datatype of one row; its extent is the distance between rows
 *   request      a persistent request: MPI_Start, MPI_Wait or MPI_Test (and their kin), at the end
 *                MPI_Request_free. The lists may be changed when this call has returned.
 *
 * Returns MPI_SUCCESS, or what the error handler of `comm` has been called with: MPI_ERR_RANK,
 * MPI_ERR_COUNT or MPI_ERR_ARG where a list is wrong, MPI_ERR_COMM where Weft has no communicator
 * for it and the MPI library has none to give, MPI_ERR_OTHER where persistent collectives have
 * taken all of Weft's tags of `comm` (2,048 at least): duplicate it. Needs an initialised MPI;
 * works under every engine (under `native`, calls of the application into MPI make it progress). */
WEFT_API int weft_exchange_rows_init(const void* from, int sends, const weft_rows sent[], void* to,
                                     int receives, const weft_rows received[], MPI_Datatype row,
                                     MPI_Comm comm, MPI_Request* request);

#endif

#ifdef __cplusplus
}
#endif

#endif
