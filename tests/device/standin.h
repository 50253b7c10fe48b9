// A stand-in for CUDA's driver, for machines without a device. Device memory consists of pages
// without permission, which the processor can neither read nor write; its contents lie elsewhere in
// the process. Streams are threads. There are graphs, and failures on demand. Only what Weft and
// its tests call is there. It is as strict as the driver about streams, events and kernels of
// another context, allocation during a capture, and captures that are not joined. Copies from or to
// pageable memory make their caller wait.
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin {

using Address = std::uintptr_t;

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201;
constexpr int kInvalidDevice = 101, kContextIsDestroyed = 709;
constexpr int kInvalidHandle = 400, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700;
constexpr int kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCaptureUnjoined = 904;
constexpr int kCaptureIsolation = 905, kCaptureImplicit = 906, kCaptureWrongThread = 908;
constexpr int kTooLargeToCooperate = 720, kNoPeerAccess = 217;

// Returns the error with which a call must end at once: a planted failure, the error of an earlier
// kernel, or that no context is current. Returns 0 if the call may continue. The second function
// ignores a missing context.
int stopped(const char* call);
int stopped_without_context(const char* call);

// The owner of what a thread makes now: the current context, or otherwise that of the first device.
// A context that is made again has another id.
struct Owner {
  void* context;
  std::uint64_t id;
  int device;
};
Owner owner();
bool is_gone(const Owner& one);
// Returns whether the device `one` can access the memory of the device `other`.
bool are_peers(int one, int other);
// Returns whether kernels of this device can access the address.
bool is_reached_from(int device, Address address);

// Returns the address at which the processor finds the contents. For memory that is not the
// device's, it is the same address.
std::byte* reachable(Address address);
bool is_of_device(Address address);
// Returns whether all of these bytes lie in one block of device memory.
bool is_block_of_device(Address address, std::size_t bytes);
bool is_pinned(Address address, std::size_t bytes);
// Returns whether the address is neither the device's nor freed: it is the processor's, pinned or
// pageable.
bool is_unknown(Address address);
// Does what a reset does to pinned memory: later accesses to what was allocated in the context end
// the program. Memory that was only registered stays its owner's.
void drop_pinned_of(const void* context);
// Returns whether a copy for which the caller waits is permitted: it must stay within blocks and
// below the permitted length.
bool may_copy_now(Address to, Address from, std::size_t bytes);

// Blocks the calling stream while a test holds up all copies.
void wait_while_copies_are_held();

// Returns whether this thread may allocate. While a stream is captured, it must have set its
// capture mode to relaxed.
bool may_allocate();
// Waits for all earlier work in the default stream and in the streams for which the default stream
// waits. If one of these is being captured, the call fails and ends the capture; it also fails if a
// capture forbids such calls to this thread.
int wait_as_default_stream();

// Places for blocks of cooperative kernels (places.cc): their number, and taking and returning
// them.
int all_places();
void take_places(unsigned blocks);
void give_places_back(unsigned blocks);

// Records that a kernel has failed: from now on every call returns `code`.
void fail_for_good(int code);
bool failed_for_good();

}  // namespace standin

#define DRIVER extern "C" __attribute__((visibility("default")))

// Functions for tests.
extern "C" {
// Makes the nth call of this name from now on (1: the next one) return `code`.
void standin_fail(const char* call, int nth, int code);
// Returns how many planted failures have not occurred yet.
int standin_planted();
// Clears the errors of kernels and the changed attributes.
void standin_forget_errors();
// Sets what cuDeviceGetAttribute returns for an attribute. A negative value makes the attribute
// unknown.
void standin_set_attribute(int which, int value);
// Moves a block of device memory to another device, whose memory kernels cannot access.
void standin_move(const void* address, int device);
// Sets the driver's version, such as 12040 for CUDA 12.4, which is the initial one.
void standin_set_version(int version);
// Defines a kernel with this name, whose parameters have these sizes. It gets copies of the
// parameters. standin_data() finds the contents of device memory to which they point.
void standin_add_kernel(const char* name, int parameters, const std::size_t* sizes,
                        void (*run)(void* const* parameters));
void* standin_data(const void* address);
// Makes the last block of Weft's kernels that several ranks share run first. All ranks must set the
// same, since a block waits for the other ranks' blocks with the same number.
void standin_run_last_block_first(bool yes);
// Returns the number of blocks of device and pinned memory that are not freed.
int standin_allocated();
// Returns how many bytes of pinned memory are not freed.
std::size_t standin_pinned();
// Holds up all copies in streams from now on, or lets them go on.
void standin_hold_copies(bool yes);
}
