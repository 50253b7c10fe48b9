// Carries out a collective in one kernel, for ranks whose devices can access each other's memory.
// Each thread block publishes its slice of the data with a flag, waits for the flags of the same
// block on the other ranks, and reduces or copies the published data. No block waits for another
// block of its own rank. Data longer than a slot (256 KiB) take several rounds. The kernels use
// these functions, and so does an implementation on the host for tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/operators.h"
#include "gpu/packs.h"

namespace weft::gpu {

inline constexpr int kMostPeers = 8, kMostSlices = 16;
inline constexpr std::size_t kSlotBytes = 256 << 10;
inline constexpr unsigned kOneKernelThreads = 512;

// Spot: the memory of a rank through which one operation of a communicator exchanges its data. Its
// two slots, used alternately by rounds, are enough: a thread block that publishes round n has
// waited for round n - 1 of the same block on all ranks, so none of them still reads round n - 2.
// Flags order only blocks of the same number; other blocks may be in other rounds. Therefore each
// block has its own place, which is the same in both slots and all rounds.
struct Spot {
  std::byte slots[2][kSlotBytes];
  // The last round that each rank (first index) has published, for each thread block (second
  // index).
  std::uint64_t flags[kMostPeers][kMostSlices];
  // Last round that the rank which owns the spot has published, for each thread block.
  std::uint64_t published[kMostSlices];
  std::uint64_t finished[kMostSlices];
};

// Returns the number of thread blocks in the kernel, each of which has a slice of the data. It is
// equal on all ranks.
inline int slices_of(std::size_t bytes) {
  constexpr std::size_t kSliceBytes = kOneKernelThreads * kPackBytes;
  const std::size_t wanted = (bytes + kSliceBytes - 1) / kSliceBytes;
  return wanted < kMostSlices ? static_cast<int>(wanted) : kMostSlices;
}

// Sharing: a parameter of the kernels: where the ranks exchange data, and the flags that the kernel
// shares with the host.
struct Sharing {
  Spot* spots[kMostPeers];    // each rank's spot, indexed by rank
  const std::uint64_t* done;  // the host stores WEFT_GPU_GIVEN_UP here to end all waiting
  std::uint64_t* failed;      // the kernel stores WEFT_GPU_GIVEN_UP here when it has given up
  int rank, ranks;
};

enum Phases { kPublish = 1, kFinish = 2, kBoth = 3 };

// Share: which part of the work one thread does: the slice of its thread block, and the thread's
// number in the block.
struct Share {
  int slice, slices;
  std::uint64_t thread, threads;
};

// Returns whether the host or another rank has given up this collective, so that waiting must end.
WEFT_DEVICE bool is_given_up(const Sharing& sharing, int slice) {
  const Spot& own = *sharing.spots[sharing.rank];
  for (int peer = 0; peer < sharing.ranks; ++peer) {
    if (weft_device_load(&own.flags[peer][slice]) == WEFT_GPU_GIVEN_UP) return true;
  }
  return weft_device_load(sharing.done) == WEFT_GPU_GIVEN_UP;
}

// Gives up the collective, and tells the host and the other ranks, so that no rank waits for this
// one.
WEFT_DEVICE void give_up(const Sharing& sharing, int slice) {
  weft_device_store(sharing.failed, WEFT_GPU_GIVEN_UP);
  for (int peer = 0; peer < sharing.ranks; ++peer) {
    weft_device_store(&sharing.spots[peer]->flags[sharing.rank][slice], WEFT_GPU_GIVEN_UP);
  }
}

// Waits until `peer` has published this round. Returns false if the collective was given up. The
// host's flag is slow to read, so it is read only now and then.
WEFT_DEVICE bool wait_for(const Sharing& sharing, int peer, int slice, std::uint64_t round) {
  constexpr int kBetweenLooks = 32;
  const std::uint64_t* const flag = &sharing.spots[sharing.rank]->flags[peer][slice];
  for (int looks = 1;; ++looks) {
    const std::uint64_t there = weft_device_load(flag);
    const bool looks_around = looks % kBetweenLooks == 0;
    if (there == WEFT_GPU_GIVEN_UP ||
        (there < round && looks_around && is_given_up(sharing, slice))) {
      give_up(sharing, slice);
      return false;
    }
    if (there >= round) return true;
    if (looks_around) weft_device_pause();
  }
}

// Slice: the data of one thread block in one round, counted in packs of 16 bytes (gpu/packs.h). The
// block has packs begin, …, end - 1, and the round begins with pack `first`.
struct Slice {
  std::uint64_t first, begin, end;
  std::uint64_t of_round;  // number of packs that all blocks together have in the round
};

// Returns the slice of the thread block in the round that begins with pack `first`. In the last
// round, the slices of some blocks may be empty.
WEFT_DEVICE Slice slice_of(std::uint64_t first, std::uint64_t packs, const Share& share) {
  constexpr std::uint64_t kMost = kSlotBytes / kPackBytes;
  const auto slice = static_cast<std::uint64_t>(share.slice);
  const auto slices = static_cast<std::uint64_t>(share.slices);
  const std::uint64_t whole = packs < kMost ? packs : kMost;  // number of packs in the first round
  const std::uint64_t all = packs - first < kMost ? packs - first : kMost;
  const std::uint64_t begin = whole * slice / slices, end = whole * (slice + 1) / slices;
  return {first, first + (begin < all ? begin : all), first + (end < all ? end : all), all};
}

// Copies this thread's part of `in`, unless it is null, to this rank's slot, and raises the flags
// for `round` on all ranks. waited_for: whether the round before was finished; if it is false,
// publish() gives the collective up on all ranks instead, and returns false. A rank that sees the
// flag sees all earlier writes of this thread block.
template <class T, class Sync>
WEFT_DEVICE bool publish(const Sharing& sharing, const T* in, std::uint64_t count,
                         const Slice& slice, std::uint64_t round, bool waited_for,
                         const Share& share, const Sync& sync) {
  constexpr std::uint64_t kElements = Pack<T>::kElements;
  Spot& own = *sharing.spots[sharing.rank];
  T* const slot = reinterpret_cast<T*>(own.slots[round % 2]);
  for (std::uint64_t i = slice.begin + share.thread; in && waited_for && i < slice.end;
       i += share.threads) {
    put(pack_of(in, i * kElements, count), slot, (i - slice.first) * kElements,
        slice.of_round * kElements);
  }
  sync(false);
  if (share.thread == 0) {
    own.published[share.slice] = round;
    if (!waited_for) weft_device_store(sharing.failed, WEFT_GPU_GIVEN_UP);
  }
  const auto ranks = static_cast<std::uint64_t>(sharing.ranks);
  for (std::uint64_t peer = share.thread; peer < ranks; peer += share.threads) {
    weft_device_store(&sharing.spots[peer]->flags[sharing.rank][share.slice],
                      waited_for ? round : WEFT_GPU_GIVEN_UP);
  }
  return waited_for;
}

// Carries out the rounds for one thread block. In each round it publishes a part of `in` and waits
// until all ranks have published theirs. Then it calls take(first, slot, at) for each pack of this
// thread: `first` is the index of the pack's first element in the data, `at` the one in the slot.
// sync(lost) is a barrier of the block that returns whether any of its threads has found the
// collective given up. phases: kPublish publishes the first round; kFinish does everything else.
template <class T, class Sync, class Take>
WEFT_DEVICE void meet_in_slice(const Sharing& sharing, const T* in, std::uint64_t count, int phases,
                               const Share& share, const Sync& sync, const Take& take) {
  constexpr std::uint64_t kElements = Pack<T>::kElements;
  Spot& own = *sharing.spots[sharing.rank];
  const auto ranks = static_cast<std::uint64_t>(sharing.ranks);
  const std::uint64_t packs = (count + kElements - 1) / kElements;
  std::uint64_t round = own.published[share.slice], finished = own.finished[share.slice];
  sync(false);  // no thread may change the two counters before all threads have read them

  for (std::uint64_t first = 0; first < packs; first += kSlotBytes / kPackBytes) {
    const Slice slice = slice_of(first, packs, share);
    if (first > 0 || (phases & kPublish)) {
      ++round;
      if (!publish(sharing, in, count, slice, round, round == finished + 1, share, sync)) return;
    }
    if (!(phases & kFinish) || round == finished) return;
    bool lost = false;
    for (std::uint64_t peer = share.thread; peer < ranks; peer += share.threads) {
      lost = !wait_for(sharing, static_cast<int>(peer), share.slice, round) || lost;
    }
    if (sync(lost)) return;
    for (std::uint64_t i = slice.begin + share.thread; i < slice.end; i += share.threads) {
      take(i * kElements, round % 2, (i - first) * kElements);
    }
    finished = round;
    if (share.thread == 0) own.finished[share.slice] = finished;
  }
}

// Returns a pack of the data that `rank` has published in a slot.
template <class T>
WEFT_DEVICE Pack<T> published(const Sharing& sharing, int rank, std::uint64_t slot,
                              std::uint64_t at) {
  const T* const data = reinterpret_cast<const T*>(sharing.spots[rank]->slots[slot]);
  return *reinterpret_cast<const Pack<T>*>(data + at);
}

// Reduces the ranks' data in rank order, so that the result is bitwise identical on all ranks.
template <class T, class Sync>
WEFT_DEVICE void allreduce_slice(const Sharing& sharing, const T* in, T* out, std::uint64_t count,
                                 weft_gpu_op op, int phases, const Share& share, const Sync& sync) {
  const auto take = [&](std::uint64_t first, std::uint64_t slot, std::uint64_t at) {
    Pack<T> all = published<T>(sharing, 0, slot, at);
    for (int peer = 1; peer < sharing.ranks; ++peer) {
      const Pack<T> one = published<T>(sharing, peer, slot, at);
      for (std::uint64_t j = 0; j < Pack<T>::kElements; ++j) {
        all.elements[j] = combined(op, all.elements[j], one.elements[j]);
      }
    }
    put(all, out, first, count);
  };
  meet_in_slice(sharing, in, count, phases, share, sync, take);
}

// Gathers equally many bytes from each rank or, if `root` is not -1, broadcasts the bytes of the
// root.
template <class Sync>
WEFT_DEVICE void gather_slice(const Sharing& sharing, const std::uint8_t* in, std::uint8_t* out,
                              std::uint64_t bytes, int root, int phases, const Share& share,
                              const Sync& sync) {
  const bool is_silent = root >= 0 && root != sharing.rank;
  const auto take = [&](std::uint64_t first, std::uint64_t slot, std::uint64_t at) {
    if (root >= 0) {
      if (is_silent) put(published<std::uint8_t>(sharing, root, slot, at), out, first, bytes);
      return;
    }
    for (int peer = 0; peer < sharing.ranks; ++peer) {
      std::uint8_t* const to = out + static_cast<std::uint64_t>(peer) * bytes;
      put(published<std::uint8_t>(sharing, peer, slot, at), to, first, bytes);
    }
  };
  meet_in_slice(sharing, is_silent ? nullptr : in, bytes, phases, share, sync, take);
}

}  // namespace weft::gpu
