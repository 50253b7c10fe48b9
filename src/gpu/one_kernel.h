// Collectives of ranks whose devices see each other's memory, in one kernel: each block of threads
// publishes its slice of the data with a flag, waits for the same block's flags of the other ranks,
// and reduces or copies what they have published. No block waits for another one of its own rank.
// The kernels and the tests' stand-in use these same functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/operators.h"
#include "gpu/packs.h"

namespace weft::gpu {

inline constexpr int kMostPeers = 8, kMostSlices = 16;
inline constexpr std::size_t kOneKernelBytes = 256 << 10;
inline constexpr unsigned kOneKernelThreads = 512;

// Where one operation of a communicator meets, in the memory of one rank. Two slots are enough: who
// publishes round n has waited for round n - 1 of all ranks, so that nobody reads round n - 2.
struct Spot {
  std::byte slots[2][kOneKernelBytes];
  std::uint64_t flags[kMostPeers][kMostSlices];  // by writer: which round it has published
  std::uint64_t published[kMostSlices];          // the owner's: which round is its last
  std::uint64_t finished[kMostSlices];
};

// How many blocks a kernel has: the same on all ranks.
inline int slices_of(std::size_t bytes) {
  constexpr std::size_t kSliceBytes = kOneKernelThreads * kPackBytes;
  const std::size_t wanted = (bytes + kSliceBytes - 1) / kSliceBytes;
  return wanted < kMostSlices ? static_cast<int>(wanted) : kMostSlices;
}

// A kernel's parameter.
struct Sharing {
  Spot* spots[kMostPeers];    // by rank
  const std::uint64_t* done;  // the processor's: WEFT_GPU_GIVEN_UP ends all waiting
  std::uint64_t* failed;      // the processor's: the kernel stores WEFT_GPU_GIVEN_UP
  int rank, ranks;
};

enum Phases { kPublish = 1, kFinish = 2, kBoth = 3 };

// This thread's part of a slice: the grid has `slices` blocks.
struct Share {
  int slice, slices;
  std::uint64_t thread, threads;
};

// By the processor, or by another rank.
WEFT_DEVICE bool is_given_up(const Sharing& sharing, int slice) {
  const Spot& own = *sharing.spots[sharing.rank];
  for (int peer = 0; peer < sharing.ranks; ++peer) {
    if (weft_device_load(&own.flags[peer][slice]) == WEFT_GPU_GIVEN_UP) return true;
  }
  return weft_device_load(sharing.done) == WEFT_GPU_GIVEN_UP;
}

// One that is given up lets the other ranks go on, too: they read what is there, and say so.
WEFT_DEVICE void give_up(const Sharing& sharing, int slice) {
  weft_device_store(sharing.failed, WEFT_GPU_GIVEN_UP);
  for (int peer = 0; peer < sharing.ranks; ++peer) {
    weft_device_store(&sharing.spots[peer]->flags[sharing.rank][slice], WEFT_GPU_GIVEN_UP);
  }
}

// Until `peer` has published this round. The processor's number is far away: it is read now and
// then.
WEFT_DEVICE void wait_for(const Sharing& sharing, int peer, int slice, std::uint64_t round) {
  constexpr int kBetweenLooks = 32;
  const std::uint64_t* const flag = &sharing.spots[sharing.rank]->flags[peer][slice];
  for (int looks = 1;; ++looks) {
    const std::uint64_t there = weft_device_load(flag);
    if (there == WEFT_GPU_GIVEN_UP) weft_device_store(sharing.failed, WEFT_GPU_GIVEN_UP);
    if (there >= round) return;
    if (looks % kBetweenLooks == 0) {
      if (is_given_up(sharing, slice)) return give_up(sharing, slice);
      weft_device_pause();
    }
  }
}

// Publishes `in`, where it is not null, and calls take(first, slot) for each pack of this thread's
// when all ranks have published theirs. sync: lets the threads of this block meet. What they wrote
// before is released by the flags.
template <class T, class Sync, class Take>
WEFT_DEVICE void meet_in_slice(const Sharing& sharing, const T* in, std::uint64_t count, int phases,
                               const Share& share, const Sync& sync, const Take& take) {
  constexpr std::uint64_t kElements = Pack<T>::kElements;
  Spot& own = *sharing.spots[sharing.rank];
  const auto slice = static_cast<std::uint64_t>(share.slice);
  const auto slices = static_cast<std::uint64_t>(share.slices);
  const auto ranks = static_cast<std::uint64_t>(sharing.ranks);
  const std::uint64_t packs = (count + kElements - 1) / kElements;
  const std::uint64_t begin = packs * slice / slices, end = packs * (slice + 1) / slices;
  std::uint64_t round = own.published[slice];
  const std::uint64_t finished = own.finished[slice];
  sync();  // all have read these

  if (phases & kPublish) {
    ++round;
    const bool waited_for = round == finished + 1;
    T* const slot = reinterpret_cast<T*>(own.slots[round % 2]);
    for (std::uint64_t i = begin + share.thread; in && waited_for && i < end; i += share.threads) {
      put(pack_of(in, i * kElements, count), slot, i * kElements, packs * kElements);
    }
    sync();
    if (share.thread == 0) {
      own.published[slice] = round;
      if (!waited_for) weft_device_store(sharing.failed, WEFT_GPU_GIVEN_UP);
    }
    for (std::uint64_t peer = share.thread; peer < ranks; peer += share.threads) {
      weft_device_store(&sharing.spots[peer]->flags[sharing.rank][slice],
                        waited_for ? round : WEFT_GPU_GIVEN_UP);
    }
    if (!waited_for) return;
  }
  if (!(phases & kFinish) || round == finished) return;

  for (std::uint64_t peer = share.thread; peer < ranks; peer += share.threads) {
    wait_for(sharing, static_cast<int>(peer), share.slice, round);
  }
  sync();
  for (std::uint64_t i = begin + share.thread; i < end; i += share.threads) {
    take(i * kElements, round % 2);
  }
  if (share.thread == 0) own.finished[slice] = round;
}

// Of what a rank has published in one of its two slots.
template <class T>
WEFT_DEVICE Pack<T> published(const Sharing& sharing, int rank, std::uint64_t slot,
                              std::uint64_t first) {
  const T* const data = reinterpret_cast<const T*>(sharing.spots[rank]->slots[slot]);
  return *reinterpret_cast<const Pack<T>*>(data + first);
}

// In the ranks' order, so that all have the same bits.
template <class T, class Sync>
WEFT_DEVICE void allreduce_slice(const Sharing& sharing, const T* in, T* out, std::uint64_t count,
                                 weft_gpu_op op, int phases, const Share& share, const Sync& sync) {
  const auto take = [&](std::uint64_t first, std::uint64_t slot) {
    Pack<T> all = published<T>(sharing, 0, slot, first);
    for (int peer = 1; peer < sharing.ranks; ++peer) {
      const Pack<T> one = published<T>(sharing, peer, slot, first);
      for (std::uint64_t j = 0; j < Pack<T>::kElements; ++j) {
        all.elements[j] = combined(op, all.elements[j], one.elements[j]);
      }
    }
    put(all, out, first, count);
  };
  meet_in_slice(sharing, in, count, phases, share, sync, take);
}

// root: of a broadcast; -1: an allgather. Bytes, of each rank as many.
template <class Sync>
WEFT_DEVICE void gather_slice(const Sharing& sharing, const std::uint8_t* in, std::uint8_t* out,
                              std::uint64_t bytes, int root, int phases, const Share& share,
                              const Sync& sync) {
  const bool is_silent = root >= 0 && root != sharing.rank;
  const auto take = [&](std::uint64_t first, std::uint64_t slot) {
    if (root >= 0) {
      if (is_silent) put(published<std::uint8_t>(sharing, root, slot, first), out, first, bytes);
      return;
    }
    for (int peer = 0; peer < sharing.ranks; ++peer) {
      std::uint8_t* const to = out + static_cast<std::uint64_t>(peer) * bytes;
      put(published<std::uint8_t>(sharing, peer, slot, first), to, first, bytes);
    }
  };
  meet_in_slice(sharing, is_silent ? nullptr : in, bytes, phases, share, sync, take);
}

}  // namespace weft::gpu
