// Carries out a collective by kernels alone, for ranks whose devices can access each other's
// memory. Each rank publishes its data in memory that the others have mapped: every thread block
// copies its slice and raises a flag on all ranks. Then it waits for the other ranks' flags, and
// takes what they have published. The kernels use these functions, and so does an implementation on
// the host for tests.
//
// Publishing never waits, and a rank publishes all its data at once, however long they are. So a
// waiting rank needs nothing of the others but that they have started the collective, and no order
// of starts and waits can make ranks wait for each other in a circle.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/operators.h"
#include "gpu/packs.h"

namespace weft::gpu {

// The most thread blocks that publish or take, and the most that wait for the other ranks' blocks
// before they take.
inline constexpr int kMostSlices = 128, kMostWaitingSlices = 16;
inline constexpr unsigned kOneKernelThreads = 512, kAwaitThreads = 128;
// Bytes of a slot in a spot. Longer data have memory of their own.
inline constexpr std::size_t kSlotBytes = 256 << 10;

// Rounds: the numbers of the rounds of a spot on one rank, for each slice. All slices have the same
// number while no kernel runs, since a thread block also counts for slices that have no block.
struct Rounds {
  std::uint64_t published[kMostSlices], finished[kMostSlices];
  std::uint64_t awaited;  // last round in which the ranks' flags were waited for by a kernel
};

// Sharing: a parameter of the kernels: where the ranks exchange data, and the flags that the kernel
// shares with the host. Each rank has two slots for its data, used alternately by rounds. Two are
// enough: a rank that publishes round n has waited for round n - 1 of all ranks, so none of them
// still reads round n - 2.
struct Sharing {
  // Addresses of each rank's memory with flags, and with slots, indexed by rank. These arrays lie
  // in memory of this rank's device.
  std::byte* const* flags;
  std::byte* const* slots;
  std::uint64_t flags_at, slots_at;  // offsets of the flags and of the first slot there
  std::uint64_t slot_bytes;
  Rounds* rounds;             // of this rank
  const std::uint64_t* done;  // the host stores WEFT_GPU_GIVEN_UP here to end all waiting
  std::uint64_t* failed;      // the kernel stores WEFT_GPU_GIVEN_UP here when it has given up
  int rank, ranks;
  int slices;  // into how many slices the data are divided, equally on all ranks
};

// The parts of a collective that one launch carries out. kAwait alone is a kernel of one block that
// waits for all slices.
enum Phases { kPublish = 1, kAwait = 2, kTake = 4, kFinish = kAwait | kTake, kAll = 7 };

// Share: which part of the work one thread does: the slice of its thread block, and the thread's
// number in the block.
struct Share {
  int slice;
  std::uint64_t thread, threads;
};

// Work: a parameter of the kernels: the data that one rank publishes and takes, in elements.
struct Work {
  const void* in;           // data to publish; nullptr if the rank publishes none
  void* out;                // where it puts what it has taken
  std::uint64_t published;  // number of elements that each rank publishes
  // This rank takes `count` of the elements that each rank has published, from number `from` on.
  std::uint64_t from, count;
  int how;  // operator of a reduction; root of a broadcast; -1 if each rank's elements are kept
  int phases;
};

// Returns the flags of a rank: the last round that each rank has published, for each slice.
WEFT_DEVICE std::uint64_t* flag_of(const Sharing& sharing, int of, int by, int slice) {
  auto* const all = reinterpret_cast<std::uint64_t*>(sharing.flags[of] + sharing.flags_at);
  return all + static_cast<std::uint64_t>(by) * kMostSlices + static_cast<std::uint64_t>(slice);
}

template <class T>
WEFT_DEVICE T* slot_of(const Sharing& sharing, int rank, std::uint64_t round) {
  return reinterpret_cast<T*>(sharing.slots[rank] + sharing.slots_at +
                              round % 2 * sharing.slot_bytes);
}

// Returns whether the host or another rank has given up this collective, so that waiting must end.
WEFT_DEVICE bool is_given_up(const Sharing& sharing, int slice) {
  for (int peer = 0; peer < sharing.ranks; ++peer) {
    if (weft_device_load(flag_of(sharing, sharing.rank, peer, slice)) == WEFT_GPU_GIVEN_UP) {
      return true;
    }
  }
  return weft_device_load(sharing.done) == WEFT_GPU_GIVEN_UP;
}

// Gives up the collective, and tells the host and the other ranks, so that no rank waits for this
// one.
WEFT_DEVICE void give_up(const Sharing& sharing, int slice) {
  weft_device_store(sharing.failed, WEFT_GPU_GIVEN_UP);
  for (int peer = 0; peer < sharing.ranks; ++peer) {
    weft_device_store(flag_of(sharing, peer, sharing.rank, slice), WEFT_GPU_GIVEN_UP);
  }
}

// Waits until `peer` has published this round. Returns false if the collective was given up. The
// host's flag is slow to read, so it is read only now and then.
WEFT_DEVICE bool wait_for(const Sharing& sharing, int peer, int slice, std::uint64_t round) {
  constexpr int kBetweenLooks = 32;
  const std::uint64_t* const flag = flag_of(sharing, sharing.rank, peer, slice);
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

// Slice: the data of one thread block, counted in packs of 16 bytes (gpu/packs.h).
struct Slice {
  std::uint64_t begin, end;
};

template <class T>
WEFT_DEVICE Slice slice_of(const Sharing& sharing, const Share& share, std::uint64_t elements) {
  const std::uint64_t packs = (elements + Pack<T>::kElements - 1) / Pack<T>::kElements;
  const auto slice = static_cast<std::uint64_t>(share.slice);
  const auto slices = static_cast<std::uint64_t>(sharing.slices);
  return {packs * slice / slices, packs * (slice + 1) / slices};
}

// Copies this thread's part of the elements. Several loads are in flight, since memory is far away.
template <class T>
WEFT_DEVICE void copy_slice(const Sharing& sharing, const Share& share, const T* in, T* out,
                            std::uint64_t count) {
  constexpr std::uint64_t kElements = Pack<T>::kElements, kAtATime = 4;
  const Slice slice = slice_of<T>(sharing, share, count);
  for (std::uint64_t first = slice.begin + share.thread; first < slice.end;
       first += kAtATime * share.threads) {
    Pack<T> taken[kAtATime];
    for (std::uint64_t i = 0; i < kAtATime; ++i) {
      const std::uint64_t pack = first + i * share.threads;
      if (pack < slice.end) taken[i] = pack_of(in, pack * kElements, count);
    }
    for (std::uint64_t i = 0; i < kAtATime; ++i) {
      const std::uint64_t pack = first + i * share.threads;
      if (pack < slice.end) put(taken[i], out, pack * kElements, count);
    }
  }
}

// Sets the number of this block's slice, and those of slices that have no block.
WEFT_DEVICE void count_round(const Sharing& sharing, const Share& share, std::uint64_t* numbers,
                             std::uint64_t round) {
  const auto slices = static_cast<std::uint64_t>(sharing.slices);
  for (std::uint64_t i = static_cast<std::uint64_t>(share.slice) + share.thread * slices;
       i < kMostSlices; i += share.threads * slices) {
    numbers[i] = round;
  }
}

// Copies this thread's part of the data to this rank's slot, and raises the flags for `round` on
// all ranks. waited_for: whether the round before was finished; if it is false, publish() gives the
// collective up on all ranks instead, and returns false. A rank that sees the flag sees all earlier
// writes of this thread block.
template <class T, class Sync>
WEFT_DEVICE bool publish(const Sharing& sharing, const Work& work, std::uint64_t round,
                         bool waited_for, const Share& share, const Sync& sync) {
  if (work.in && waited_for) {
    copy_slice(sharing, share, static_cast<const T*>(work.in),
               slot_of<T>(sharing, sharing.rank, round), work.published);
  }
  sync(false);
  count_round(sharing, share, sharing.rounds->published, round);
  if (share.thread == 0 && !waited_for) weft_device_store(sharing.failed, WEFT_GPU_GIVEN_UP);
  const auto ranks = static_cast<std::uint64_t>(sharing.ranks);
  for (std::uint64_t peer = share.thread; peer < ranks; peer += share.threads) {
    weft_device_store(flag_of(sharing, static_cast<int>(peer), sharing.rank, share.slice),
                      waited_for ? round : WEFT_GPU_GIVEN_UP);
  }
  return waited_for;
}

// Carries out the phases for one thread block. take(round) takes the published data of a round.
// sync(lost) is a barrier of the block that returns whether any of its threads has found the
// collective given up.
template <class T, class Sync, class Take>
WEFT_DEVICE void meet_in_slice(const Sharing& sharing, const Work& work, const Share& share,
                               const Sync& sync, const Take& take) {
  Rounds& rounds = *sharing.rounds;
  std::uint64_t round = rounds.published[share.slice];
  const std::uint64_t finished = rounds.finished[share.slice], awaited = rounds.awaited;
  sync(false);  // no thread may change the counters before all threads have read them
  if (work.phases & kPublish) {
    ++round;
    if (!publish<T>(sharing, work, round, round == finished + 1, share, sync)) return;
  }
  if (!(work.phases & kTake) || round == finished) return;
  if (work.phases & kAwait) {
    const auto ranks = static_cast<std::uint64_t>(sharing.ranks);
    bool lost = false;
    for (std::uint64_t peer = share.thread; peer < ranks; peer += share.threads) {
      lost = !wait_for(sharing, static_cast<int>(peer), share.slice, round) || lost;
    }
    if (sync(lost)) return;
  } else if (awaited != round) {
    return;
  }
  take(round);
  count_round(sharing, share, rounds.finished, round);
}

// Waits until all ranks have published all slices of this round. The kernel has one thread block.
template <class Sync>
WEFT_DEVICE void await_slices(const Sharing& sharing, std::uint64_t thread, std::uint64_t threads,
                              const Sync& sync) {
  Rounds& rounds = *sharing.rounds;
  const std::uint64_t round = rounds.published[0];
  if (round == rounds.finished[0]) return;
  const auto slices = static_cast<std::uint64_t>(sharing.slices);
  const std::uint64_t all = static_cast<std::uint64_t>(sharing.ranks) * slices;
  bool lost = false;
  for (std::uint64_t i = thread; i < all; i += threads) {
    lost = !wait_for(sharing, static_cast<int>(i / slices), static_cast<int>(i % slices), round) ||
           lost;
  }
  if (!sync(lost) && thread == 0) rounds.awaited = round;
}

// Combines the ranks' elements in rank order, so that the result is bitwise identical on all ranks.
template <class T, class Sync>
WEFT_DEVICE void combine_slice(const Sharing& sharing, const Work& work, const Share& share,
                               const Sync& sync) {
  const auto op = static_cast<weft_gpu_op>(work.how);
  meet_in_slice<T>(sharing, work, share, sync, [&](std::uint64_t round) {
    const Slice slice = slice_of<T>(sharing, share, work.count);
    for (std::uint64_t i = slice.begin + share.thread; i < slice.end; i += share.threads) {
      const std::uint64_t first = i * Pack<T>::kElements;
      const auto taken = [&](int rank) {
        return pack_of<T>(slot_of<T>(sharing, rank, round) + work.from, first, work.count);
      };
      Pack<T> all = taken(0);
      for (int peer = 1; peer < sharing.ranks; ++peer) {
        const Pack<T> one = taken(peer);
        for (std::uint64_t j = 0; j < Pack<T>::kElements; ++j) {
          all.elements[j] = combined(op, all.elements[j], one.elements[j]);
        }
      }
      put(all, static_cast<T*>(work.out), first, work.count);
    }
  });
}

// Takes equally many bytes from each rank, one after the other or, if work.how is a root, from this
// rank only.
template <class Sync>
WEFT_DEVICE void gather_slice(const Sharing& sharing, const Work& work, const Share& share,
                              const Sync& sync) {
  using Byte = std::uint8_t;
  meet_in_slice<Byte>(sharing, work, share, sync, [&](std::uint64_t round) {
    if (work.how == sharing.rank) return;  // the root has the data
    const int first = work.how < 0 ? 0 : work.how;
    const int end = work.how < 0 ? sharing.ranks : first + 1;
    for (int peer = first; peer < end; ++peer) {
      const Byte* const in = slot_of<Byte>(sharing, peer, round) + work.from;
      Byte* const out = static_cast<Byte*>(work.out);
      copy_slice(sharing, share, in, out + static_cast<std::uint64_t>(peer - first) * work.count,
                 work.count);
    }
  });
}

}  // namespace weft::gpu
