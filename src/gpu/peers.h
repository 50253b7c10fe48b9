// Peers: device memory that the ranks of one communicator share on a node. Each rank has a region
// of device memory, in which each operation uses one spot, and maps the other ranks' regions. The
// ranks' descriptions are exchanged as plain bytes (mpi/one_kernel.h).
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
#include "shm/segment.h"

namespace weft::gpu {

inline constexpr int kSpots = 16;

// Region: the device memory of one rank that the other ranks map.
struct Region {
  Spot spots[kSpots];
  // For each rank, non-zero if that rank no longer uses this region.
  std::uint8_t closed[kMostPeers];
};

// Offer: a rank's description of its region, exchanged as plain bytes.
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

class Peers {
 public:
  // Creates this rank's region, and describes it in *offer. If that fails, Offer::why_not says why.
  static std::unique_ptr<Peers> create(Context* context, int rank, const Options& options,
                                       Offer* offer);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Maps the regions of all ranks. offers: the descriptions in rank order. Returns an error that
  // says what is missing.
  Result<bool> open(const std::vector<Offer>& offers);
  // Must be called when all ranks have opened all regions: their descriptions can then be closed.
  void all_have_opened();
  // Forgets the regions. It must be called if the ranks have agreed not to use them.
  void abandon() { regions_.clear(); }

  const Context* context() const { return context_; }
  // Returns a bit mask of the spots that no operation of this rank uses.
  std::uint32_t free_spots() const { return free_.load(std::memory_order_acquire); }
  // Reserves a spot for an operation. The ranks must have agreed that it is free on all of them.
  void take(int spot) { free_.fetch_and(~(1U << spot), std::memory_order_acq_rel); }
  void give_back(int spot) { free_.fetch_or(1U << spot, std::memory_order_acq_rel); }
  // Returns whether this rank has finished all rounds that it has published at this spot. No kernel
  // of the operation may be running.
  bool is_finished(int spot) const;
  Sharing sharing(int spot, const Channel& channel) const;
  // Tells all ranks that this rank gives up the operation at this spot, for good. The message goes
  // through host memory, since the device may be lost or its kernel may never run.
  void give_up(int spot);
  // Returns whether any rank has given up the operation at this spot.
  bool is_given_up(int spot) const;

 private:
  Peers(Context* context, int rank) : context_(context), rank_(rank) {}
  Result<bool> attach_marks(const std::vector<Offer>& offers);

  Context* const context_;
  const int rank_;
  Address own_ = 0;
  std::vector<Address> regions_;  // address of each rank's region, indexed by rank
  // Shared host memory of each rank, this rank's first, in which ranks give up operations. It has
  // one number per spot.
  std::vector<Segment> marks_;
  std::atomic<std::uint32_t> free_{(1U << kSpots) - 1};
};

}  // namespace weft::gpu
