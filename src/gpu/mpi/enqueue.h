// Declares the functions that carry out the calls declared in weft_gpu_calls.h.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"
#include "weft_gpu.h"

namespace weft::gpu {

// enqueue() carries the collective out in a stream, and prepare() makes a persistent one. They
// return an MPI error code; weft_gpu_error() then returns the message.
int enqueue(const Call& call, weft_gpu_stream stream, weft_gpu_request* request);
int prepare(const Call& call, weft_gpu_request* request);

}  // namespace weft::gpu
