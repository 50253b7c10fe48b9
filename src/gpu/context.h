// What Weft has on one device: its kernels, the flags by which streams and the processor tell each
// other of collectives, and pinned memory that copies go through. Taken once, used again and again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "gpu/driver.h"
#include "weft_gpu.h"

namespace weft::gpu {

// In the processor's memory, where the device sees it. Apart from others, so that neither side
// fetches what the other writes in vain.
struct alignas(128) HostFlags {
  std::uint64_t ready = 0;
  alignas(64) std::uint64_t done = 0;
};

// A stream and the processor: how often something was started, how often it has ended.
struct Channel {
  weft_gpu_flags device{};  // addresses on the device
  HostFlags* host = nullptr;
};

// Memory of the processor's that the device copies from and to beside computation.
struct Pinned {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

class Context {
 public:
  // Of the context that is current on the calling thread.
  static Result<std::unique_ptr<Context>> create(const Driver& driver);

  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }

  Result<std::vector<Channel>> channels(std::size_t count);
  Result<Pinned> pinned(std::size_t bytes);
  Result<Event> event();
  // To be used again; nothing on the device may use them any more.
  void give_back(const std::vector<Channel>& channels, Pinned pinned, Event event);

  Result<bool> launch_start(const Channel& channel, Stream stream) const;
  Result<bool> launch_wait(const Channel& channel, Stream stream) const;
  Result<bool> launch_reduction(const void* in, void* inout, std::size_t count, weft_gpu_type type,
                                weft_gpu_op op, Stream stream) const;
  Result<bool> copy(Address to, Address from, std::size_t bytes, Stream stream) const;

 private:
  explicit Context(const Driver& driver) : driver_(driver) {}
  Result<bool> load_kernels();
  Result<bool> more_channels();
  Result<std::byte*> allocate_pinned(std::size_t bytes);
  Result<bool> launch_one(void* function, const Channel& channel, Stream stream) const;

  static constexpr std::size_t kTypes = WEFT_GPU_DOUBLE + 1;

  const Driver& driver_;
  void* start_ = nullptr;
  void* wait_ = nullptr;
  std::array<void*, kTypes> reductions_{};
  std::mutex mutex_;  // guards the rest: all that was taken, and what of it is free
  std::vector<Address> all_numbers_;
  std::vector<void*> all_pinned_;
  std::vector<Event> all_events_;
  std::vector<Channel> channels_;
  std::vector<Event> events_;
  std::multimap<std::size_t, Pinned> pinned_;  // by bytes
};

}  // namespace weft::gpu
