/* weft_gpu.h: collectives that are started and finished in a CUDA stream.
 *
 * Each non-blocking collective of MPI has a form that is enqueued: it starts when what precedes it
 * in the stream has ended, and weft_wait_enqueue lets what follows in a stream begin when it has
 * ended. The processor waits for nothing. All may be captured into CUDA graphs, which then carry
 * the collective out at each launch. Any MPI library serves that grants MPI_THREAD_MULTIPLE.
 *
 * Buffers may be memory of the device or of the processor. Their data types have no holes, where
 * they are memory of the device.
 *
 * A program links libweft-gpu-FAMILY.so, FAMILY being mpich (Intel MPI, too), openmpi or abi;
 * neither CUDA's headers nor its libraries are needed. Under `weft run` the collectives are Weft's.
 *
 * All functions return MPI_SUCCESS or an MPI error code, and weft_gpu_error() says why.
 */
#ifndef WEFT_GPU_H
#define WEFT_GPU_H

#include <stddef.h>

#include "weft_gpu_device.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef WEFT_GPU_API
#define WEFT_GPU_API __attribute__((visibility("default")))
#endif

/* cudaStream_t and CUstream. The default stream of a thread is cudaStreamPerThread: 0 is the one
 * that all threads share. */
typedef struct CUstream_st* weft_gpu_stream;

/* A collective that has been enqueued, or prepared. */
typedef struct weft_gpu_request_s* weft_gpu_request;

/* Why the last call of this thread's failed, in a sentence; "" where none has. */
WEFT_GPU_API const char* weft_gpu_error(void);

/* Starts a persistent collective when what precedes in the stream has ended. It must have been
 * waited for since it was started before. */
WEFT_GPU_API int weft_start_enqueue(weft_gpu_request request, weft_gpu_stream stream);

/* What follows in the stream begins when the collective has ended and its data are in place. It is
 * enqueued behind its start: in the same stream, or in one that waits for an event after the start.
 * Returns an error where it is known already that the collective has failed. Where that becomes
 * known later, what follows begins all the same, and the next call says so. */
WEFT_GPU_API int weft_wait_enqueue(weft_gpu_request request, weft_gpu_stream stream);

/* Starts a persistent collective and waits for it in the stream: both calls at once. A short
 * allreduce, allgather or broadcast of ranks whose devices share their memory is then one kernel
 * (weft_gpu_path_of). */
WEFT_GPU_API int weft_run_enqueue(weft_gpu_request request, weft_gpu_stream stream);

/* How the collective travels, and why not in one kernel, in a sentence; as long as the request. */
WEFT_GPU_API const char* weft_gpu_path_of(weft_gpu_request request);

/* Whether the collective has failed so far: MPI_SUCCESS or the error. It waits for nothing; when
 * the stream has passed the wait, the answer is final for all starts until then. */
WEFT_GPU_API int weft_gpu_request_status(weft_gpu_request request);

/* Gives the request back, at any time after its last call: it ends when all that has been enqueued
 * with it has ended, and when no graph that has captured it is left. Sets it to NULL. Returns an
 * error where the collective has failed, and has given the request back all the same. A failure
 * that no call has told of is said in MPI_Finalize. */
WEFT_GPU_API int weft_gpu_request_free(weft_gpu_request* request);

/* For kernels that start a persistent collective themselves (weft_gpu_device.h). Its buffers must
 * be memory that the processor reaches, and shorter than a part (1 MiB), since one start serves
 * all. Weft does not see these kernels: the request is given back when the last one of them has
 * ended.
 */
WEFT_GPU_API int weft_gpu_flags_of(weft_gpu_request request, weft_gpu_flags* flags);

/* Elements of a reduction on the device. */
typedef enum weft_gpu_type {
  WEFT_GPU_INT8,
  WEFT_GPU_INT16,
  WEFT_GPU_INT32,
  WEFT_GPU_INT64,
  WEFT_GPU_UINT8,
  WEFT_GPU_UINT16,
  WEFT_GPU_UINT32,
  WEFT_GPU_UINT64,
  WEFT_GPU_HALF,
  WEFT_GPU_BFLOAT16,
  WEFT_GPU_FLOAT,
  WEFT_GPU_DOUBLE
} weft_gpu_type;

/* The last three of integers only. */
typedef enum weft_gpu_op {
  WEFT_GPU_SUM,
  WEFT_GPU_PROD,
  WEFT_GPU_MIN,
  WEFT_GPU_MAX,
  WEFT_GPU_LAND,
  WEFT_GPU_LOR,
  WEFT_GPU_LXOR,
  WEFT_GPU_BAND,
  WEFT_GPU_BOR,
  WEFT_GPU_BXOR
} weft_gpu_op;

/* inout[i] = in[i] op inout[i], in the stream: MPI_Reduce_local for memory of the device, with
 * types that MPI lacks. 16-bit types compute in float and round to the nearest. */
WEFT_GPU_API int weft_reduce_local_enqueue(const void* in, void* inout, size_t count,
                                           weft_gpu_type type, weft_gpu_op op,
                                           weft_gpu_stream stream);

#ifdef __cplusplus
}
#endif

/* The collectives are declared where <mpi.h> has been included before. */
#ifdef MPI_VERSION
#ifdef __cplusplus
extern "C" {
#endif

/* MPI's data type of these elements, for collectives in streams; it is not freed. MPI has none of
 * half and bfloat16: theirs is Weft's, of 16 bits. The reductions of this interface combine them by
 * MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX and operators of yours; those of MPI's own do not.
 * MPI_DATATYPE_NULL before MPI_Init. */
WEFT_GPU_API MPI_Datatype weft_gpu_datatype(weft_gpu_type type);

#ifdef __cplusplus
}
#endif
#include "weft_gpu_calls.h"
#endif

#endif
