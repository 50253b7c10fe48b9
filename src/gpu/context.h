// What Weft has on one device: its kernels, the flags by which streams and the processor tell each
// other of collectives, and pinned memory that copies go through. Taken once, used again and again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/driver.h"
#include "gpu/one_kernel.h"
#include "gpu/short_copies.h"
#include "weft_gpu.h"

namespace weft::gpu {

// In the processor's memory, where the device sees it. Apart from others, so that neither side
// fetches what the other writes in vain.
struct alignas(128) HostFlags {
  std::uint64_t ready = 0;
  alignas(64) std::uint64_t done = 0;
};

// Weft's own memory, which the device only maps: the agent may look at it after a device's reset.
struct alignas(4096) FlagPages {
  std::array<HostFlags, 128> all;
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

// Between memory of the device and pinned memory, where the rows lie one behind the other.
struct Copy {
  Address device = 0;
  std::byte* host = nullptr;
  std::size_t bytes = 0;  // of a row
  std::size_t rows = 1;
  std::size_t pitch = 0;  // from one row to the next on the device
};

// Weft's own, for copies that the agent makes.
struct CopyStreams {
  Stream in = nullptr, out = nullptr;
};

// One that ranks carry out in one kernel each (one_kernel.h).
struct OneKernelCall {
  enum class What { allreduce, allgather, broadcast } what = What::allreduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;  // of an allreduce: elements; else bytes of one rank
  weft_gpu_type type = WEFT_GPU_UINT8;
  weft_gpu_op op = WEFT_GPU_SUM;
  int root = -1;  // of a broadcast
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
  // Memory of the device that other processes will have mapped, filled with zeros; always of the
  // same size.
  Result<Address> region(std::size_t bytes);
  // It is used again when all these bytes, which the others write, are no more zero.
  void retire_region(Address region, std::vector<Address> bytes);
  // Another process's region.
  Result<Address> mapped(const MemoryHandle& handle);
  // These have ended when they return.
  Result<bool> read_now(void* to, Address from, std::size_t bytes);
  Result<bool> fill_now(Address to, unsigned char with, std::size_t bytes);
  // To be used again; nothing on the device may use them any more.
  void give_back(const std::vector<Channel>& channels, Pinned pinned, Event event);

  // The kernels make the copies, too: before the start, and after the end.
  Result<bool> launch_start(const Channel& channel, const ShortCopies& in, Stream stream) const;
  Result<bool> launch_wait(const Channel& channel, const ShortCopies& out, Stream stream) const;
  Result<bool> launch_reduction(const void* in, void* inout, std::size_t count, weft_gpu_type type,
                                weft_gpu_op op, Stream stream) const;
  Result<bool> launch(const OneKernelCall& call, const Sharing& sharing, int phases,
                      Stream stream) const;
  Result<bool> copy_in(const Copy& one, Stream stream) const;
  Result<bool> copy_out(const Copy& one, Stream stream) const;
  Result<CopyStreams> copy_streams();

  // The device was reset: nothing of it is there any more, and nothing runs.
  bool is_gone() const;

  // Whether kernels reach this memory of a device: it is that of this one.
  bool reaches(Address address) const;

  // Whether the driver writes and waits for numbers by itself, in a stream.
  bool has_stream_values() const { return has_stream_values_; }
  Result<bool> write_start(const Channel& channel, std::uint64_t number, Stream stream) const;
  Result<bool> wait_until(const Channel& channel, std::uint64_t number, Stream stream) const;

  // For threads of Weft's that call a library which calls CUDA: also what a capture of the
  // application's forbids to threads that say nothing.
  void make_current() const;

 private:
  // A region that others may have mapped still.
  struct Retired {
    Address region;
    std::vector<Address> bytes;
  };

  explicit Context(const Driver& driver) : driver_(driver) {}
  Result<bool> load_kernels();
  std::string why_not_loaded() const;
  void ask_device();
  Result<bool> leave_mark();
  Result<const std::byte*> read(const std::vector<Address>& from, std::size_t bytes);
  bool is_closed(const Retired& one);
  Result<bool> create_stream(Stream* stream) const;
  Result<Stream> own_stream();
  Result<bool> copy(Address to, Address from, std::size_t bytes, Stream stream) const;
  Result<bool> copy_rows(const Rows& to, const Rows& from, const Copy& one, Stream stream) const;
  Result<bool> more_channels();
  Result<std::byte*> allocate_pinned(std::size_t bytes);
  Result<bool> launch_one(void* function, const Channel& channel, const ShortCopies& copies,
                          Stream stream) const;

  static constexpr std::size_t kTypes = WEFT_GPU_DOUBLE + 1;

  const Driver& driver_;
  void* start_ = nullptr;
  void* wait_ = nullptr;
  std::array<void*, kTypes> reductions_{};
  std::array<void*, kTypes> allreduces_{};
  void* gather_ = nullptr;
  void* own_ = nullptr;        // the driver's handle
  unsigned long long id_ = 0;  // by the driver's count: of contexts, or of the mark's block
  Address mark_ = 0;           // memory on the device; 0: the driver counts contexts
  int device_ = 0;
  bool has_stream_values_ = false;
  std::mutex mutex_;  // guards the rest: all that was taken, and what of it is free
  std::vector<Address> all_numbers_;
  std::vector<void*> all_pinned_;
  std::vector<std::unique_ptr<FlagPages>> all_flags_;
  std::vector<Event> all_events_;
  std::vector<Channel> channels_;
  std::vector<Event> events_;
  std::vector<Retired> retired_;
  std::map<std::string, Address> mapped_;  // by handle
  Stream stream_ = nullptr;                // Weft's own
  CopyStreams copy_streams_;
  std::byte* read_ = nullptr;                  // pinned, for what is read at once
  std::multimap<std::size_t, Pinned> pinned_;  // by bytes
};

}  // namespace weft::gpu
