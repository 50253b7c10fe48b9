// Functions of the CUDA driver that tests call and Weft does not. They are declared as in cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/standin.h"
#include "gpu/driver.h"

extern "C" {
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuCtxCreate_v2(void** context, unsigned flags, int device);
int cuCtxSetCurrent(void* context);
int cuCtxGetCurrent(void** context);
int cuCtxPushCurrent_v2(void* context);
int cuCtxPopCurrent_v2(void** context);
int cuMemAlloc_v2(std::uintptr_t* address, std::size_t bytes);
int cuMemFree_v2(std::uintptr_t address);
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags);
int cuMemFreeHost(void* memory);
int cuMemcpy(std::uintptr_t to, std::uintptr_t from, std::size_t bytes);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamDestroy_v2(void* stream);
int cuStreamSynchronize(void* stream);
int cuStreamWaitEvent(void* stream, void* event, unsigned flags);
int cuStreamBeginCapture_v2(void* stream, int mode);
int cuStreamEndCapture(void* stream, void** graph);
int cuEventCreate(void** event, unsigned flags);
int cuEventRecord(void* event, void* stream);
int cuEventDestroy_v2(void* event);
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void* stream, void** parameters, void** extra);
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags);
int cuGraphLaunch(void* exec, void* stream);
int cuGraphExecDestroy(void* exec);
int cuGraphDestroy(void* graph);
}
