// Launches the kernels of a context and its operations in streams, and manages the memory that
// other processes map.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "gpu/context.h"

namespace weft::gpu {
namespace {

constexpr unsigned kThreads = 256, kMostBlocks = 1024;
constexpr std::size_t kPageBytes = 4096;

// Returns how many threads a kernel needs to make these copies: one for each 16 bytes (pack) of the
// longest copy, rounded up to whole warps.
unsigned threads_for(const ShortCopies& copies) {
  constexpr std::uint64_t kWarp = 32;
  std::uint64_t packs = 0;
  for (int i = 0; i < copies.count; ++i) {
    packs = std::max(packs, (copies.all[i].bytes + kPackBytes - 1) / kPackBytes);
  }
  if (packs == 0) return 1;
  return static_cast<unsigned>(
      std::min<std::uint64_t>((packs + kWarp - 1) / kWarp * kWarp, kMostCopyThreads));
}

}  // namespace

Result<bool> Context::launch_one(void* function, const Channel& channel, const ShortCopies& copies,
                                 Stream stream) const {
  weft_gpu_flags flags = channel.device;
  ShortCopies own = copies;
  void* parameters[] = {&flags, &own};
  const unsigned threads = threads_for(copies);
  const int code = driver_.launch(function, 1, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
  if (code != kSuccess) return driver_.error("cuLaunchKernel", code);
  return true;
}

Result<bool> Context::launch_start(const Channel& channel, const ShortCopies& in,
                                   Stream stream) const {
  return launch_one(start_, channel, in, stream);
}

Result<bool> Context::launch_wait(const Channel& channel, const ShortCopies& out,
                                  Stream stream) const {
  return launch_one(wait_, channel, out, stream);
}

Result<bool> Context::launch_reduction(const void* in, void* inout, std::size_t count,
                                       weft_gpu_type type, weft_gpu_op op, Stream stream) const {
  if (count == 0) return true;
  std::uint64_t elements = count;
  int how = op;
  void* parameters[] = {&in, &inout, &elements, &how};
  const auto blocks = static_cast<unsigned>(
      std::min<std::uint64_t>((count + kThreads - 1) / kThreads, kMostBlocks));
  const int code = driver_.launch(reductions_[type], blocks, 1, 1, kThreads, 1, 1, 0, stream,
                                  parameters, nullptr);
  if (code != kSuccess) return driver_.error("cuLaunchKernel", code);
  return true;
}

Result<bool> Context::copy(Address to, Address from, std::size_t bytes, Stream stream) const {
  if (const int code = driver_.copy(to, from, bytes, stream); code != kSuccess) {
    return driver_.error("cuMemcpyAsync", code);
  }
  return true;
}

Result<bool> Context::copy_in(const Copy& one, Stream stream) const {
  const auto host = reinterpret_cast<Address>(one.host);
  if (one.rows == 1) return copy(host, one.device, one.bytes, stream);
  return copy_rows({.address = host, .pitch = one.bytes},
                   {.address = one.device, .pitch = one.pitch}, one, stream);
}

Result<bool> Context::copy_out(const Copy& one, Stream stream) const {
  const auto host = reinterpret_cast<Address>(one.host);
  if (one.rows == 1) return copy(one.device, host, one.bytes, stream);
  return copy_rows({.address = one.device, .pitch = one.pitch},
                   {.address = host, .pitch = one.bytes}, one, stream);
}

Result<bool> Context::copy_rows(const Rows& to, const Rows& from, const Copy& one,
                                Stream stream) const {
  if (one.pitch <= kMostPitch) {
    const RowsCopy all{from, to, one.bytes, one.rows};
    if (const int code = driver_.copy_rows(&all, stream); code != kSuccess) {
      return driver_.error("cuMemcpy2DAsync", code);
    }
    return true;
  }
  for (std::size_t row = 0; row < one.rows; ++row) {
    const auto copied =
        copy(to.address + row * to.pitch, from.address + row * from.pitch, one.bytes, stream);
    if (!copied) return copied;
  }
  return true;
}

Result<bool> Context::launch(const OneKernelCall& call, const Sharing& sharing, int phases,
                             Stream stream) const {
  const bool reduces = call.what == OneKernelCall::What::reduce;
  const bool waits_only = phases == kAwait;
  Sharing met = sharing;
  Work work{call.in,   call.out,   call.published,
            call.from, call.count, reduces ? static_cast<int>(call.op) : call.root,
            phases};
  void* parameters[] = {&met, &work};
  void* const takes = reduces ? combinations_[call.type] : gather_;
  const auto blocks = waits_only ? 1U : static_cast<unsigned>(sharing.slices);
  const int code = driver_.launch(waits_only ? await_ : takes, blocks, 1, 1,
                                  waits_only ? kAwaitThreads : kOneKernelThreads, 1, 1, 0, stream,
                                  parameters, nullptr);
  if (code != kSuccess) return driver_.error("cuLaunchKernel", code);
  return true;
}

// Announces start number `number` of a collective by two writes in the stream. The driver orders
// the second write after the first one and after all earlier work in the stream.
Result<bool> Context::write_start(const Channel& channel, std::uint64_t number,
                                  Stream stream) const {
  for (const std::uint64_t* word : {channel.device.sent, channel.device.ready}) {
    const int code = driver_.write_value(stream, reinterpret_cast<Address>(word), number, 0);
    if (code != kSuccess) return driver_.error("cuStreamWriteValue64", code);
  }
  return true;
}

Result<bool> Context::wait_until(const Channel& channel, std::uint64_t number,
                                 Stream stream) const {
  const auto word = reinterpret_cast<Address>(channel.device.done);
  const int code = driver_.wait_value(stream, word, number, kWaitUntilReached);
  if (code != kSuccess) return driver_.error("cuStreamWaitValue64", code);
  return true;
}

// The driver's copy is ordered after all earlier work in the stream.
Result<bool> Context::copy_end(const Channel& channel, Stream stream) const {
  const auto done = reinterpret_cast<Address>(&channel.host->done);
  const auto sent = reinterpret_cast<Address>(channel.device.sent);
  return copy(done, sent, sizeof channel.host->done, stream);
}

Result<CaptureTips> Context::capture_tips(Stream stream) const {
  CaptureTips found;
  int status = kNotCapturing;
  void* graph = nullptr;
  const void* nodes = nullptr;
  std::size_t count = 0;
  const int code = driver_.capture_info(stream, &status, &found.capture, &graph, &nodes, &count);
  if (code != kSuccess) return driver_.error("cuStreamGetCaptureInfo", code);
  if (status != kCapturing) return Error{"the stream's capture has been invalidated"};
  auto* const* const begin = static_cast<void* const*>(nodes);
  found.nodes.assign(begin, begin + count);
  return found;
}

Result<bool> Context::change_tips(const CaptureTips& tips, unsigned how, Stream stream) const {
  std::vector<void*> nodes = tips.nodes;
  const int code = driver_.set_dependencies(stream, nodes.data(), nodes.size(), how);
  if (code != kSuccess) return driver_.error("cuStreamUpdateCaptureDependencies", code);
  return true;
}

Result<bool> Context::add_capture_tips(const CaptureTips& tips, Stream stream) const {
  return change_tips(tips, kAddDependencies, stream);
}

Result<bool> Context::set_capture_tips(const CaptureTips& tips, Stream stream) const {
  return change_tips(tips, kSetDependencies, stream);
}

Result<Address> Context::scratch() {
  {
    const std::lock_guard lock(mutex_);
    if (scratch_) return scratch_;
    const OutsideCapture now(driver_);
    if (const int code = driver_.allocate(&scratch_, kScratchBytes); code != kSuccess) {
      scratch_ = 0;
      return driver_.error("cuMemAlloc", code);
    }
    all_numbers_.push_back(scratch_);
  }
  // Zeros stay zeros in all reductions, so that no measurement meets denormal numbers.
  const auto filled = fill_now(scratch_, 0, kScratchBytes);
  if (!filled) return filled.error();
  return scratch_;
}

Result<bool> Context::fill_now(Address to, unsigned char with, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const OutsideCapture now(driver_);
  const auto stream = own_stream();
  if (!stream) return stream.error();
  int code = driver_.fill(to, with, bytes, *stream);
  if (code == kSuccess) code = driver_.synchronise(*stream);
  if (code != kSuccess) return driver_.error("cuMemsetD8Async", code);
  return true;
}

// Copies between device memory and ordinary memory, and returns when that is done. It uses Weft's
// own stream and pinned memory, so that it never becomes part of a capture.
Result<bool> Context::copy_now(Address device, std::byte* host, std::size_t bytes, bool out) {
  const OutsideCapture now(driver_);
  const auto stream = own_stream();
  if (!stream) return stream.error();
  const auto page = page_ ? Result<std::byte*>(page_) : allocate_pinned(kPageBytes);
  if (!page) return page.error();
  page_ = *page;
  const auto pinned = reinterpret_cast<Address>(page_);
  for (std::size_t done = 0; done < bytes; done += kPageBytes) {
    const std::size_t part = std::min(kPageBytes, bytes - done);
    if (!out) std::memcpy(page_, host + done, part);
    const auto copied = out ? copy(pinned, device + done, part, *stream)
                            : copy(device + done, pinned, part, *stream);
    if (!copied) return copied;
    if (const int code = driver_.synchronise(*stream); code != kSuccess) {
      return driver_.error("cuStreamSynchronize", code);
    }
    if (out) std::memcpy(host + done, page_, part);
  }
  return true;
}

Result<bool> Context::read_now(void* to, Address from, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return copy_now(from, static_cast<std::byte*>(to), bytes, true);
}

Result<bool> Context::write_now(Address to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  // The bytes are only read.
  return copy_now(to, static_cast<std::byte*>(const_cast<void*>(from)), bytes, false);
}

// Returns device memory that other processes will map (context.h). It is never freed while the
// process runs: the driver would wait for all kernels of this context, one of which may wait for
// another rank.
Result<Address> Context::region(std::size_t bytes, std::size_t cleared) {
  Address made = 0;
  {
    const std::lock_guard lock(mutex_);
    const OutsideCapture now(driver_);
    const auto closed = std::find_if(retired_.begin(), retired_.end(), [&](const Retired& one) {
      return one.bytes == bytes && is_closed(one);
    });
    if (closed != retired_.end()) {
      made = closed->region;
      retired_.erase(closed);
    } else if (const int code = driver_.allocate(&made, bytes); code != kSuccess) {
      return driver_.error("cuMemAlloc", code);
    } else {
      all_numbers_.push_back(made);
    }
  }
  if (const auto filled = fill_now(made, 0, cleared); !filled) {
    retire_region(made, bytes, 0);
    return filled.error();
  }
  return made;
}

void Context::retire_region(Address region, std::size_t bytes, std::size_t marks) {
  const std::lock_guard lock(mutex_);
  retired_.push_back({region, bytes, marks});
}

// Maps memory of another process (context.h). Each mapping is kept, since other processes reuse
// their memory.
Result<Address> Context::mapped(const MemoryHandle& handle) {
  const std::string key(reinterpret_cast<const char*>(handle.bytes), sizeof handle.bytes);
  const std::lock_guard lock(mutex_);
  if (const auto found = mapped_.find(key); found != mapped_.end()) return found->second;
  const OutsideCapture now(driver_);
  Address made = 0;
  const int code = driver_.open_memory(&made, handle, kEnablePeerAccess);
  if (code != kSuccess) return driver_.error("cuIpcOpenMemHandle", code);
  mapped_[key] = made;
  return made;
}

bool Context::is_closed(const Retired& one) {
  if (one.marks == 0) return true;
  std::vector<std::byte> marks(one.marks);
  return copy_now(one.region, marks.data(), marks.size(), true) &&
         std::all_of(marks.begin(), marks.end(),
                     [](std::byte mark) { return mark != std::byte{}; });
}

}  // namespace weft::gpu
