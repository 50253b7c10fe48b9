// ProcessMemory: the memory of the node's processes, of which each attaches what others show of
// theirs (XPMEM), so that no buffer has to be made for it.
// What an attachment sees is what its owner has at these addresses now: when the owner unmaps
// pages, the kernel takes them out of all attachments, and what the owner maps there afterwards
// appears at the next touch. So attachments are kept, as MPI libraries and UCX keep theirs: the
// first touch of each page costs about as much as the copies of several calls. What cannot appear
// there (another process's memory attached by the owner, memory of devices) would end this process
// by SIGBUS; so an owner shows only what the kernel can take pages from.
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

// Pages of another process. Detached with its last holder.
class Attachment {
 public:
  // There, in whole pages.
  Attachment(const Xpmem& xpmem, std::uintptr_t begin, std::size_t bytes, std::byte* here)
      : xpmem_(&xpmem), begin_(begin), bytes_(bytes), here_(here) {}
  ~Attachment() { xpmem_->detach(here_); }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  bool contains(std::uintptr_t begin, std::size_t bytes) const {
    return begin >= begin_ && begin + bytes <= begin_ + bytes_;
  }
  std::byte* here() const { return here_; }
  // Where an address there lies here, which may be one beside these pages.
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
  // Below that, to attach a buffer costs more than to copy it; MPICH has the same limit.
  static constexpr std::int64_t kLeast_bytes = 64 * 1024;
  // A buffer is shown from its fifth call on: before, nobody knows whether it will be used again
  // (MPICH waits for as many).
  static constexpr int kRepeats = 5;
  // Attachments kept of a process, those in use included.
  static constexpr std::size_t kMostKept = 64;

  // rank: of this process in MPI_COMM_WORLD. nullptr where its memory cannot be made available.
  static std::unique_ptr<ProcessMemory> create(const Xpmem& xpmem, int rank);
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  // For the others: the segment, and a page of it by which they try it out.
  struct Name {
    std::int64_t segment = 0;  // 0: none
    std::uint64_t trial = 0;
  };
  Name name() const;
  // Another process; false: this one cannot attach its memory. Before anything else is attached.
  bool add(int rank, const Name& name);
  // The same, without asking it before it is needed.
  void expect(int rank, const Name& name);
  void end_trials() { trial_.reset(); }

  // The rest is thread-safe.
  // How a buffer of this process may be shown; `origin` is what others count from.
  enum class Use : std::uint8_t { once, often };
  ShownBuffer shown(const std::byte* begin, std::int64_t bytes, const std::byte* origin, Use use);

  bool is_own(const ShownBuffer& shown) const { return shown.process() == rank_; }
  // What another process has shown and confirmed; nullptr: it cannot be attached.
  std::shared_ptr<const Attachment> attach(const ShownBuffer& shown);

 private:
  struct Peer {
    std::int64_t permit = 0;                            // 0: not asked for yet
    std::list<std::shared_ptr<const Attachment>> kept;  // the last used first
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
  std::map<int, Peer> peers_;  // by rank in MPI_COMM_WORLD
};

// A buffer by its pages, of the memory of this number; `origin` is what others count from.
ShownBuffer shown_by_pages(std::int64_t memory, const std::byte* begin, std::int64_t bytes,
                           const std::byte* origin);
// What this process shows, if others can reach it; costs a system call or two where some is memory
// of its own.
ShownBuffers confirmed(const ShownBuffers& shown);

}  // namespace weft
