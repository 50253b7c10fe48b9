// What the functions of weft_gpu_calls.h do.
#pragma once

#include <mpi.h>

#include "transport/mpi/call.h"
#include "weft_gpu.h"

namespace weft::gpu {

// An MPI error code; the sentence is weft_gpu_error()'s.
int enqueue(const Call& call, weft_gpu_stream stream, weft_gpu_request* request);
int prepare(const Call& call, weft_gpu_request* request);

}  // namespace weft::gpu
