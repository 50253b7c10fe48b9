// A Context holds Weft's resources on one device: its kernels, the flags by which streams and the
// processor tell each other about collectives, and pinned memory for copies. They are allocated
// once and reused.
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

// Flags in host memory that the device has mapped. Each side's word has a cache line of its own, to
// avoid false sharing.
struct alignas(128) HostFlags {
  std::uint64_t ready = 0;
  alignas(64) std::uint64_t done = 0;
};

// Memory of Weft's own that the device only maps, so that the agent may still read it after a
// device reset.
struct alignas(4096) FlagPages {
  std::array<HostFlags, 128> all;
};

// The counters shared by a stream and the processor: how many times a collective was started, and
// how many times it has ended.
struct Channel {
  weft_gpu_flags device{};  // addresses on the device
  HostFlags* host = nullptr;
};

// Pinned host memory, which the device copies to and from while it computes.
struct Pinned {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

// A copy of rows between device memory and pinned memory; in pinned memory the rows are contiguous.
struct Copy {
  Address device = 0;
  std::byte* host = nullptr;
  std::size_t bytes = 0;  // of a row
  std::size_t rows = 1;
  std::size_t pitch = 0;  // from one row to the next on the device
};

// Weft's own streams for copies that the agent makes.
struct CopyStreams {
  Stream in = nullptr, out = nullptr;
};

// A collective that each rank carries out by one kernel (one_kernel.h).
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
  // Creates Weft's part of the context that is current on the calling thread.
  static Result<std::unique_ptr<Context>> create(const Driver& driver);

  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }

  Result<std::vector<Channel>> channels(std::size_t count);
  Result<Pinned> pinned(std::size_t bytes);
  Result<Event> event();
  // Allocates zeroed device memory that other processes will map. All calls must ask for one size.
  Result<Address> region(std::size_t bytes);
  // Frees the region for reuse once all `bytes`, which the other ranks write, are non-zero.
  void retire_region(Address region, std::vector<Address> bytes);
  // Maps another process's region.
  Result<Address> mapped(const MemoryHandle& handle);
  // Reads or fills device memory; the operation has completed when the call returns.
  Result<bool> read_now(void* to, Address from, std::size_t bytes);
  Result<bool> fill_now(Address to, unsigned char with, std::size_t bytes);
  // Takes resources back for reuse. Nothing on the device may use them any more.
  void give_back(const std::vector<Channel>& channels, Pinned pinned, Event event);

  // Launches the kernels that announce a start and wait for an end; they also make the short
  // copies.
  Result<bool> launch_start(const Channel& channel, const ShortCopies& in, Stream stream) const;
  Result<bool> launch_wait(const Channel& channel, const ShortCopies& out, Stream stream) const;
  Result<bool> launch_reduction(const void* in, void* inout, std::size_t count, weft_gpu_type type,
                                weft_gpu_op op, Stream stream) const;
  Result<bool> launch(const OneKernelCall& call, const Sharing& sharing, int phases,
                      Stream stream) const;
  Result<bool> copy_in(const Copy& one, Stream stream) const;
  Result<bool> copy_out(const Copy& one, Stream stream) const;
  Result<CopyStreams> copy_streams();

  // Returns whether the device was reset: its memory is gone and nothing runs there.
  bool is_gone() const;

  // Returns whether kernels of this context reach `address`, that is, whether it is on this device.
  bool reaches(Address address) const;

  // Returns whether the driver can write and wait for values in a stream without a kernel.
  bool has_stream_values() const { return has_stream_values_; }
  Result<bool> write_start(const Channel& channel, std::uint64_t number, Stream stream) const;
  Result<bool> wait_until(const Channel& channel, std::uint64_t number, Stream stream) const;

  // Makes the context current for a thread of Weft's that calls a library which calls CUDA. The
  // thread may then also do what a capture of the application's forbids to other threads.
  void make_current() const;

 private:
  // A region that other processes may still have mapped.
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
