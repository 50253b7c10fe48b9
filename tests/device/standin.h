// A stand-in for CUDA's driver, for machines without a device: memory that this processor can
// neither read nor write (pages without permission; what is in it lies elsewhere in the process),
// streams that are threads, graphs, and failures on demand. Only what Weft and its tests call, and
// as strict as the driver: streams, events and kernels of another context, allocation while a
// stream is captured, captures that are not joined. Copies from pageable memory, or to it, make
// their caller wait.
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

// What a call returns at once: a planted failure, the error of an earlier kernel, or that no
// context is current; 0: it goes on.
int stopped(const char* call);
int stopped_without_context(const char* call);

// Whose is what a thread makes now: the context that is current, else the first device's. A context
// that is made anew has another number.
struct Owner {
  void* context;
  std::uint64_t id;
  int device;
};
Owner owner();
bool is_gone(const Owner& one);
// Whether the first device reaches the other one's memory.
bool are_peers(int one, int other);
// By kernels of this device.
bool is_reached_from(int device, Address address);

// Where the bytes of an address lie: the device's elsewhere, others there.
std::byte* reachable(Address address);
bool is_of_device(Address address);
// All of these bytes lie in one block.
bool is_block_of_device(Address address, std::size_t bytes);
bool is_pinned(Address address, std::size_t bytes);
// Neither of the device nor freed: the processor's, pinned or pageable.
bool is_unknown(Address address);
// What a reset does: whoever touches what was allocated there is stopped; what was registered stays
// its owner's.
void drop_pinned_of(const void* context);
// What the processor waits for: within blocks, and not more than it may be.
bool may_copy_now(Address to, Address from, std::size_t bytes);

// While a stream is captured, a thread allocates only where it has said that this is meant.
bool may_allocate();
// For all that comes before in the default stream and in those that it waits for. A capture of one
// of these is broken by it, as is one that forbids it to this thread.
int wait_as_default_stream();

// Of the blocks of cooperative kernels (places.cc).
int all_places();
void take_places(unsigned blocks);
void give_places_back(unsigned blocks);

// A kernel has failed: nothing runs from here on.
void fail_for_good(int code);
bool failed_for_good();

}  // namespace standin

#define DRIVER extern "C" __attribute__((visibility("default")))

// For tests.
extern "C" {
// The nth call of this name from now on (1: the next) returns `code`.
void standin_fail(const char* call, int nth, int code);
// How many of these have not struck yet.
int standin_planted();
// Ends the errors of kernels, and forgets attributes.
void standin_forget_errors();
// What cuDeviceGetAttribute says of this one; negative: that there is none.
void standin_set_attribute(int which, int value);
// This block of the device's belongs to another one, whose memory kernels do not reach.
void standin_move(const void* address, int device);
// Whose driver it is: 12040 for CUDA 12.4, which it is at first.
void standin_set_version(int version);
// A kernel by this name, whose parameters have these sizes. It gets their copies; what they point
// to is found by standin_data.
void standin_add_kernel(const char* name, int parameters, const std::size_t* sizes,
                        void (*run)(void* const* parameters));
void* standin_data(const void* address);
// Of Weft's kernels that several ranks share, the last block runs first. So for all ranks, since a
// block waits for the others' blocks of its number.
void standin_run_last_block_first(bool yes);
// Blocks of the device's and of pinned memory that nobody has freed.
int standin_allocated();
// Bytes of pinned memory that nobody has freed.
std::size_t standin_pinned();
}
