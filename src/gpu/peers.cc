#include "gpu/peers.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
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

// Offsets in a spot, which begins with the rank's Rounds. The number of ranks is known only at run
// time.
constexpr std::size_t kFlagsAt = (sizeof(Rounds) + 255) / 256 * 256;

std::size_t slots_in_spot(int ranks) {
  return kFlagsAt + static_cast<std::size_t>(ranks) * kMostSlices * sizeof(std::uint64_t);
}
std::size_t spot_bytes(int ranks) {
  return slots_in_spot(ranks) + 2 * kSlotBytes;
}

Result<bool> fill_in(const Driver& driver, const Options& options, const SharedMemory& region,
                     Offer* offer) {
  int device = 0;
  if (const int code = driver.current_device(&device); code != kSuccess) {
    return driver.error("cuCtxGetDevice", code);
  }
  if (const int code = driver.device_uuid(&offer->device, device); code != kSuccess) {
    return driver.error("cuDeviceGetUuid", code);
  }
  const auto handle = region.handle();
  if (!handle) return handle.error();
  offer->handle = *handle;
  offer->runs_beside_others = runs_beside_others(driver, device, options.one_kernel);
  return true;
}

}  // namespace

std::unique_ptr<Peers> Peers::create(Context* context, int rank, int ranks, const Options& options,
                                     Offer* offer) {
  std::unique_ptr<Peers> made(new Peers(context, rank, ranks));
  const Driver& driver = context->driver();
  const std::size_t bytes = kSpots * spot_bytes(ranks);
  if (options.one_kernel == OneKernel::off) {
    set_reason("WEFT_GPU_ONE_KERNEL is off", offer);
  } else if (!driver.share_memory || !driver.open_memory || !driver.close_memory ||
             !driver.device_uuid) {
    set_reason("CUDA's driver is too old to share memory of devices", offer);
  } else if (auto marks = Segment::create(kSpots * sizeof(std::uint32_t)); !marks) {
    set_reason(marks.error().message, offer);
  } else if (auto region = SharedMemory::create(context, rank, ranks, bytes, bytes); !region) {
    set_reason(region.error().message, offer);
  } else {
    offer->marks = marks->name();
    made->marks_.push_back(std::move(*marks));
    made->region_ = std::move(*region);
    const OutsideCapture now(driver);
    const auto filled = fill_in(driver, options, *made->region_, offer);
    offer->good = static_cast<bool>(filled);
    if (!filled) set_reason(filled.error().message, offer);
  }
  return made;
}

Result<bool> Peers::open(const std::vector<Offer>& offers) {
  std::vector<MemoryHandle> handles;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const Offer& one = offers[rank];
    const std::string who = "rank " + std::to_string(rank) + ": ";
    if (!one.good) return Error{who + one.why_not};
    const auto same_device = [&](const Offer& other) {
      return std::memcmp(&one.device, &other.device, sizeof one.device) == 0;
    };
    const auto beside = std::count_if(offers.begin(), offers.end(), same_device);
    if (rank == static_cast<std::size_t>(rank_)) on_device_ = static_cast<int>(beside);
    handles.push_back(one.handle);
    if (!one.runs_beside_others && beside > 1) {
      return Error{who +
                   "it shares its device without MPS, so that kernels take turns there "
                   "(WEFT_GPU_ONE_KERNEL=on skips this test)"};
    }
  }
  if (const auto attached = attach_marks(offers); !attached) return attached;
  return region_->open(handles);
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

void Peers::give_back(int spot) {
  if (!is_given_up(spot)) free_.fetch_or(1U << spot, std::memory_order_acq_rel);
}

int Peers::room() const {
  return context_->waiting_room() / on_device_ - context_->waiting();
}

Result<std::shared_ptr<SharedMemory>> Peers::create_slots(std::size_t bytes,
                                                          LongOffer* offer) const {
  // The length is rounded up, by at most an eighth or 256 KiB, so that the memory fits later
  // operations of about the same length.
  const std::size_t step = std::max(std::bit_ceil(2 * bytes) / 16, kSlotBytes);
  auto made = SharedMemory::create(context_, rank_, ranks_, (2 * bytes + step - 1) / step * step);
  if (!made) return made.error();
  const auto handle = (*made)->handle();
  if (!handle) return handle.error();
  *offer = {true, *handle};
  return std::shared_ptr<SharedMemory>(std::move(*made));
}

std::size_t Peers::spot_at(int spot) const {
  return static_cast<std::size_t>(spot) * spot_bytes(ranks_);
}

bool Peers::is_finished(int spot) const {
  Rounds rounds;
  return context_->read_now(&rounds, region_->of(rank_) + spot_at(spot), sizeof rounds) &&
         std::equal(std::begin(rounds.published), std::end(rounds.published), rounds.finished);
}

Sharing Peers::sharing(int spot, const Channel& channel, int slices, const SharedMemory* slots,
                       std::size_t slot_bytes) const {
  Sharing made{};
  made.flags = region_->table();
  made.flags_at = spot_at(spot) + kFlagsAt;
  made.slots = slots ? slots->table() : region_->table();
  made.slots_at = slots ? 0 : spot_at(spot) + slots_in_spot(ranks_);
  made.slot_bytes = slots ? slot_bytes : kSlotBytes;
  made.rounds = reinterpret_cast<Rounds*>(region_->of(rank_) + spot_at(spot));
  made.done = channel.device.done;
  made.failed = channel.device.ready;
  made.rank = rank_;
  made.ranks = ranks_;
  made.slices = slices;
  return made;
}

}  // namespace weft::gpu
