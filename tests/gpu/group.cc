#include "group.h"

#include <cstdint>

namespace weft::gpu {

Group meet_all(const std::vector<Runtime*>& runtimes, const Options& options,
               const std::function<void(int rank)>& before) {
  Group group;
  std::vector<Offer> offers(runtimes.size());
  for (std::size_t rank = 0; rank < runtimes.size(); ++rank) {
    const auto context = runtimes[rank]->context();
    EXPECT_TRUE(context) << context.error().message;
    if (before) before(static_cast<int>(rank));
    group.peers.push_back(Peers::create(*context, static_cast<int>(rank),
                                        static_cast<int>(runtimes.size()), options, &offers[rank]));
  }
  for (std::size_t rank = 0; rank < runtimes.size(); ++rank) {
    const auto opened = group.peers[rank]->open(offers);
    if (opened || !group.why_not.empty()) continue;
    group.why_not = opened.error().message;
    if (group.why_not.rfind("rank ", 0) != 0) {
      group.why_not = "rank " + std::to_string(rank) + ": " + group.why_not;
    }
  }
  if (!group.why_not.empty()) {
    for (const auto& one : group.peers) one->abandon();
    group.peers.clear();
  }
  return group;
}

int common_spot(const Group& group) {
  std::uint32_t spots = ~0U;
  for (const auto& one : group.peers) spots &= one->free_spots();
  return group.peers.empty() || spots == 0 ? -1 : __builtin_ctz(spots);
}

Form form_of(const OneKernelCall& call) {
  return *form_by_rule(call.bytes(), call.takes_parts, kMostWaitingSlices);
}

std::vector<std::shared_ptr<SharedMemory>> shared_slots(const Group& group, std::size_t bytes) {
  std::vector<std::shared_ptr<SharedMemory>> all;
  std::vector<MemoryHandle> handles;
  for (const auto& peers : group.peers) {
    LongOffer offer;
    auto slots = peers->create_slots(bytes, &offer);
    EXPECT_TRUE(slots) << slots.error().message;
    all.push_back(*slots);
    handles.push_back(offer.handle);
  }
  for (const auto& one : all) EXPECT_TRUE(one->open(handles));
  return all;
}

Operation* add_by_kernel(Runtime* runtime, ByKernel by_kernel) {
  Context* const context = *runtime->context();
  auto held = runtime->hold(context);
  EXPECT_TRUE(held) << held.error().message;
  by_kernel.peers->take(by_kernel.spot);
  return runtime->add(context, std::move(by_kernel), std::move(*held));
}

Operation* sum_by_kernel(Runtime* runtime, const Group& group, int rank, int spot,
                         const Buffer& from, const Buffer& to) {
  ByKernel by_kernel{group.peers[static_cast<std::size_t>(rank)], spot, {}};
  by_kernel.call.in = reinterpret_cast<const void*>(from.address());
  by_kernel.call.out = reinterpret_cast<void*>(to.address());
  by_kernel.call.published = by_kernel.call.count = from.count();
  by_kernel.call.type = from.type();
  by_kernel.form = form_of(by_kernel.call);
  return add_by_kernel(runtime, std::move(by_kernel));
}

}  // namespace weft::gpu
