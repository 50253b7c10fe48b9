#include "ranks.h"

#include <algorithm>
#include <cstring>

namespace weft::gpu {

Numbers outcome(What what, int root, int rank, const std::vector<Numbers>& given) {
  if (what == What::broadcast) return given[static_cast<std::size_t>(root)];
  if (what == What::rotate) return given[(static_cast<std::size_t>(rank) + 1) % given.size()];
  Numbers sum(given[0].size());
  for (const Numbers& one : given) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  return sum;
}

Library::Key Library::next_ordered(int rank) {
  const std::lock_guard lock(mutex_);
  return {-1, 0, ordered_[static_cast<std::size_t>(rank)]++};
}

void Library::contribute(const Key& key, int rank, const std::string& description, Numbers given) {
  const std::lock_guard lock(mutex_);
  Meeting& meeting = meetings_[key];
  if (meeting.given.empty()) meeting.description = description;
  if (meeting.description != description) {
    problem_ =
        "rank " + std::to_string(rank) + "'s " + description + " meets " + meeting.description;
  }
  meeting.given[rank] = std::move(given);
}

std::vector<Numbers> Library::all_of(const Key& key) {
  const std::lock_guard lock(mutex_);
  Meeting& meeting = meetings_.at(key);
  if (meeting.given.size() < static_cast<std::size_t>(ranks_)) return {};
  std::vector<Numbers> all;
  for (const auto& [rank, given] : meeting.given) all.push_back(given);
  if (++meeting.asked == ranks_) meetings_.erase(key);
  return all;
}

std::string Library::problem() {
  const std::lock_guard lock(mutex_);
  return problem_;
}

Result<bool> Planned::start(std::size_t part) {
  if (!planted_.empty() && fails_at_start_) return Error{planted_};
  if (random_() % 8 == 0) return false;  // not yet
  keys_[part] =
      number_ < 0 ? library_.next_ordered(rank_) : Library::Key{number_, part, rounds_[part]++};
  const Range& range = parts_[part];
  std::string description = std::to_string(static_cast<int>(what_)) + " of " +
                            std::to_string(range.count) + ", part " + std::to_string(part);
  library_.contribute(keys_[part], rank_, description,
                      Numbers(range.from, range.from + range.count));
  return true;
}

Result<bool> Planned::test(std::size_t part) {
  if (!planted_.empty()) return Error{planted_};
  if (random_() % 4 == 0) return false;
  const auto given = library_.all_of(keys_[part]);
  if (given.empty()) return false;
  const Numbers result = outcome(what_, root_, rank_, given);
  std::copy(result.begin(), result.end(), parts_[part].to);
  return true;
}

Buffer::Buffer(const Numbers& content, bool on_device)
    : count_(content.size()), on_device_(on_device) {
  const std::size_t bytes = count_ * sizeof(Number);
  if (on_device) {
    EXPECT_EQ(cuMemAlloc_v2(&address_, bytes), kSuccess);
  } else {
    void* memory = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&memory, bytes, 0), kSuccess);
    address_ = reinterpret_cast<Address>(memory);
  }
  std::memcpy(standin_data(reinterpret_cast<void*>(address_)), content.data(), bytes);
}

Buffer::~Buffer() {
  if (on_device_) {
    cuMemFree_v2(address_);
  } else {
    cuMemFreeHost(reinterpret_cast<void*>(address_));
  }
}

Numbers Buffer::content() const {
  const auto* data = static_cast<const Number*>(standin_data(reinterpret_cast<void*>(address_)));
  return Numbers(data, data + count_);
}

void use_device() {
  void* context = nullptr;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
}

Made make_collective(Runtime* runtime, Library* library, int rank, int number, What what, int root,
                     const Buffer& from, const Buffer& to, std::size_t parts, unsigned seed,
                     std::shared_ptr<Order> order) {
  const auto context = runtime->context();
  EXPECT_TRUE(context) << context.error().message;
  const std::size_t count = from.count();
  const std::size_t bytes = count * sizeof(Number);
  const std::size_t needed = bytes * (std::size_t(from.on_device()) + std::size_t(to.on_device()));
  const auto pinned = (*context)->pinned(needed);
  EXPECT_TRUE(pinned) << pinned.error().message;
  auto* const sent = from.on_device() ? reinterpret_cast<Number*>(pinned->memory)
                                      : reinterpret_cast<Number*>(from.address());
  auto* const received =
      to.on_device() ? reinterpret_cast<Number*>(pinned->memory) + (from.on_device() ? count : 0)
                     : reinterpret_cast<Number*>(to.address());
  std::vector<Part> cut(parts);
  std::vector<Range> ranges;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = count * part / parts, end = count * (part + 1) / parts;
    const std::size_t length = (end - first) * sizeof(Number), offset = first * sizeof(Number);
    ranges.push_back({sent + first, received + first, end - first});
    if (from.on_device()) {
      cut[part].in.push_back(
          {from.address() + offset, reinterpret_cast<std::byte*>(sent + first), length});
    }
    if (to.on_device()) {
      cut[part].out.push_back(
          {to.address() + offset, reinterpret_cast<std::byte*>(received + first), length});
    }
  }
  auto collective = std::make_unique<Planned>(library, rank, number, what, root, ranges, seed);
  Planned* const seen = collective.get();
  auto made = runtime->add(*context, std::move(cut), std::move(collective), *pinned, order);
  EXPECT_TRUE(made) << made.error().message;
  return {*made, seen};
}

void enqueue_affine(const Buffer& buffer, Number factor, Number addend, Stream stream) {
  static void* const kernel = [] {
    constexpr std::size_t sizes[] = {sizeof(Address), sizeof(std::size_t), sizeof(Number),
                                     sizeof(Number)};
    standin_add_kernel("test_affine", 4, sizes, [](void* const* parameters) {
      void* address;
      std::size_t count;
      Number by, plus;
      std::memcpy(&address, parameters[0], sizeof address);
      std::memcpy(&count, parameters[1], sizeof count);
      std::memcpy(&by, parameters[2], sizeof by);
      std::memcpy(&plus, parameters[3], sizeof plus);
      auto* const data = static_cast<Number*>(standin_data(address));
      for (std::size_t i = 0; i < count; ++i) data[i] = data[i] * by + plus;
    });
    void* found = nullptr;
    cuModuleGetFunction(&found, nullptr, "test_affine");
    return found;
  }();
  Address address = buffer.address();
  std::size_t count = buffer.count();
  void* parameters[] = {&address, &count, &factor, &addend};
  EXPECT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), kSuccess);
}

}  // namespace weft::gpu
