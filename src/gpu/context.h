// Context: Weft's resources on one device: its kernels, the flags by which streams and the host
// signal each other about collectives, and pinned memory for copies. They are allocated once and
// reused.
#pragma once

#include <array>
#include <atomic>
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

// HostFlags: counters in host memory that are mapped on the device. `ready` and `done` have a cache
// line each, to avoid false sharing.
struct alignas(128) HostFlags {
  std::uint64_t ready = 0;
  alignas(64) std::uint64_t done = 0;
};

// FlagPages: pages with HostFlags. Weft allocates them and the device only maps them, so the agent
// may still read them after a device reset.
struct alignas(4096) FlagPages {
  std::array<HostFlags, 128> all;
};

// Channel: the counters that a stream and the host share for one collective: how often it was
// started (`ready`), and how often it has ended (`done`).
struct Channel {
  weft_gpu_flags device{};  // addresses of the two counters on the device
  HostFlags* host = nullptr;
};

// Pinned: host memory that is pinned, so that the device can copy from and to it while it computes.
struct Pinned {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

// Copy: a copy of rows between device memory and pinned memory. In pinned memory the rows lie one
// after the other.
struct Copy {
  Address device = 0;
  std::byte* host = nullptr;
  std::size_t bytes = 0;  // bytes of one row
  std::size_t rows = 1;
  std::size_t pitch = 0;  // on the device, bytes from the beginning of one row to that of the next
};

// CopyStreams: streams of Weft for the agent's copies, one for each direction.
struct CopyStreams {
  Stream in = nullptr, out = nullptr;
};

// OneKernelCall: the arguments of a collective that kernels alone carry out (one_kernel.h).
struct OneKernelCall {
  // Says what a rank does with the elements that it takes from all ranks: it combines them, or puts
  // them one behind the other. In a broadcast it takes those of the root.
  enum class What { reduce, gather, broadcast } what = What::reduce;
  const void* in = nullptr;
  void* out = nullptr;
  // Number of elements that each rank publishes; without a reduction, elements are bytes. This rank
  // takes `count` of them, from number `from` on.
  std::size_t published = 0, from = 0, count = 0;
  weft_gpu_type type = WEFT_GPU_UINT8;
  weft_gpu_op op = WEFT_GPU_SUM;
  int root = -1;             // root of a broadcast; -1 for other collectives
  bool takes_parts = false;  // whether ranks take different parts of what each publishes

  std::size_t bytes() const { return published * element_bytes(type); }
};

// CaptureTips: the nodes of a graph on which the next node of a stream that is being captured will
// depend, and the capture's number.
struct CaptureTips {
  std::uint64_t capture = 0;
  std::vector<void*> nodes;
};

class Context {
 public:
  // Creates Weft's resources for the context that is current on the calling thread.
  static Result<std::unique_ptr<Context>> create(const Driver& driver);

  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }

  Result<std::vector<Channel>> channels(std::size_t count);
  Result<Pinned> pinned(std::size_t bytes);
  Result<Event> event();
  // Returns device memory that other processes will map (a region). Its first `cleared` bytes are
  // zero.
  Result<Address> region(std::size_t bytes, std::size_t cleared);
  // Says that this process no longer uses the region. It is reused for as many bytes once its first
  // `marks` bytes are non-zero: each rank sets one of them when it no longer uses the region.
  void retire_region(Address region, std::size_t bytes, std::size_t marks);
  // Maps a region of another process. Returns its address in this one.
  Result<Address> mapped(const MemoryHandle& handle);
  // Returns kScratchBytes of device memory, for measurements. All calls return the same memory.
  static constexpr std::size_t kScratchBytes = 16 << 20;
  Result<Address> scratch();
  // read_now() copies from device memory, write_now() to it, and fill_now() sets bytes of it. They
  // return when that is done.
  Result<bool> read_now(void* to, Address from, std::size_t bytes);
  Result<bool> write_now(Address to, const void* from, std::size_t bytes);
  Result<bool> fill_now(Address to, unsigned char with, std::size_t bytes);
  // Takes resources back, so that other operations can use them. Nothing on the device may use them
  // any more.
  void give_back(const std::vector<Channel>& channels, Pinned pinned, Event event);

  // launch_start() launches the kernel that announces the start of a collective, launch_wait() the
  // one that waits for its end. These kernels also make short copies.
  Result<bool> launch_start(const Channel& channel, const ShortCopies& in, Stream stream) const;
  Result<bool> launch_wait(const Channel& channel, const ShortCopies& out, Stream stream) const;
  Result<bool> launch_reduction(const void* in, void* inout, std::size_t count, weft_gpu_type type,
                                weft_gpu_op op, Stream stream) const;
  // Launches the kernel that carries out these phases (one_kernel.h) of a collective.
  Result<bool> launch(const OneKernelCall& call, const Sharing& sharing, int phases,
                      Stream stream) const;
  // Returns how many blocks of kernels that wait for other ranks find room on the device at one
  // time.
  int waiting_room() const { return waiting_room_; }
  // Returns how many such blocks this process may have at one time, and adds `more` to it.
  int waiting() const { return waiting_.load(std::memory_order_relaxed); }
  void let_wait(int more) { waiting_.fetch_add(more, std::memory_order_relaxed); }
  Result<bool> copy_in(const Copy& one, Stream stream) const;
  Result<bool> copy_out(const Copy& one, Stream stream) const;
  Result<CopyStreams> copy_streams();
  // Copies the number of starts to that of ends, so that waits for what was started before pass.
  Result<bool> copy_end(const Channel& channel, Stream stream) const;

  // capture_tips() returns the tips of a stream that is being captured. The other two change them:
  // later work in the stream depends on these nodes as well, or on these only.
  Result<CaptureTips> capture_tips(Stream stream) const;
  Result<bool> add_capture_tips(const CaptureTips& tips, Stream stream) const;
  Result<bool> set_capture_tips(const CaptureTips& tips, Stream stream) const;

  // Returns whether the device was reset, so that its memory is gone and nothing runs there any
  // more.
  bool is_gone() const;

  // Returns whether `address` is on this context's device, so that kernels of this context can
  // access it.
  bool reaches(Address address) const;

  // Returns whether the driver can write a value, and wait for one, in a stream without a kernel
  // (cuStreamWriteValue64).
  bool has_stream_values() const { return has_stream_values_; }
  Result<bool> write_start(const Channel& channel, std::uint64_t number, Stream stream) const;
  Result<bool> wait_until(const Channel& channel, std::uint64_t number, Stream stream) const;

  // Makes the context current on the calling thread, for threads of Weft that call a library which
  // uses CUDA. The thread may then also make calls that a stream capture of the application forbids
  // to other threads.
  void make_current() const;

 private:
  // A region that this process no longer uses, but that other processes may still use.
  struct Retired {
    Address region;
    std::size_t bytes, marks;
  };

  explicit Context(const Driver& driver) : driver_(driver) {}
  Result<bool> load_kernels();
  std::string why_not_loaded() const;
  void ask_device();
  Result<bool> leave_mark();
  Result<bool> copy_now(Address device, std::byte* host, std::size_t bytes, bool out);
  bool is_closed(const Retired& one);
  Result<bool> create_stream(Stream* stream) const;
  Result<Stream> own_stream();
  Result<bool> copy(Address to, Address from, std::size_t bytes, Stream stream) const;
  Result<bool> copy_rows(const Rows& to, const Rows& from, const Copy& one, Stream stream) const;
  Result<bool> more_channels();
  Result<bool> change_tips(const CaptureTips& tips, unsigned how, Stream stream) const;
  Result<std::byte*> allocate_pinned(std::size_t bytes);
  Result<bool> launch_one(void* function, const Channel& channel, const ShortCopies& copies,
                          Stream stream) const;

  static constexpr std::size_t kTypes = WEFT_GPU_DOUBLE + 1;

  const Driver& driver_;
  void* start_ = nullptr;
  void* wait_ = nullptr;
  std::array<void*, kTypes> reductions_{};
  std::array<void*, kTypes> combinations_{};
  void* gather_ = nullptr;
  void* await_ = nullptr;
  void* own_ = nullptr;  // driver's handle of this context
  // driver's ID of this context or, if the driver has none, ID of the block at mark_.
  unsigned long long id_ = 0;
  // Block of device memory that marks the context; 0 if the driver has IDs of contexts.
  Address mark_ = 0;
  int device_ = 0;
  bool has_stream_values_ = false;
  int waiting_room_ = 0;
  std::atomic<int> waiting_{0};
  // Guards the members below, which are all allocated resources and those that are free.
  std::mutex mutex_;
  std::vector<Address> all_numbers_;
  std::vector<void*> all_pinned_;
  std::vector<std::unique_ptr<FlagPages>> all_flags_;
  std::vector<Event> all_events_;
  std::vector<Channel> channels_;
  std::vector<Event> events_;
  std::vector<Retired> retired_;
  std::map<std::string, Address> mapped_;  // address of each mapped region, indexed by its handle
  // Stream of Weft for own_stream(); nullptr until it is made.
  Stream stream_ = nullptr;
  CopyStreams copy_streams_;
  std::byte* page_ = nullptr;                  // pinned memory for copy_now()
  Address scratch_ = 0;                        // 0 until it is allocated
  std::multimap<std::size_t, Pinned> pinned_;  // free pinned memory, by size in bytes
};

}  // namespace weft::gpu
