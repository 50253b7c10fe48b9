// Implements ProcessMemory, which attaches other processes' memory by XPMEM. It first checks pages
// by process_vm_readv on this process itself: that call takes pages as XPMEM does for other
// processes, but returns an error if it cannot.
#include "shm/process_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "shm/one_copy.h"

namespace weft {
namespace {

std::uintptr_t page_bytes() {
  static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uintptr_t page_of(std::uintptr_t address) {
  return address / page_bytes();
}

std::uintptr_t begin_of(const ShownBuffer& shown) {
  const std::uintptr_t origin = page_of(static_cast<std::uintptr_t>(shown.offset));
  return (origin + static_cast<std::uintptr_t>(std::intptr_t{shown.first_page})) * page_bytes();
}

std::size_t bytes_of(const ShownBuffer& shown) {
  return shown.pages * page_bytes();
}

// Returns the first word of an attached page; nothing if the owner has no page there. (A plain load
// would then end this process.)
std::optional<std::int64_t> first_word(std::byte* attached) {
  std::int64_t word = 0;
  const iovec from{attached, sizeof word}, to{&word, sizeof word};
  const bool read = process_vm_writev(getpid(), &from, 1, &to, 1, 0) == sizeof word;
  return read ? std::optional(word) : std::nullopt;
}

}  // namespace

std::unique_ptr<ProcessMemory> ProcessMemory::create(const Xpmem& xpmem, int rank) {
  const std::int64_t segment = xpmem.make_all();
  auto trial = Segment::create(1);
  if (segment <= 0 || !trial) return nullptr;
  std::memcpy(trial->data(), &segment, sizeof segment);
  return std::unique_ptr<ProcessMemory>(new ProcessMemory(xpmem, rank, segment, std::move(*trial)));
}

ProcessMemory::ProcessMemory(const Xpmem& xpmem, int rank, std::int64_t segment, Segment trial)
    : xpmem_(xpmem),
      rank_(rank),
      segment_(segment),
      trial_(std::make_unique<Segment>(std::move(trial))) {}

ProcessMemory::Name ProcessMemory::name() const {
  return {segment_, reinterpret_cast<std::uint64_t>(trial_->data())};
}

bool ProcessMemory::add(int rank, const Name& name) {
  const Peer peer{xpmem_.get_all(name.segment), {}, name.segment};
  if (peer.permit <= 0) return false;
  const auto trial = attach(peer, static_cast<std::uintptr_t>(name.trial), page_bytes());
  if (!trial || first_word(trial->here()) != name.segment) return false;
  const std::lock_guard lock(mutex_);
  peers_[rank] = peer;
  return true;
}

void ProcessMemory::expect(int rank, const Name& name) {
  const std::lock_guard lock(mutex_);
  peers_[rank] = {0, {}, name.segment};
}

ShownBuffer ProcessMemory::shown(const std::byte* begin, std::int64_t bytes,
                                 const std::byte* origin, Use use) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  if (bytes < kLeast_bytes || (use == Use::once && repeats_.count(first) < kRepeats))
    return {ShownBuffer::kNotShared};
  return shown_by_pages(ShownBuffer::kOfProcess - rank_, begin, bytes, origin);
}

ShownBuffer shown_by_pages(std::int64_t memory, const std::byte* begin, std::int64_t bytes,
                           const std::byte* origin) {
  // Limit of a buffer's length in bytes: its number of pages must fit into an int.
  constexpr std::int64_t kMost_bytes = std::int64_t{1} << 42;
  if (bytes <= 0 || bytes >= kMost_bytes) return {ShownBuffer::kNotShared};
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const auto address = reinterpret_cast<std::uintptr_t>(origin);
  const std::uintptr_t last = first + static_cast<std::uintptr_t>(bytes) - 1;
  return {memory, static_cast<std::int64_t>(address),
          static_cast<std::int32_t>(page_of(first) - page_of(address)),
          static_cast<std::uint32_t>(page_of(last) - page_of(first) + 1)};
}

// Returns the description of the buffers if other processes can access both; otherwise one that
// says that they cannot. It checks only the first and the last page of each buffer, since a buffer
// has one kind of memory.
PublishedBuffers confirmed(const PublishedBuffers& shown) {
  constexpr PublishedBuffers kNothing{{ShownBuffer::kNotShared}, {ShownBuffer::kNotShared}};
  std::array<iovec, 4> from;
  std::size_t count = 0;
  for (const ShownBuffer* buffer : {&shown.input, &shown.result}) {
    if (!buffer->is_of_process()) continue;
    if (OneCopy::has_shown(*buffer) && !may_be_read()) return kNothing;
    auto* const first = reinterpret_cast<std::byte*>(begin_of(*buffer));
    from[count++] = {first, 1};
    from[count++] = {first + bytes_of(*buffer) - 1, 1};
  }
  if (count == 0) return shown;
  std::array<std::byte, from.size()> bytes;
  const iovec to{bytes.data(), bytes.size()};
  const ssize_t read = process_vm_readv(getpid(), &to, 1, from.data(), count, 0);
  return read == static_cast<ssize_t>(count) ? shown : kNothing;
}

std::shared_ptr<const Attachment> ProcessMemory::attach(const ShownBuffer& shown) {
  const std::uintptr_t begin = begin_of(shown);
  const std::size_t bytes = bytes_of(shown);
  const std::lock_guard lock(mutex_);
  const auto peer = peers_.find(shown.process());
  if (peer == peers_.end()) return nullptr;
  auto& kept = peer->second.kept;
  const auto found = std::find_if(kept.begin(), kept.end(), [&](const auto& attachment) {
    return attachment->contains(begin, bytes);
  });
  if (found != kept.end()) {
    kept.splice(kept.begin(), kept, found);
    return kept.front();
  }
  if (peer->second.permit == 0) peer->second.permit = xpmem_.get_all(peer->second.segment);
  if (peer->second.permit <= 0) return nullptr;
  auto made = attach(peer->second, begin, bytes);
  if (!made) return nullptr;
  kept.push_front(made);
  // An attachment may be dropped from the list at any time, since an operation that uses it keeps
  // it alive.
  if (kept.size() > kMostKept) kept.pop_back();
  return made;
}

std::shared_ptr<const Attachment> ProcessMemory::attach(const Peer& peer, std::uintptr_t begin,
                                                        std::size_t bytes) const {
  std::byte* const here = xpmem_.attach_at(peer.permit, begin, bytes);
  if (!here) return nullptr;
  return std::make_shared<const Attachment>(xpmem_, begin, bytes, here);
}

}  // namespace weft
