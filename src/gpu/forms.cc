#include "gpu/forms.h"

#include "gpu/one_kernel.h"

namespace weft::gpu {
namespace {

// Returns the number of thread blocks that the data deserve.
int slices_of(std::size_t bytes, int most) {
  constexpr std::size_t kSliceBytes = kOneKernelThreads * kPackBytes;
  const std::size_t wanted = (bytes + kSliceBytes - 1) / kSliceBytes;
  return wanted < static_cast<std::size_t>(most) ? static_cast<int>(wanted) : most;
}

}  // namespace

std::optional<Form> form_by_rule(std::size_t bytes, bool takes_parts, int room) {
  if (room < 1) return std::nullopt;
  const int waiting = slices_of(bytes, kMostWaitingSlices);
  const bool meets = bytes <= kSlotBytes && (!takes_parts || waiting == 1);
  if (meets && waiting <= room) return Form{waiting, false};
  return Form{slices_of(bytes, kMostSlices), true};
}

}  // namespace weft::gpu
