// Implements SharedRanges by sorted lists. Lists suffice, since there are as many heaps as ranks of
// a node, and a few windows.
#include "shm/shared_ranges.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weft {
namespace {

bool lies_in(const SharedRanges::Range& range, const std::byte* begin, std::int64_t bytes) {
  return begin >= range.begin && begin + bytes <= range.begin + range.bytes;
}

bool includes(const std::vector<int>& all, std::span<const int> some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// Offsets in heaps are described in pages of this size.
constexpr std::int64_t kHeapPage_bytes = 4096;

constexpr auto is_before = [](const auto& one, const auto& other) {
  return one.number < other.number;
};

int part_of(const ShownBuffer& shown) {
  return SegmentParts::part_with((shown.offset / kHeapPage_bytes + shown.first_page) *
                                 kHeapPage_bytes);
}

}  // namespace

SharedRanges::Range* SharedRanges::numbered(std::int64_t number) {
  const auto found = std::find_if(ranges_.begin(), ranges_.end(),
                                  [&](const Range& range) { return range.number == number; });
  return found == ranges_.end() ? nullptr : &*found;
}

void SharedRanges::add(Range range) {
  const std::lock_guard lock(mutex_);
  ranges_.push_back(std::move(range));
}

void SharedRanges::add_own_heap(int rank, SegmentParts& parts, std::vector<int> ranks) {
  add_heap(rank, parts);
  const std::lock_guard lock(mutex_);
  own_.number = rank;
  own_.parts = &parts;
  own_.ranks = std::move(ranks);
}

void SharedRanges::add_heap(int rank, SegmentParts& parts) {
  insert({rank, &parts, nullptr});
}

void SharedRanges::add_heap(int rank, const SegmentName* name) {
  insert({rank, nullptr, name});
}

void SharedRanges::insert(const Heap& heap) {
  const std::lock_guard lock(mutex_);
  heaps_.insert(std::upper_bound(heaps_.begin(), heaps_.end(), heap, is_before), heap);
}

// Attaches another process's heap and keeps it attached. Returns it; nullptr if that fails. Parts
// of the heap that are mapped stay mapped, too.
SegmentParts* SharedRanges::attached(Heap& heap) const {
  if (heap.parts || !heap.name) return heap.parts;
  const SegmentName& name = *std::exchange(heap.name, nullptr);
  if (addresses_are_limited()) return nullptr;
  auto segment = Segment::attach(name, Segment::Mapped::first_page);
  if (!segment) return nullptr;
  attached_.push_back(std::make_unique<SegmentParts>(std::move(*segment)));
  return heap.parts = attached_.back().get();
}

void SharedRanges::set_leaving(std::int64_t number, bool leaving) {
  const std::lock_guard lock(mutex_);
  if (Range* range = numbered(number)) range->leaving = leaving;
}

void SharedRanges::remove(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  if (Range* range = numbered(number)) ranges_.erase(ranges_.begin() + (range - ranges_.data()));
}

ShownBuffer SharedRanges::shown(const std::byte* begin, std::int64_t bytes,
                                std::span<const int> ranks, std::int64_t to_origin) const {
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges_) {
    if (range.leaving || !lies_in(range, begin, bytes)) continue;
    if (includes(range.ranks, ranks)) return {range.number, begin - range.begin + to_origin};
  }
  return shown_of_heap(begin, bytes, ranks, to_origin);
}

// Returns a description of `bytes` bytes of this process's heap for `ranks`. All of them must lie
// in one part of the heap; otherwise the description says that they are not shared.
ShownBuffer SharedRanges::shown_of_heap(const std::byte* begin, std::int64_t bytes,
                                        std::span<const int> ranks, std::int64_t to_origin) const {
  const std::int64_t offset = own_.parts ? own_.parts->offset_of(begin) : -1;
  if (offset < 0 || !includes(own_.ranks, ranks)) return {ShownBuffer::kNotShared};
  const int part = SegmentParts::part_with(offset);
  const std::int64_t end = SegmentParts::begin_of(part) + SegmentParts::bytes_of(part);
  if (offset + bytes > end) return {ShownBuffer::kNotShared};
  const bool all_have_it = includes(own_.have[static_cast<std::size_t>(part)], ranks);
  const std::int64_t origin = offset + to_origin;
  const auto first_page =
      static_cast<std::int32_t>(offset / kHeapPage_bytes - origin / kHeapPage_bytes);
  return {own_.number, origin, first_page, all_have_it ? 0U : 1U};
}

std::optional<std::byte*> SharedRanges::find(const ShownBuffer& shown) const {
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges_)
    if (range.number == shown.memory) return range.begin + shown.offset;
  const auto heap = std::lower_bound(heaps_.begin(), heaps_.end(),
                                     Heap{shown.memory, nullptr, nullptr}, is_before);
  if (heap == heaps_.end() || heap->number != shown.memory) return std::nullopt;
  SegmentParts* const parts = attached(*heap);
  if (!parts) return nullptr;
  const int part = part_of(shown);
  std::byte* const begin = parts->map(part);
  return begin ? begin + (shown.offset - SegmentParts::begin_of(part)) : nullptr;
}

void SharedRanges::all_have(const ShownBuffer& shown, std::span<const int> ranks) {
  const std::lock_guard lock(mutex_);
  if (!own_.parts || shown.memory != own_.number || shown.pages == 0) return;
  std::vector<int>& have = own_.have[static_cast<std::size_t>(part_of(shown))];
  std::vector<int> all;
  std::set_union(have.begin(), have.end(), ranks.begin(), ranks.end(), std::back_inserter(all));
  have = std::move(all);
}

}  // namespace weft
