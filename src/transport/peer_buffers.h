// PeerBuffers: the addresses of other ranks' buffers in this process, for an operation that uses
// these buffers in place. They are known in advance (persistent request), or are found while the
// operation's schedule runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "shm/node_buffers.h"
#include "shm/one_copy.h"
#include "shm/process_memory.h"
#include "shm/shared_ranges.h"

namespace weft {

class PeerBuffers {
 public:
  // ranges: the shared memory that this process knows. all_ranks: the operation's ranks in
  // MPI_COMM_WORLD, sorted. processes: for attaching other processes' memory, or nullptr. copies:
  // for copies through the kernel, or nullptr. All must outlive this object.
  PeerBuffers(SharedRanges& ranges, std::span<const int> all_ranks,
              ProcessMemory* processes = nullptr, OneCopy* copies = nullptr)
      : ranges_(&ranges), all_ranks_(all_ranks), processes_(processes), copies_(copies) {}

  // Facts about the buffers that were read so far.
  struct Found {
    bool visible = true;  // true if the buffers are accessible to other ranks; equal on all ranks
    // True if some buffers lie in memory that must be attached or mapped first; equal on all ranks.
    bool attached = false;
    bool reached = true;  // true if this rank has access to all buffers
    // True if some buffers can be accessed only by copies through the kernel; equal on all ranks.
    bool copied = false;
  };

  // Begins an operation in which this rank publishes its buffers `own` for the others. The buffers
  // of all ranks then count as unknown.
  void begin(const PublishedBuffers& own) {
    own_ = own;
    searching_ = true;
    start_anew();
  }
  // Sets the buffers of all ranks in advance, as for a persistent request. all: the buffers,
  // indexed by rank. own: this rank's buffers. Returns what is known of them.
  Found know(std::span<const PublishedBuffers> all, const PublishedBuffers& own) {
    own_ = own;
    searching_ = false;
    start_anew();
    for (std::size_t rank = 0; rank < all.size(); ++rank) note(rank, all[rank]);
    return found_;
  }

  // Publishes this rank's buffers in the node's shared memory. show(), find() and agree() carry out
  // the steps with these names of a schedule.
  void show(int rank, const NodeBufferUse& turn) const {
    if (!searching_) return;
    const PublishedBuffers shown = confirmed(own_);
    std::memcpy(turn.shown_by(rank), &shown, sizeof shown);
  }
  // Reads which buffers `rank` has published. Returns whether all buffers that were read so far are
  // accessible to other ranks.
  bool find(int rank, const NodeBufferUse& turn) {
    if (!searching_) return true;
    PublishedBuffers shown;
    std::memcpy(&shown, turn.shown_by(rank), sizeof shown);
    note(static_cast<std::size_t>(rank), shown);
    return found_.visible;
  }
  // Returns whether all ranks have access to all buffers; nullopt while some rank has not answered
  // yet.
  std::optional<bool> agree(const NodeBufferUse& turn) {
    return searching_ && found_.attached ? ask_all(turn) : true;
  }
  // Notes that agree() has returned true, so that later operations need not ask again about the
  // same buffers.
  void agreed() {
    ranges_->all_have(own_.input, all_ranks_);
    ranges_->all_have(own_.result, all_ranks_);
    if (OneCopy::has_shown(own_.input) || OneCopy::has_shown(own_.result))
      copies_->all_reach(all_ranks_);
  }

  // Returns the address of the send or recv buffer of `rank`, which must be known. If is_copied()
  // is true for it, this is an address in that rank's process.
  std::byte* at(int rank, Buffer buffer) const { return place(rank, buffer).at; }
  bool is_copied(int rank, Buffer buffer) const { return place(rank, buffer).process >= 0; }
  // Returns whether some buffer can be accessed only by copies through the kernel.
  bool needs_kernel() const { return found_.copied; }
  // Copies `bytes` bytes through the kernel, from `offset` in the buffer to `here`. is_copied()
  // must be true for the buffer.
  void read(int rank, Buffer buffer, std::int64_t offset, std::byte* here,
            std::int64_t bytes) const {
    const Place& from = place(rank, buffer);
    copies_->read(from.process, from.at + offset, here, bytes);
  }

 private:
  struct Place {
    std::byte* at = nullptr;
    int process = -1;  // rank in MPI_COMM_WORLD of the owner if the kernel must copy; otherwise -1
  };
  const Place& place(int rank, Buffer buffer) const {
    return at_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
  }
  void start_anew() {
    at_.resize(all_ranks_.size());
    found_ = {};
    answered_ = false;
    attachments_.clear();
  }
  void note(std::size_t rank, const PublishedBuffers& shown) {
    at_[rank] = {locate(shown.input), locate(shown.result)};
  }
  Place locate(const ShownBuffer& shown) {
    return OneCopy::has_shown(shown) ? copied(shown) : Place{address(shown)};
  }
  std::byte* address(const ShownBuffer& shown) {
    if (shown.memory == ShownBuffer::kNotUsed) return nullptr;
    if (shown.is_of_process()) return attach(shown);
    // A rank publishes a buffer only if all others have mapped its memory or may map it now. So
    // find() returns nothing on all ranks or on none.
    const auto found = ranges_->find(shown);
    found_.visible = found_.visible && found;
    found_.attached = found_.attached || shown.pages > 0;
    found_.reached = found_.reached && !(found && !*found);
    return found.value_or(nullptr);
  }
  std::byte* attach(const ShownBuffer& shown);
  Place copied(const ShownBuffer& shown) {
    found_.copied = true;
    if (OneCopy::is_to_be_asked(shown)) {
      found_.attached = true;
      found_.reached =
          (copies_->is_own(shown) || copies_->reaches(OneCopy::owner_of(shown))) && found_.reached;
    }
    return {reinterpret_cast<std::byte*>(shown.offset),
            copies_->is_own(shown) ? -1 : OneCopy::owner_of(shown)};
  }
  std::optional<bool> ask_all(const NodeBufferUse& turn);

  SharedRanges* ranges_;
  std::span<const int> all_ranks_;
  ProcessMemory* processes_;
  // Addresses of each rank's send and recv buffer, indexed by rank; empty until first used.
  std::vector<std::array<Place, 2>> at_;
  PublishedBuffers own_;
  bool searching_ = true;
  Found found_;
  bool answered_ = false;
  // Attachments that keep the addresses in at_ valid.
  std::vector<std::shared_ptr<const Attachment>> attachments_;
  OneCopy* copies_;
};

}  // namespace weft
