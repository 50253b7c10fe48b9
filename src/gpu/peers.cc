#include "gpu/peers.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace weft::gpu {
namespace {

void set_reason(const std::string& why, Offer* offer) {
  offer->good = false;
  const std::size_t length = std::min(why.size(), sizeof offer->why_not - 1);
  std::memcpy(offer->why_not, why.data(), length);
  offer->why_not[length] = '\0';
}

// Returns whether CUDA's MPS control daemon runs. Drivers before CUDA 12.4 do not report whether
// processes share the device by MPS.
bool daemon_is_there() {
  const char* const given = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  const std::string directory = given && *given ? given : "/tmp/nvidia-mps";
  return access((directory + "/control").c_str(), F_OK) == 0;
}

bool runs_beside_others(const Driver& driver, int device, OneKernel chosen) {
  if (chosen == OneKernel::on) return true;
  int shared = 0;
  if (driver.device_attribute(&shared, kDeviceIsShared, device) == kSuccess) return shared != 0;
  return daemon_is_there();
}

std::atomic_ref<std::uint32_t> mark_of(const Segment& marks, int spot) {
  return std::atomic_ref(reinterpret_cast<std::uint32_t*>(marks.data())[spot]);
}

Result<bool> fill_in(const Driver& driver, const Options& options, Address region, Offer* offer) {
  int device = 0;
  if (const int code = driver.current_device(&device); code != kSuccess) {
    return driver.error("cuCtxGetDevice", code);
  }
  if (const int code = driver.device_uuid(&offer->device, device); code != kSuccess) {
    return driver.error("cuDeviceGetUuid", code);
  }
  if (const int code = driver.share_memory(&offer->handle, region); code != kSuccess) {
    return driver.error("cuIpcGetMemHandle", code);
  }
  offer->runs_beside_others = runs_beside_others(driver, device, options.one_kernel);
  return true;
}

}  // namespace

std::unique_ptr<Peers> Peers::create(Context* context, int rank, const Options& options,
                                     Offer* offer) {
  std::unique_ptr<Peers> made(new Peers(context, rank));
  const Driver& driver = context->driver();
  if (options.one_kernel == OneKernel::off) {
    set_reason("WEFT_GPU_ONE_KERNEL is off", offer);
  } else if (!driver.share_memory || !driver.open_memory || !driver.close_memory ||
             !driver.device_uuid) {
    set_reason("CUDA's driver is too old to share memory of devices", offer);
  } else if (auto marks = Segment::create(kSpots * sizeof(std::uint32_t)); !marks) {
    set_reason(marks.error().message, offer);
  } else if (const auto region = context->region(sizeof(Region)); !region) {
    set_reason(region.error().message, offer);
  } else {
    offer->marks = marks->name();
    made->marks_.push_back(std::move(*marks));
    const OutsideCapture now(driver);
    made->own_ = *region;
    const auto filled = fill_in(driver, options, *region, offer);
    offer->good = static_cast<bool>(filled);
    if (!filled) set_reason(filled.error().message, offer);
  }
  return made;
}

Result<bool> Peers::open(const std::vector<Offer>& offers) {
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const Offer& one = offers[rank];
    const std::string who = "rank " + std::to_string(rank) + ": ";
    if (!one.good) return Error{who + one.why_not};
    const auto same_device = [&](const Offer& other) {
      return std::memcmp(&one.device, &other.device, sizeof one.device) == 0;
    };
    if (!one.runs_beside_others && std::count_if(offers.begin(), offers.end(), same_device) > 1) {
      return Error{who +
                   "it shares its device without MPS, so that kernels take turns there "
                   "(WEFT_GPU_ONE_KERNEL=on skips this test)"};
    }
  }
  if (const auto attached = attach_marks(offers); !attached) return attached;
  std::vector<Address> regions;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const bool mine = rank == static_cast<std::size_t>(rank_);
    const auto region = mine ? Result<Address>(own_) : context_->mapped(offers[rank].handle);
    if (!region) return region.error();
    regions.push_back(*region);
  }
  regions_ = std::move(regions);
  return true;
}

Result<bool> Peers::attach_marks(const std::vector<Offer>& offers) {
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (rank == static_cast<std::size_t>(rank_)) continue;
    auto attached = Segment::attach(offers[rank].marks);
    if (!attached) return attached.error();
    marks_.push_back(std::move(*attached));
  }
  return true;
}

void Peers::all_have_opened() {
  marks_.front().close_to_others();
}

void Peers::give_up(int spot) {
  mark_of(marks_.front(), spot).store(1, std::memory_order_release);
}

bool Peers::is_given_up(int spot) const {
  return std::any_of(marks_.begin(), marks_.end(), [spot](const Segment& one) {
    return mark_of(one, spot).load(std::memory_order_acquire) != 0;
  });
}

bool Peers::is_finished(int spot) const {
  static_assert(offsetof(Spot, finished) == offsetof(Spot, published) + sizeof(Spot::published));
  struct {
    std::uint64_t published[kMostSlices], finished[kMostSlices];
  } rounds;
  const auto& own = reinterpret_cast<const Region*>(own_)->spots[spot];
  const auto at = reinterpret_cast<Address>(&own.published);
  return context_->read_now(&rounds, at, sizeof rounds) &&
         std::equal(std::begin(rounds.published), std::end(rounds.published), rounds.finished);
}

Sharing Peers::sharing(int spot, const Channel& channel) const {
  Sharing made{};
  for (std::size_t rank = 0; rank < regions_.size(); ++rank) {
    made.spots[rank] = &reinterpret_cast<Region*>(regions_[rank])->spots[spot];
  }
  made.done = channel.device.done;
  made.failed = channel.device.ready;
  made.rank = rank_;
  made.ranks = static_cast<int>(regions_.size());
  return made;
}

// Tells the other ranks that this one no longer uses their regions. This rank's own region is
// reused once all other ranks have told the same.
Peers::~Peers() {
  std::vector<Address> waited_for;
  for (std::size_t rank = 0; rank < regions_.size(); ++rank) {
    if (rank == static_cast<std::size_t>(rank_)) continue;
    const Address closed = regions_[rank] + offsetof(Region, closed);
    // The result is not needed: if the write fails, the owner never reuses that region.
    (void)context_->fill_now(closed + static_cast<Address>(rank_), 1, 1);
    waited_for.push_back(own_ + offsetof(Region, closed) + rank);
  }
  if (own_ != 0) context_->retire_region(own_, std::move(waited_for));
}

}  // namespace weft::gpu
