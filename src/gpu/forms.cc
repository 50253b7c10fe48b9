#include "gpu/forms.h"

#include <algorithm>

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

// Data that fit into a spot may run in one kernel of many blocks or few, or in three. For longer
// data the rule's form is the only one.
std::vector<Form> forms_to_try(std::size_t bytes, bool takes_parts, int room) {
  constexpr std::size_t kMostOfOneBlock = 64 << 10;
  constexpr int kFewer = 4;
  const auto by_rule = form_by_rule(bytes, takes_parts, room);
  if (!by_rule) return {};
  std::vector<Form> all{*by_rule};
  if (bytes > kSlotBytes) return all;
  const auto add = [&](const Form& one) {
    if (one.waiting() <= room && std::find(all.begin(), all.end(), one) == all.end())
      all.push_back(one);
  };
  const int waiting = slices_of(bytes, kMostWaitingSlices);
  if (!takes_parts) {
    add({waiting, false});
    add({std::max(1, waiting / kFewer), false});
  } else if (bytes <= kMostOfOneBlock) {
    add({1, false});
  }
  add({slices_of(bytes, kMostSlices), true});
  return all;
}

}  // namespace weft::gpu
