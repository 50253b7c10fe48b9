/* weft_gpu.h: collectives that are started and finished in a CUDA stream.
 *
 * Each non-blocking collective of MPI has a form that is enqueued in a stream. It starts when all
 * earlier work in the stream has ended; weft_wait_enqueue makes later work in a stream wait for its
 * end. The calling thread does not wait. The calls may be captured into CUDA graphs, which then
 * carry the collective out at each launch. The MPI library must provide MPI_THREAD_MULTIPLE.
 *
 * Buffers may be in device memory or in host memory. Datatypes of buffers in device memory must not
 * have gaps.
 *
 * A program is linked to libweft-gpu-FAMILY.so, where FAMILY is mpich (also for Intel MPI), openmpi
 * or abi. It needs neither CUDA's headers nor its libraries. Under `weft run`, Weft carries the
 * collectives out; otherwise the MPI library does.
 *
 * Functions that return an int return MPI_SUCCESS or an MPI error code; weft_gpu_error() then says
 * what was wrong.
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

/* The type of cudaStream_t and CUstream. 0 is the default stream that all threads share;
 * cudaStreamPerThread is the default stream of the calling thread. */
typedef struct CUstream_st* weft_gpu_stream;

/* A collective that was enqueued, or initialised as a persistent one. */
typedef struct weft_gpu_request_s* weft_gpu_request;

/* Returns a sentence that says why the last failed call of this thread has failed; "" if no call
 * has failed. */
WEFT_GPU_API const char* weft_gpu_error(void);

/* Starts a persistent collective when all earlier work in the stream has ended. If it was started
 * before, weft_wait_enqueue must have been called for that start. */
WEFT_GPU_API int weft_start_enqueue(weft_gpu_request request, weft_gpu_stream stream);

/* Makes later work in the stream wait until the collective has ended and its data are in place. It
 * must be enqueued behind the collective's start: in the same stream, or in one that waits for an
 * event behind the start. Returns an error if the collective is known to have failed. If it fails
 * later, later work in the stream begins nevertheless, and the next call returns the error. */
WEFT_GPU_API int weft_wait_enqueue(weft_gpu_request request, weft_gpu_stream stream);

/* Does what weft_start_enqueue and weft_wait_enqueue do. A short allreduce, allgather or broadcast
 * between ranks whose devices can access each other's memory is then a single kernel
 * (weft_gpu_path_of tells). */
WEFT_GPU_API int weft_run_enqueue(weft_gpu_request request, weft_gpu_stream stream);

/* Returns a sentence that says how the collective is carried out and, if it is not a single kernel
 * or NCCL, why not. The text is valid as long as the request. */
WEFT_GPU_API const char* weft_gpu_path_of(weft_gpu_request request);

/* Returns the error with which the collective has failed, or MPI_SUCCESS if it has not failed so
 * far. It does not wait. When the work enqueued by weft_wait_enqueue has ended, the answer is final
 * for the starts before it. */
WEFT_GPU_API int weft_gpu_request_status(weft_gpu_request request);

/* Frees the request and sets it to NULL. No call may use it afterwards. Work that was enqueued with
 * it, and graphs that have captured it, still carry the collective out. Returns an error if the
 * collective has failed; the request is freed nevertheless. Failures that no call has returned are
 * reported in MPI_Finalize. */
WEFT_GPU_API int weft_gpu_request_free(weft_gpu_request* request);

/* Sets *flags to the flags by which kernels can start a persistent collective and wait for it
 * themselves (weft_gpu_device.h). Its buffers must be accessible to the host, and shorter than 1
 * MiB: longer ones are divided into chunks, each of which is started separately. Weft does not know
 * of these kernels, so the request must not be freed before the last one of them has ended.
 */
WEFT_GPU_API int weft_gpu_flags_of(weft_gpu_request request, weft_gpu_flags* flags);

/* The element types of reductions on the device. */
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

/* The operators of reductions on the device. The last three are for integers only. */
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

/* Enqueues inout[i] = in[i] op inout[i] in the stream, as MPI_Reduce_local computes it for host
 * memory. Both buffers must be in device memory. 16-bit floating-point types, which MPI lacks, are
 * computed as float and rounded to nearest. */
WEFT_GPU_API int weft_reduce_local_enqueue(const void* in, void* inout, size_t count,
                                           weft_gpu_type type, weft_gpu_op op,
                                           weft_gpu_stream stream);

#ifdef __cplusplus
}
#endif

/* The collectives are declared only if <mpi.h> was included before this header. */
#ifdef MPI_VERSION
#ifdef __cplusplus
extern "C" {
#endif

/* Returns the MPI datatype of these elements, for collectives in streams; MPI_DATATYPE_NULL if MPI
 * is not initialised. It must not be freed. MPI has no datatypes for half and bfloat16, so Weft
 * makes 16-bit ones. The reductions of this interface combine their elements by MPI_SUM, MPI_PROD,
 * MPI_MIN, MPI_MAX and user-defined operators; MPI's own reductions know only user-defined ones. */
WEFT_GPU_API MPI_Datatype weft_gpu_datatype(weft_gpu_type type);

#ifdef __cplusplus
}
#endif
#include "weft_gpu_calls.h"
#endif

#endif
