#include "gpu/shared_memory.h"

#include <utility>

namespace weft::gpu {
namespace {

std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

SharedMemory::SharedMemory(Context* context, int rank, int ranks)
    : context_(context),
      rank_(rank),
      ranks_(ranks),
      table_at_(aligned(static_cast<std::size_t>(ranks))),
      part_at_(table_at_ + aligned(static_cast<std::size_t>(ranks) * sizeof(Address))) {}

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(Context* context, int rank, int ranks,
                                                           std::size_t bytes, std::size_t cleared) {
  std::unique_ptr<SharedMemory> made(new SharedMemory(context, rank, ranks));
  made->bytes_ = made->part_at_ + aligned(bytes);
  const auto region = context->region(made->bytes_, made->part_at_ + cleared);
  if (!region) return region.error();
  made->own_ = *region;
  return made;
}

Result<MemoryHandle> SharedMemory::handle() const {
  const Driver& driver = context_->driver();
  const OutsideCapture now(driver);
  MemoryHandle made{};
  const int code = driver.share_memory(&made, own_);
  if (code != kSuccess) return driver.error("cuIpcGetMemHandle", code);
  return made;
}

Result<bool> SharedMemory::open(const std::vector<MemoryHandle>& handles) {
  std::vector<Address> parts;
  for (std::size_t rank = 0; rank < handles.size(); ++rank) {
    const bool mine = rank == static_cast<std::size_t>(rank_);
    const auto memory = mine ? Result<Address>(own_) : context_->mapped(handles[rank]);
    if (!memory) return memory.error();
    parts.push_back(*memory + part_at_);
  }
  const auto written =
      context_->write_now(own_ + table_at_, parts.data(), parts.size() * sizeof(Address));
  if (!written) return written;
  parts_ = std::move(parts);
  return true;
}

// Tells all ranks that this one no longer uses their memory. This rank's own is used again once all
// ranks have told the same.
SharedMemory::~SharedMemory() {
  for (const Address part : parts_) {
    // The result is not needed: if the write fails, the owner never uses that memory again.
    (void)context_->fill_now(part - part_at_ + static_cast<Address>(rank_), 1, 1);
  }
  if (own_ == 0) return;
  context_->retire_region(own_, bytes_, parts_.empty() ? 0 : static_cast<std::size_t>(ranks_));
}

}  // namespace weft::gpu
