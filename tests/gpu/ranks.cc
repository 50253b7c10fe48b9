#include "ranks.h"

#include <algorithm>
#include <cstring>

namespace weft::gpu {
namespace {

// Returns the kernel. It is looked up before any test plants a failure.
void* affine_kernel() {
  static void* const kernel = [] {
    constexpr std::size_t sizes[] = {sizeof(Address), sizeof(std::size_t), sizeof(weft_gpu_type),
                                     sizeof(Number), sizeof(Number)};
    standin_add_kernel("test_affine", 5, sizes, [](void* const* parameters) {
      void* address;
      std::size_t count;
      weft_gpu_type type;
      Number by, plus;
      std::memcpy(&address, parameters[0], sizeof address);
      std::memcpy(&count, parameters[1], sizeof count);
      std::memcpy(&type, parameters[2], sizeof type);
      std::memcpy(&by, parameters[3], sizeof by);
      std::memcpy(&plus, parameters[4], sizeof plus);
      affine_elements(type, static_cast<std::byte*>(standin_data(address)), count, by, plus);
    });
    void* found = nullptr;
    cuModuleGetFunction(&found, nullptr, "test_affine");
    return found;
  }();
  return kernel;
}

}  // namespace

Bytes outcome(weft_gpu_type type, What what, int root, int rank, const std::vector<Bytes>& given) {
  if (what == What::broadcast) return given[static_cast<std::size_t>(root)];
  if (what == What::rotate) return given[(static_cast<std::size_t>(rank) + 1) % given.size()];
  Bytes sum = given[0];
  for (std::size_t one = 1; one < given.size(); ++one) {
    add_elements(type, given[one].data(), sum.data(), sum.size() / element_bytes(type));
  }
  return sum;
}

Library::Key Library::next_ordered(int rank) {
  const std::lock_guard lock(mutex_);
  return {-1, 0, ordered_[static_cast<std::size_t>(rank)]++};
}

void Library::contribute(const Key& key, int rank, const std::string& description, Bytes given) {
  const std::lock_guard lock(mutex_);
  InternalCollective& internal_collective = internal_collectives_[key];
  if (internal_collective.given.empty()) internal_collective.description = description;
  if (internal_collective.description != description) {
    problem_ = "rank " + std::to_string(rank) + "'s " + description + " meets " +
               internal_collective.description;
  }
  internal_collective.given[rank] = std::move(given);
}

std::vector<Bytes> Library::all_of(const Key& key) {
  const std::lock_guard lock(mutex_);
  InternalCollective& internal_collective = internal_collectives_.at(key);
  if (internal_collective.given.size() < static_cast<std::size_t>(ranks_)) return {};
  std::vector<Bytes> all;
  for (const auto& [rank, given] : internal_collective.given) all.push_back(given);
  if (++internal_collective.asked == ranks_) internal_collectives_.erase(key);
  return all;
}

std::string Library::problem() {
  const std::lock_guard lock(mutex_);
  return problem_;
}

Result<bool> Planned::start(std::size_t chunk) {
  if (!planted_.empty() && fails_at_start_) return failure();
  if (random_() % 8 == 0) return false;  // the start must be tried again
  keys_[chunk] =
      number_ < 0 ? library_.next_ordered(rank_) : Library::Key{number_, chunk, rounds_[chunk]++};
  const Range& range = chunks_[chunk];
  std::string description = std::to_string(static_cast<int>(what_)) + " of " +
                            std::to_string(range.bytes) + " bytes of type " +
                            std::to_string(type_) + ", chunk " + std::to_string(chunk);
  library_.contribute(keys_[chunk], rank_, description,
                      Bytes(range.from, range.from + range.bytes));
  return true;
}

Result<bool> Planned::test(std::size_t chunk) {
  if (!planted_.empty()) return failure();
  if (random_() % 4 == 0) return false;
  const auto given = library_.all_of(keys_[chunk]);
  if (given.empty()) return false;
  const Bytes result = outcome(type_, what_, root_, rank_, given);
  std::copy(result.begin(), result.end(), chunks_[chunk].to);
  return true;
}

Buffer::Buffer(weft_gpu_type type, const Bytes& content, bool on_device)
    : type_(type), bytes_(content.size()), on_device_(on_device) {
  if (on_device) {
    EXPECT_EQ(cuMemAlloc_v2(&address_, bytes_), kSuccess);
  } else {
    void* memory = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&memory, bytes_, 0), kSuccess);
    address_ = reinterpret_cast<Address>(memory);
  }
  std::memcpy(standin_data(reinterpret_cast<void*>(address_)), content.data(), bytes_);
}

Buffer::~Buffer() {
  if (on_device_) {
    cuMemFree_v2(address_);
  } else {
    cuMemFreeHost(reinterpret_cast<void*>(address_));
  }
}

Bytes Buffer::bytes() const {
  const auto* data = static_cast<const std::byte*>(standin_data(reinterpret_cast<void*>(address_)));
  return Bytes(data, data + bytes_);
}

Numbers Buffer::content() const {
  EXPECT_EQ(type_, WEFT_GPU_INT64);
  const Bytes found = bytes();
  Numbers numbers(count());
  std::memcpy(numbers.data(), found.data(), found.size());
  return numbers;
}

void use_device() {
  void* context = nullptr;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  affine_kernel();
}

Result<Made> try_collective(Runtime* runtime, Library* library, int rank, int number, What what,
                            int root, const Buffer& from, const Buffer& to, std::size_t chunks,
                            unsigned seed, std::shared_ptr<Order> order, std::size_t buffers) {
  const auto context = runtime->context();
  if (!context) return context.error();
  const std::size_t count = from.count(), element = element_bytes(from.type());
  const std::size_t memories = buffers > 0 ? buffers : chunks;
  const std::size_t most = (count + chunks - 1) / chunks * element;  // most bytes of a chunk
  const bool copied = from.on_device() || to.on_device();
  const auto pinned = (*context)->pinned(copied ? 2 * memories * most : 0);
  if (!pinned) return pinned.error();
  std::vector<Chunk> cut(chunks);
  std::vector<Range> ranges;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t offset = count * chunk / chunks * element;
    const std::size_t length = count * (chunk + 1) / chunks * element - offset;
    std::byte* const memory = pinned->memory + chunk % memories * 2 * most;
    auto* sent = reinterpret_cast<std::byte*>(from.address()) + offset;
    auto* received = reinterpret_cast<std::byte*>(to.address()) + offset;
    if (from.on_device()) {
      sent = memory;
      cut[chunk].in.push_back({from.address() + offset, sent, length});
    }
    if (to.on_device()) {
      received = memory + most;
      cut[chunk].out.push_back({to.address() + offset, received, length});
    }
    ranges.push_back({sent, received, length});
  }
  auto collective =
      std::make_unique<Planned>(library, rank, number, what, root, ranges, seed, from.type());
  Planned* const seen = collective.get();
  auto made =
      runtime->add(*context, std::move(cut), std::move(collective), *pinned, order, buffers);
  if (!made) return made.error();
  return Made{*made, seen};
}

Made make_collective(Runtime* runtime, Library* library, int rank, int number, What what, int root,
                     const Buffer& from, const Buffer& to, std::size_t chunks, unsigned seed,
                     std::shared_ptr<Order> order, std::size_t buffers) {
  const auto made = try_collective(runtime, library, rank, number, what, root, from, to, chunks,
                                   seed, order, buffers);
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

int launch_affine(const Buffer& buffer, Number factor, Number addend, Stream stream) {
  Address address = buffer.address();
  std::size_t count = buffer.count();
  weft_gpu_type type = buffer.type();
  void* parameters[] = {&address, &count, &type, &factor, &addend};
  return cuLaunchKernel(affine_kernel(), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

void enqueue_affine(const Buffer& buffer, Number factor, Number addend, Stream stream) {
  EXPECT_EQ(launch_affine(buffer, factor, addend, stream), kSuccess);
}

}  // namespace weft::gpu
