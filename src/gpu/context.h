// Context: Weft's resources on one device: its kernels, the flags by which streams and the host
// signal each other about collectives, and pinned memory for copies. They are allocated once and
// reused.
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

// Flags in host memory that are mapped on the device. `ready` and `done` have a cache line each, to
// avoid false sharing.
struct alignas(128) HostFlags {
  std::uint64_t ready = 0;
  alignas(64) std::uint64_t done = 0;
};

// Pages of flags. Weft allocates them and the device only maps them, so the agent may still read
// them after a device reset.
struct alignas(4096) FlagPages {
  std::array<HostFlags, 128> all;
};

// The counters shared by a stream and the host: how many times a collective was started, and how
// many times it has ended.
struct Channel {
  weft_gpu_flags device{};  // addresses of the counters on the device
  HostFlags* host = nullptr;
};

// Pinned host memory, with which the device exchanges data while it computes.
struct Pinned {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

// A copy of rows between device memory and pinned memory; in pinned memory the rows are contiguous.
struct Copy {
  Address device = 0;
  std::byte* host = nullptr;
  std::size_t bytes = 0;  // bytes of a row
  std::size_t rows = 1;
  std::size_t pitch = 0;  // bytes from one row to the next on the device
};

// Weft's own streams for the agent's copies.
struct CopyStreams {
  Stream in = nullptr, out = nullptr;
};

// A collective that each rank carries out in one kernel (one_kernel.h).
struct OneKernelCall {
  enum class What { allreduce, allgather, broadcast } what = What::allreduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;  // elements of an allreduce; for other collectives, bytes of one rank
  weft_gpu_type type = WEFT_GPU_UINT8;
  weft_gpu_op op = WEFT_GPU_SUM;
  int root = -1;  // root of a broadcast; -1 otherwise
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
  // Returns zeroed device memory that other processes will map. All calls must ask for equally many
  // bytes.
  Result<Address> region(std::size_t bytes);
  // Lets the region be reused once each of the bytes at these addresses, which the other ranks set,
  // is non-zero.
  void retire_region(Address region, std::vector<Address> bytes);
  // Maps a region of another process and returns its address here.
  Result<Address> mapped(const MemoryHandle& handle);
  // Read or fill device memory. The operation has completed when the call returns.
  Result<bool> read_now(void* to, Address from, std::size_t bytes);
  Result<bool> fill_now(Address to, unsigned char with, std::size_t bytes);
  // Takes resources back for reuse. Nothing on the device may use them any more.
  void give_back(const std::vector<Channel>& channels, Pinned pinned, Event event);

  // Launch the kernels that announce the start of a collective or wait for its end; they also make
  // the short copies.
  Result<bool> launch_start(const Channel& channel, const ShortCopies& in, Stream stream) const;
  Result<bool> launch_wait(const Channel& channel, const ShortCopies& out, Stream stream) const;
  Result<bool> launch_reduction(const void* in, void* inout, std::size_t count, weft_gpu_type type,
                                weft_gpu_op op, Stream stream) const;
  Result<bool> launch(const OneKernelCall& call, const Sharing& sharing, int phases,
                      Stream stream) const;
  Result<bool> copy_in(const Copy& one, Stream stream) const;
  Result<bool> copy_out(const Copy& one, Stream stream) const;
  Result<CopyStreams> copy_streams();

  // Returns whether the device was reset, so that its memory is gone and nothing runs there.
  bool is_gone() const;

  // Returns whether `address` is on this context's device, so that its kernels can access it.
  bool reaches(Address address) const;

  // Returns whether the driver can write and wait for values in a stream without a kernel
  // (cuStreamWriteValue64).
  bool has_stream_values() const { return has_stream_values_; }
  Result<bool> write_start(const Channel& channel, std::uint64_t number, Stream stream) const;
  Result<bool> wait_until(const Channel& channel, std::uint64_t number, Stream stream) const;

  // Makes the context current for a thread of Weft that calls a library which uses CUDA. The thread
  // may then also make calls that a stream capture of the application forbids to other threads.
  void make_current() const;

 private:
  // A region that this process no longer uses, but that other processes may still have mapped.
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
  void* own_ = nullptr;        // the driver's handle of this context
  unsigned long long id_ = 0;  // the driver's ID of the context, or of the block at mark_
  Address mark_ = 0;           // device memory that marks the context; 0 if contexts have IDs
  int device_ = 0;
  bool has_stream_values_ = false;
  std::mutex mutex_;  // guards the members below: all allocated resources, and those that are free
  std::vector<Address> all_numbers_;
  std::vector<void*> all_pinned_;
  std::vector<std::unique_ptr<FlagPages>> all_flags_;
  std::vector<Event> all_events_;
  std::vector<Channel> channels_;
  std::vector<Event> events_;
  std::vector<Retired> retired_;
  std::map<std::string, Address> mapped_;  // addresses of mapped regions, by handle
  Stream stream_ = nullptr;                // a stream of Weft's own; nullptr: not made yet
  CopyStreams copy_streams_;
  std::byte* read_ = nullptr;                  // pinned memory for read()
  std::multimap<std::size_t, Pinned> pinned_;  // free memory, by size in bytes
};

}  // namespace weft::gpu
