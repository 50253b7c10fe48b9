// The memory of devices that the ranks of one communicator share, all on one node: each has a
// region with some spots, and the others' regions mapped. What ranks tell each other of it travels
// as bytes; how is the caller's business (mpi/one_kernel.h).
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

// What a region is made of, on the device.
struct Region {
  Spot spots[kSpots];
  std::uint8_t closed[kMostPeers];  // by rank: it uses this region no more
};

// What a rank tells all others. Plain bytes.
struct Offer {
  bool good = false;
  bool runs_beside_others = false;  // kernels of other processes run on this device at one time
  MemoryHandle handle{};
  DeviceUuid device{};
  SegmentName marks{};
  char why_not[200] = "";
};
static_assert(std::is_trivially_copyable_v<Offer>);

class Peers {
 public:
  // One's own region; an offer that is not good says why.
  static std::unique_ptr<Peers> create(Context* context, int rank, const Options& options,
                                       Offer* offer);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // With the offers of all ranks, in their order. An error says what is lacking.
  Result<bool> open(const std::vector<Offer>& offers);
  // All ranks have opened theirs.
  void all_have_opened();
  // Where the ranks have agreed not to: nobody has used any region.
  void abandon() { regions_.clear(); }

  const Context* context() const { return context_; }
  // One bit for each spot that nothing of this rank's uses.
  std::uint32_t free_spots() const { return free_.load(std::memory_order_acquire); }
  // A spot that is free on all ranks, as they have agreed.
  void take(int spot) { free_.fetch_and(~(1U << spot), std::memory_order_acq_rel); }
  void give_back(int spot) { free_.fetch_or(1U << spot, std::memory_order_acq_rel); }
  // Whether this rank has finished all that it has published there. Nothing of its runs any more.
  bool is_finished(int spot) const;
  Sharing sharing(int spot, const Channel& channel) const;
  // Tells all ranks, for good, that this one comes to the spot no more. The device has no part in
  // it, since it may be lost, or a kernel on it may never run.
  void give_up(int spot);
  // Whether a rank has said so.
  bool is_given_up(int spot) const;

 private:
  Peers(Context* context, int rank) : context_(context), rank_(rank) {}
  Result<bool> attach_marks(const std::vector<Offer>& offers);

  Context* const context_;
  const int rank_;
  Address own_ = 0;
  std::vector<Address> regions_;  // by rank
  std::vector<Segment> marks_;    // of all ranks, this one's first: one number for each spot
  std::atomic<std::uint32_t> free_{(1U << kSpots) - 1};
};

}  // namespace weft::gpu
