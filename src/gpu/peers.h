// Peers: what the ranks of one communicator share on a node so that kernels can carry out their
// collectives. Each operation uses one spot: flags, and slots for short data, in device memory that
// all ranks have mapped. The ranks' descriptions are exchanged as plain bytes (mpi/one_kernel.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "gpu/context.h"
#include "gpu/one_kernel.h"
#include "gpu/options.h"
#include "gpu/shared_memory.h"
#include "shm/segment.h"

namespace weft::gpu {

inline constexpr int kSpots = 16;

// Offer: a rank's description of what it shares, exchanged as plain bytes.
struct Offer {
  bool good = false;
  // True if kernels of several processes can run on this rank's device at the same time.
  bool runs_beside_others = false;
  MemoryHandle handle{};
  DeviceUuid device{};
  SegmentName marks{};
  char why_not[200] = "";
};
static_assert(std::is_trivially_copyable_v<Offer>);

// LongOffer: a rank's description of the memory for an operation whose data are longer than a slot,
// exchanged as plain bytes.
struct LongOffer {
  bool good = false;
  MemoryHandle handle{};
};
static_assert(std::is_trivially_copyable_v<LongOffer>);

class Peers {
 public:
  // Allocates what this rank shares, and describes it in *offer. If that fails, Offer::why_not says
  // why.
  static std::unique_ptr<Peers> create(Context* context, int rank, int ranks,
                                       const Options& options, Offer* offer);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Maps the memory of all ranks. offers: the descriptions in rank order. Returns an error that
  // says what is missing.
  Result<bool> open(const std::vector<Offer>& offers);
  // Must be called when all ranks have opened all memory: their descriptions can then be closed.
  void all_have_opened();
  // Must be called if the ranks have agreed not to use the memory.
  void abandon() {
    if (region_) region_->abandon();
  }

  Context* context() const { return context_; }
  int ranks() const { return ranks_; }
  // Returns a bit mask of the spots that no operation of this rank uses.
  std::uint32_t free_spots() const { return free_.load(std::memory_order_acquire); }
  // Reserves a spot for an operation. The ranks must have agreed that it is free on all of them.
  void take(int spot) { free_.fetch_and(~(1U << spot), std::memory_order_acq_rel); }
  // Lets other operations use the spot, unless a rank has given up an operation there.
  void give_back(int spot);
  // Returns how many more blocks of this rank's kernels may wait at one time, so that all ranks'
  // blocks find room on the device.
  int room() const;

  // Allocates this rank's memory for two slots of `bytes` bytes each. *offer describes it.
  Result<std::shared_ptr<SharedMemory>> create_slots(std::size_t bytes, LongOffer* offer) const;

  // Returns whether this rank has finished all rounds that it has published at this spot. No kernel
  // of the operation may be running.
  bool is_finished(int spot) const;
  // slots: memory of two slots of slot_bytes bytes each; nullptr for those of the spot.
  Sharing sharing(int spot, const Channel& channel, int slices, const SharedMemory* slots,
                  std::size_t slot_bytes) const;
  // Tells all ranks that this rank gives up the operation at this spot, for good. The message goes
  // through host memory, since the device may be lost or its kernel may never run.
  void give_up(int spot);
  // Returns whether any rank has given up the operation at this spot.
  bool is_given_up(int spot) const;

 private:
  Peers(Context* context, int rank, int ranks) : context_(context), rank_(rank), ranks_(ranks) {}
  Result<bool> attach_marks(const std::vector<Offer>& offers);
  std::size_t spot_at(int spot) const;

  Context* const context_;
  const int rank_, ranks_;
  int on_device_ = 1;  // number of ranks on this rank's device
  std::unique_ptr<SharedMemory> region_;
  // Shared host memory of each rank, this rank's first, in which ranks give up operations. It has
  // one number per spot.
  std::vector<Segment> marks_;
  std::atomic<std::uint32_t> free_{(1U << kSpots) - 1};
};

}  // namespace weft::gpu
