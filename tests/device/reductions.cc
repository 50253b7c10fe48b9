// The kernels of reductions in the stand-in for CUDA's driver. They run Weft's own device functions
// in a loop.
#include <atomic>
#include <cstring>
#include <vector>

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

// Met: the ranks' memory at the addresses where the processor finds it.
struct Met {
  Sharing sharing;
  std::vector<std::byte*> flags, slots;
};

std::vector<std::byte*> found(std::byte* const* table, int ranks) {
  const auto* const addresses = static_cast<std::byte* const*>(standin_data(table));
  std::vector<std::byte*> all(addresses, addresses + ranks);
  for (std::byte*& one : all) one = static_cast<std::byte*>(standin_data(one));
  return all;
}

Met met_in(void* const* parameters) {
  Met met{parameter<Sharing>(parameters, 0), {}, {}};
  met.flags = found(met.sharing.flags, met.sharing.ranks);
  met.slots = found(met.sharing.slots, met.sharing.ranks);
  met.sharing.flags = met.flags.data();
  met.sharing.slots = met.slots.data();
  met.sharing.rounds = static_cast<Rounds*>(standin_data(met.sharing.rounds));
  return met;
}

Work work_in(void* const* parameters) {
  auto work = parameter<Work>(parameters, 1);
  work.in = standin_data(work.in);
  work.out = standin_data(work.out);
  return work;
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
  for (int i = 0; i < blocks; ++i) run(Share{backwards ? blocks - 1 - i : i, 0, 1});
}

template <class T>
void combine(void* const* parameters) {
  const Met met = met_in(parameters);
  const Work work = work_in(parameters);
  for_each_block(met.sharing.slices,
                 [&](const Share& share) { combine_slice<T>(met.sharing, work, share, alone); });
}

void gather(void* const* parameters) {
  const Met met = met_in(parameters);
  const Work work = work_in(parameters);
  for_each_block(met.sharing.slices,
                 [&](const Share& share) { gather_slice(met.sharing, work, share, alone); });
}

void await(void* const* parameters) {
  await_slices(met_in(parameters).sharing, 0, 1, alone);
}

const bool added = [] {
  constexpr std::size_t sizes[] = {sizeof(void*), sizeof(void*), sizeof(std::uint64_t),
                                   sizeof(int)};
#define WEFT_ADD(name, T) standin_add_kernel("weft_reduce_" #name, 4, sizes, reduce<T>);
  WEFT_GPU_TYPES(WEFT_ADD)
#undef WEFT_ADD
  constexpr std::size_t more[] = {sizeof(Sharing), sizeof(Work)};
#define WEFT_ADD(name, T) standin_add_kernel("weft_combine_" #name, 2, more, combine<T>);
  WEFT_GPU_TYPES(WEFT_ADD)
#undef WEFT_ADD
  standin_add_kernel("weft_gather", 2, more, gather);
  standin_add_kernel("weft_await", 1, more, await);
  return true;
}();

}  // namespace
}  // namespace weft::gpu

extern "C" __attribute__((visibility("default"))) void standin_run_last_block_first(bool yes) {
  weft::gpu::last_first = yes;
}
