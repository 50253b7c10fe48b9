// NodeBuffers: memory shared by all ranks of a node, divided into buffers that operations use one
// after the other. A buffer holds one slot per rank (a counter and a few bytes of payload,
// schedule.h), then the memory that the schedule needs, then another slot per rank in which the
// rank publishes where its own buffers are. (These slots are separate, so that a schedule which
// continues after unsuccessful sharing can use the first slots while others still read the
// published places.) There are several buffers, since an operation may start on one rank while
// another rank still reads data of the previous one; so no rank waits for that unless another is
// far behind. Long operations use only the first two buffers: their memory is then more likely to
// be in a cache, which matters more.
// Each rank publishes in few slots which operations it has completed, since each write to a slot
// that others read costs a cache line transfer. For operations that complete in order the last
// number suffices. Among the others, an operation that completes while no other is in progress
// announces that all before it have completed, too; otherwise it announces only itself, in a slot
// of its buffer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "schedule/schedule.h"
#include "shm/retry_backoff.h"

namespace weft {

class NodeBuffers;

// NodeBufferUse: the use of a node buffer by one operation. A rank's counter holds, from the
// highest bits to the lowest, the number of the use, a hash of the call (fingerprint) and the
// number of signals that the rank has given. The number of the use repeats only after 2^32 - 1
// uses.
class NodeBufferUse {
 public:
  NodeBufferUse() = default;

  // Returns the address of the memory that schedules call Buffer::node; nullptr if the operation
  // needs no shared memory.
  std::byte* memory() const { return memory_; }
  NodeBuffers* node_buffers() const { return buffers_; }
  // Returns the same use of the buffer for another NodeBuffers object over the same memory, which
  // another process has made for the same rank.
  NodeBufferUse in(NodeBuffers& others) const;
  bool is_odd() const;  // returns true in every second use of this buffer

  // Sets this rank's counter to `value`. A rank that sees the value also sees all earlier writes.
  void signal(std::uint32_t value) const {
    counter_at(own_slot_).store(base_ + value, std::memory_order_release);
  }
  // The answer to whether a rank has signalled: no, yes, or no because it takes part in another
  // call (its counter has another fingerprint).
  enum class Seen : std::uint8_t { no, yes, other_call };
  // Reads the counter of `rank` until it has reached `value`, at most `polls` times, and returns
  // whether it has.
  Seen look_for(int rank, std::uint32_t value, int polls) const {
    if (polls == 0) return Seen::no;
    return is_seen(counter_of(rank), value) ? Seen::yes : look_again(rank, value, polls);
  }

  // tell() stores a word at this offset of the node buffer; is_told() returns whether the word
  // there is `word`. A signal of the rank that stores and a wait of the rank that reads must lie
  // between them.
  void tell(std::int64_t offset, std::uint32_t word) const {
    word_at(offset).store(word, std::memory_order_relaxed);
  }
  bool is_told(std::int64_t offset, std::uint32_t word) const {
    return word_at(offset).load(std::memory_order_relaxed) == word;
  }

  // Returns the slot in which the rank with this node rank publishes where its buffers are.
  std::byte* shown_by(int node_rank) const;
  // answer() publishes whether this rank can access all ranks' buffers in place. answer_of()
  // returns the answer of another rank; nothing if it has not answered yet.
  void answer(bool reaches) const;
  std::optional<bool> answer_of(int node_rank) const;
  // worth_looking() returns whether this operation should try to use other ranks' buffers in place.
  // looked() records whether that was possible. Both may be called only between may_begin() and
  // end(): then all earlier operations in the node buffer are over on all ranks, so all ranks get
  // the same answer.
  bool worth_looking() const;
  void looked(bool found) const;

  // Returns true once no rank uses the node buffer for an earlier operation.
  bool may_begin() const;
  // Writes to the spare word of the slot that this rank uses next, so that this core owns the
  // slot's cache line in time: other cores have read it, and the next operation probably begins by
  // writing there. (A prefetch for writing took longer.) Must precede end(). It pays only for
  // operations whose data fit into slots: during a longer one, waiting ranks read the line again.
  void own_next_slot() const;
  // Ends this rank's use of the node buffer. synchronizing: true if no rank completes this
  // operation before all have entered it.
  void end(bool synchronizing) const;
  // Ends this rank's use of the node buffer before the operation is complete. Ranks that wait for
  // this one see another call, and fail.
  void give_up() const {
    counter_at(own_slot_).store(base_ & ~kFingerprintMask, std::memory_order_release);
    end(false);
  }

 private:
  friend class NodeBuffers;

  static constexpr std::uint64_t kFingerprintMask = ((std::uint64_t{1} << kFingerprintBits) - 1)
                                                    << kSignalBits;

  // Returns whether a counter has reached a value. This is right even if the counter has wrapped
  // around.
  static bool is_reached(std::uint64_t value, std::uint64_t counter) {
    return static_cast<std::int64_t>(counter - value) >= 0;
  }
  std::uint64_t counter_of(int rank) const {
    return counter_at(memory_ + rank * kSlotBytes).load(std::memory_order_acquire);
  }
  Seen look_again(int rank, std::uint32_t value, int polls) const;
  bool is_seen(std::uint64_t counter, std::uint32_t value) const {
    return (counter ^ base_) >> kSignalBits == 0 && counter >= base_ + value;
  }
  std::uint32_t fingerprint() const {
    return static_cast<std::uint32_t>(base_ >> kSignalBits) & ((1u << kFingerprintBits) - 1);
  }
  RetryBackoff& backoff() const;
  std::atomic_ref<std::uint32_t> word_at(std::int64_t offset) const {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(memory_ + offset));
  }
  static std::atomic_ref<std::uint64_t> counter_at(std::byte* slot) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(slot));
  }

  NodeBuffers* buffers_ = nullptr;
  std::byte* memory_ = nullptr;
  std::byte* own_slot_ = nullptr;
  std::uint64_t base_ = 0;
  std::uint64_t number_ = 0;  // number of the operation, counted from 1
  // Number of the operation that used the node buffer before; 0 if there was none.
  std::uint64_t before_ = 0;
  std::uint32_t buffer_ = 0;
  bool in_order_ = false;
  // True if operation number `before_` completes in order (Ends::in_order).
  bool after_in_order_ = false;
};

// Says when operations on the same node buffers complete: each before the next one starts, or at
// any time.
enum class Ends : std::uint8_t {
  in_order,  // before the next one starts, as blocking calls and starts of one request do
  any_time,
};

class NodeBuffers {
 public:
  static std::int64_t bytes(int ranks, std::int64_t buffer_bytes);

  // `memory` must be page-aligned, have bytes() bytes, be zero at first, and outlive this object.
  // buffer_bytes: the size of a buffer without the slots in which ranks publish where their buffers
  // are.
  NodeBuffers(std::byte* memory, int rank, int ranks, std::int64_t buffer_bytes);
  NodeBuffers(const NodeBuffers&) = delete;
  NodeBuffers& operator=(const NodeBuffers&) = delete;

  std::byte* memory() const { return memory_; }
  // rank(), ranks() and buffer_bytes() return the arguments with which another process can
  // construct NodeBuffers over the same memory.
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::int64_t buffer_bytes() const { return buffer_bytes_ - ranks_ * kSlotBytes; }

  // taken() returns how many times this rank has begun to use a buffer. are_at_rest() returns
  // whether all ranks have completed all these uses.
  std::uint64_t taken() const { return taken_; }
  bool are_at_rest();
  // Prepares the buffers for another communicator. are_at_rest() must be true. anew: true if the
  // memory was zeroed.
  void begin_again(bool anew);

  // Assigns a buffer to the next operation. All ranks must assign buffers in the same order.
  // schedule: that of the operation; if it has two, the one that is tried first.
  NodeBufferUse next(Ends ends, const Schedule& schedule) {
    NodeBufferUse turn;
    next(ends, schedule, &turn);
    return turn;
  }
  // Assigns a buffer to the next operation and constructs the result at `turn`. (A copy of the
  // result would have to wait until the stores have reached the cache.)
  void next(Ends ends, const Schedule& schedule, NodeBufferUse* turn);

 private:
  friend class NodeBufferUse;
  using Counter = std::atomic_ref<std::uint64_t>;
  static constexpr std::int64_t kOverOffset = 8;
  // kCount: the number of buffers. kCountOfLong: how many of them long operations use. Both are
  // powers of two, so that the buffer of an operation is computed by a mask.
  static constexpr unsigned kCount = 4, kCountOfLong = 2;

  // The state of a node buffer. All ranks have equal values.
  struct View {
    std::byte* memory = nullptr;
    std::uint64_t uses = 0;
    std::uint64_t last = 0;  // number of the last operation that used the buffer
    bool last_in_order = true;
  };

  // Last completed operation of `rank` among those that complete in order.
  Counter passed(int rank) const;
  // Counters for operations that complete at any time. over(): the rank has completed all
  // operations up to this number. released(): number of the last operation in this buffer that the
  // rank has completed and that announced only itself.
  Counter over(int rank) const;
  Counter released(std::uint32_t buffer, int rank) const;
  bool all_have_passed(std::uint64_t number) {
    return all_passed_.load(std::memory_order_acquire) >= number || look_who_passed(number);
  }
  bool look_who_passed(std::uint64_t number);
  // Returns whether all ranks have completed operation `number`, the last one in its node buffer.
  // It is an operation that may complete at any time.
  bool all_have_ended(std::uint32_t buffer, std::uint64_t number) {
    return all_over_.load(std::memory_order_acquire) >= number || look_who_ended(buffer, number);
  }
  bool look_who_ended(std::uint32_t buffer, std::uint64_t number);
  void end_at_any_time(std::uint32_t buffer, std::uint64_t number);

  // The shared memory: first the numbers of completed operations of each rank, then the node
  // buffers.
  std::byte* const memory_;
  const int rank_;
  const int ranks_;
  const std::int64_t buffer_bytes_;  // bytes of one buffer, including all its slots
  std::uint64_t taken_ = 0;
  // These count the operations of kind Ends::any_time that this process has begun, and those that
  // it has completed. If both are equal, none is in progress, and an operation that completes may
  // announce all earlier ones with it. Operations that a core agent completes are not counted as
  // completed. From then on each operation announces only its own completion.
  std::atomic<std::uint32_t> taken_at_any_time_{0}, ended_at_any_time_{0};
  std::array<View, kCount> views_{};
  // State of worth_looking() for each buffer; allocated when it is first needed.
  std::array<std::unique_ptr<RetryBackoff>, kCount> backoffs_;
  // All ranks have completed all operations up to this number: all_passed_ counts those that
  // complete in order, all_over_ those that complete at any time. Both are stored after reading the
  // ranks' counters (release), and loaded before relying on them (acquire).
  std::atomic<std::uint64_t> all_passed_{0}, all_over_{0};
};

inline void NodeBuffers::next(Ends ends, const Schedule& schedule, NodeBufferUse* turn) {
  turn->number_ = ++taken_;
  turn->buffer_ =
      static_cast<std::uint32_t>(turn->number_ & ((schedule.is_long ? kCountOfLong : kCount) - 1));
  View& buffer = views_[turn->buffer_];
  turn->buffers_ = this;
  turn->memory_ = buffer.memory;
  turn->own_slot_ = turn->memory_ + rank_ * kSlotBytes;
  turn->base_ = ++buffer.uses << (kSignalBits + kFingerprintBits) |
                std::uint64_t{schedule.fingerprint} << kSignalBits;
  turn->in_order_ = ends == Ends::in_order;
  turn->before_ = buffer.last;
  turn->after_in_order_ = buffer.last_in_order;
  buffer.last = turn->number_;
  buffer.last_in_order = turn->in_order_;
  if (turn->in_order_) return;
  const std::uint32_t before = taken_at_any_time_.load(std::memory_order_relaxed);
  taken_at_any_time_.store(before + 1, std::memory_order_relaxed);
}

inline NodeBuffers::Counter NodeBuffers::passed(int rank) const {
  return NodeBufferUse::counter_at(memory_ + rank * kSlotBytes);
}

inline NodeBuffers::Counter NodeBuffers::over(int rank) const {
  return NodeBufferUse::counter_at(memory_ + rank * kSlotBytes + kOverOffset);
}

inline NodeBuffers::Counter NodeBuffers::released(std::uint32_t buffer, int rank) const {
  const auto slot = static_cast<std::int64_t>(buffer + 1) * ranks_ + rank;
  return NodeBufferUse::counter_at(memory_ + slot * kSlotBytes);
}

// Publishes that this rank has completed an operation of those that complete at any time. If no
// other one is in progress here, it announces that all up to this number have completed; otherwise
// only this one. ended_at_any_time_ is read before taken_at_any_time_ and raised after each
// announcement, so an operation that finds no other in progress has seen all announcements.
inline void NodeBuffers::end_at_any_time(std::uint32_t buffer, std::uint64_t number) {
  const std::uint32_t ended = ended_at_any_time_.load(std::memory_order_acquire);
  const bool alone = taken_at_any_time_.load(std::memory_order_relaxed) - ended == 1;
  (alone ? over(rank_) : released(buffer, rank_)).store(number, std::memory_order_release);
  ended_at_any_time_.fetch_add(1, std::memory_order_acq_rel);
}

inline NodeBufferUse NodeBufferUse::in(NodeBuffers& others) const {
  NodeBufferUse turn = *this;
  turn.buffers_ = &others;
  turn.memory_ = others.views_[buffer_].memory;
  turn.own_slot_ = turn.memory_ + others.rank_ * kSlotBytes;
  return turn;
}

inline std::byte* NodeBufferUse::shown_by(int node_rank) const {
  return memory_ + buffers_->buffer_bytes_ - (buffers_->ranks_ - node_rank) * kSlotBytes;
}

// Publishes this rank's answer. It has the form of a counter with the number of this use, so that
// an answer from an earlier use of the buffer is not mistaken for it.
inline void NodeBufferUse::answer(bool reaches) const {
  counter_at(shown_by(buffers_->rank_) + kAnswerOffset)
      .store(base_ + (reaches ? 1 : 2), std::memory_order_release);
}

inline std::optional<bool> NodeBufferUse::answer_of(int node_rank) const {
  const std::uint64_t answer =
      counter_at(shown_by(node_rank) + kAnswerOffset).load(std::memory_order_acquire);
  if (answer >> kSignalBits != base_ >> kSignalBits) return std::nullopt;
  return answer == base_ + 1;
}

inline RetryBackoff& NodeBufferUse::backoff() const {
  auto& backoff = buffers_->backoffs_[buffer_];
  if (!backoff) [[unlikely]]
    backoff = std::make_unique<RetryBackoff>();
  return *backoff;
}

inline bool NodeBufferUse::is_odd() const {
  return (base_ >> (kSignalBits + kFingerprintBits)) % 2 != 0;
}

inline bool NodeBufferUse::worth_looking() const {
  return backoff().worth_trying(fingerprint());
}

inline void NodeBufferUse::looked(bool found) const {
  backoff().tried(fingerprint(), found);
}

inline bool NodeBufferUse::may_begin() const {
  if (before_ == 0) return true;
  return after_in_order_ ? buffers_->all_have_passed(before_)
                         : buffers_->all_have_ended(buffer_, before_);
}

inline void NodeBufferUse::own_next_slot() const {
  const NodeBuffers& all = *buffers_;
  std::byte* const buffer = all.views_[(number_ + 1) % NodeBuffers::kCount].memory;
  counter_at(buffer + all.rank_ * kSlotBytes + kSpareOffset)
      .store(number_, std::memory_order_relaxed);
}

inline void NodeBufferUse::end(bool synchronizing) const {
  NodeBuffers& all = *buffers_;
  if (!in_order_) return all.end_at_any_time(buffer_, number_);
  all.passed(all.rank_).store(number_, std::memory_order_release);
  // In a synchronizing operation all ranks have entered this one, so all have completed the ones
  // before it.
  if (synchronizing) all.all_passed_.store(number_ - 1, std::memory_order_release);
}

}  // namespace weft
