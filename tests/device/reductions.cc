// The kernels of reductions in the stand-in for CUDA's driver. They run Weft's own device functions
// in a loop.
#include <atomic>
#include <cstring>

#include "gpu/one_kernel.h"
#include "standin.h"

namespace weft::gpu {
namespace {

template <class T>
T parameter(void* const* parameters, int which) {
  T value;
  std::memcpy(&value, parameters[which], sizeof value);
  return value;
}

template <class T>
void reduce(void* const* parameters) {
  const T* const in = static_cast<const T*>(standin_data(parameter<const void*>(parameters, 0)));
  T* const inout = static_cast<T*>(standin_data(parameter<void*>(parameters, 1)));
  const auto count = parameter<std::uint64_t>(parameters, 2);
  const auto op = static_cast<weft_gpu_op>(parameter<int>(parameters, 3));
  for (std::uint64_t i = 0; i < count; ++i) inout[i] = combined(op, in[i], inout[i]);
}

Sharing sharing_in(void* const* parameters) {
  auto sharing = parameter<Sharing>(parameters, 0);
  for (int peer = 0; peer < sharing.ranks; ++peer) {
    sharing.spots[peer] = static_cast<Spot*>(standin_data(sharing.spots[peer]));
  }
  return sharing;
}

// Stands in for the exchange between a block's threads. A stand-in's block has one thread.
bool alone(bool lost) {
  return lost;
}

std::atomic<bool> last_first{false};

// Runs all blocks, one after the other.
template <class Run>
void for_each_block(int blocks, const Run& run) {
  const bool backwards = last_first;
  for (int i = 0; i < blocks; ++i) run(Share{backwards ? blocks - 1 - i : i, blocks, 0, 1});
}

template <class T>
void allreduce(void* const* parameters) {
  const Sharing sharing = sharing_in(parameters);
  const T* const in = static_cast<const T*>(standin_data(parameter<const void*>(parameters, 1)));
  T* const out = static_cast<T*>(standin_data(parameter<void*>(parameters, 2)));
  const auto count = parameter<std::uint64_t>(parameters, 3);
  const auto op = static_cast<weft_gpu_op>(parameter<int>(parameters, 4));
  const int phases = parameter<int>(parameters, 5);
  for_each_block(slices_of(count * sizeof(T)), [&](const Share& share) {
    allreduce_slice(sharing, in, out, count, op, phases, share, alone);
  });
}

void gather(void* const* parameters) {
  const Sharing sharing = sharing_in(parameters);
  const void* const in = standin_data(parameter<const void*>(parameters, 1));
  void* const out = standin_data(parameter<void*>(parameters, 2));
  const auto bytes = parameter<std::uint64_t>(parameters, 3);
  const int root = parameter<int>(parameters, 4), phases = parameter<int>(parameters, 5);
  for_each_block(slices_of(bytes), [&](const Share& share) {
    gather_slice(sharing, static_cast<const std::uint8_t*>(in), static_cast<std::uint8_t*>(out),
                 bytes, root, phases, share, alone);
  });
}

const bool added = [] {
  constexpr std::size_t sizes[] = {sizeof(void*), sizeof(void*), sizeof(std::uint64_t),
                                   sizeof(int)};
#define WEFT_ADD(name, T) standin_add_kernel("weft_reduce_" #name, 4, sizes, reduce<T>);
  WEFT_GPU_TYPES(WEFT_ADD)
#undef WEFT_ADD
  constexpr std::size_t more[] = {sizeof(Sharing),       sizeof(void*), sizeof(void*),
                                  sizeof(std::uint64_t), sizeof(int),   sizeof(int)};
#define WEFT_ADD(name, T) standin_add_kernel("weft_allreduce_" #name, 6, more, allreduce<T>);
  WEFT_GPU_TYPES(WEFT_ADD)
#undef WEFT_ADD
  standin_add_kernel("weft_gather", 6, more, gather);
  return true;
}();

}  // namespace
}  // namespace weft::gpu

extern "C" __attribute__((visibility("default"))) void standin_run_last_block_first(bool yes) {
  weft::gpu::last_first = yes;
}
