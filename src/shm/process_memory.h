// ProcessMemory: attaches memory that other processes of the node publish (XPMEM), so that buffers
// need no special allocation. An attachment is a mapping of the owner's current memory: when the
// owner unmaps pages, the kernel removes them from all attachments, and new mappings of the owner
// appear at the next access. So attachments are kept, as in MPI libraries and UCX: the first access
// to each page costs about as much as the copies of several calls. Some memory cannot be attached
// (memory that the owner has attached itself, device memory), and accessing it would end this
// process by SIGBUS. So owners publish only memory from which the kernel can take pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "schedule/schedule.h"
#include "shm/repeats.h"
#include "shm/segment.h"
#include "shm/xpmem.h"

namespace weft {

// Attachment: pages of another process that this process maps. They are unmapped when the last
// holder releases the object.
class Attachment {
 public:
  // begin, bytes: whole pages in the other process. here: the address at which this process maps
  // them.
  Attachment(const Xpmem& xpmem, std::uintptr_t begin, std::size_t bytes, std::byte* here)
      : xpmem_(&xpmem), begin_(begin), bytes_(bytes), here_(here) {}
  ~Attachment() { xpmem_->detach(here_); }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  bool contains(std::uintptr_t begin, std::size_t bytes) const {
    return begin >= begin_ && begin + bytes <= begin_ + bytes_;
  }
  std::byte* here() const { return here_; }
  // Returns the local address for an address in the other process. It need not lie in these pages.
  std::byte* at(std::uintptr_t address) const {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(here_) + address - begin_);
  }

 private:
  const Xpmem* const xpmem_;
  const std::uintptr_t begin_;
  const std::size_t bytes_;
  std::byte* const here_;
};

class ProcessMemory {
 public:
  // The least bytes of a buffer that is attached. Attaching a shorter one costs more than copying
  // it; MPICH has the same limit.
  static constexpr std::int64_t kLeast_bytes = 64 * 1024;
  // A buffer is published for other processes from its fifth call on: before, nobody knows whether
  // it will be used again. MPICH has the same limit.
  static constexpr int kRepeats = 5;
  // The most attachments that are kept for each other process, including those in use.
  static constexpr std::size_t kMostKept = 64;

  // Prepares this process, whose rank in MPI_COMM_WORLD is `rank`. Returns nullptr if XPMEM cannot
  // make its memory available to others.
  static std::unique_ptr<ProcessMemory> create(const Xpmem& xpmem, int rank);
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  // Name: describes a process to others: its XPMEM segment, and the address of a page by which they
  // try access.
  struct Name {
    std::int64_t segment = 0;  // number of the process's XPMEM segment; 0 if it has none
    std::uint64_t trial = 0;
  };
  Name name() const;
  // Registers another process, and returns whether this process can attach its memory. All
  // processes must be registered before the first attachment.
  bool add(int rank, const Name& name);
  // Registers another process without trying whether its memory can be attached.
  void expect(int rank, const Name& name);
  void end_trials() { trial_.reset(); }

  // This function and all below are thread-safe.

  // Says whether a buffer takes part in one collective or in many.
  enum class Use : std::uint8_t { once, often };
  // Returns a description of a buffer of this process, by which others can attach it. origin: the
  // address from which others count offsets.
  ShownBuffer shown(const std::byte* begin, std::int64_t bytes, const std::byte* origin, Use use);

  bool is_own(const ShownBuffer& shown) const { return shown.process() == rank_; }
  // Attaches a buffer that its owner has checked by confirmed() and published. Returns nullptr if
  // that fails.
  std::shared_ptr<const Attachment> attach(const ShownBuffer& shown);

 private:
  struct Peer {
    // XPMEM's permit to attach the process's memory; 0 if it was not requested yet.
    std::int64_t permit = 0;
    // Attachments of the process's memory, the most recently used first.
    std::list<std::shared_ptr<const Attachment>> kept;
    std::int64_t segment = 0;
  };

  ProcessMemory(const Xpmem& xpmem, int rank, std::int64_t segment, Segment trial);
  std::shared_ptr<const Attachment> attach(const Peer& peer, std::uintptr_t begin,
                                           std::size_t bytes) const;

  const Xpmem xpmem_;
  const int rank_;
  const std::int64_t segment_;
  std::unique_ptr<Segment> trial_;
  Repeats repeats_;
  std::mutex mutex_;           // guards peers_
  std::map<int, Peer> peers_;  // other processes, indexed by rank in MPI_COMM_WORLD
};

// Returns a description of a buffer by the pages that contain it. memory: the value of
// ShownBuffer::memory. origin: the address from which others count offsets.
ShownBuffer shown_by_pages(std::int64_t memory, const std::byte* begin, std::int64_t bytes,
                           const std::byte* origin);
// Returns the description of the buffers if other processes can access both; otherwise one that
// says that they cannot. It takes one or two system calls if a buffer is in this process's own
// memory.
PublishedBuffers confirmed(const PublishedBuffers& shown);

}  // namespace weft
