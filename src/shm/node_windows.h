// NodeWindows: a piece of memory that all ranks of a node share, divided into windows that
// operations use in turn. A window holds one line per rank (a counter and a few bytes of payload,
// schedule.h), then what the schedule asked for, then a place for each rank to tell where its
// buffers lie (a line more, so that a schedule that goes on after a meeting in vain may use its own
// lines while others still read what was shown).
// Why in turn: an operation may begin on one rank while the one before still reads on another. With
// several windows nobody waits for that, as long as no rank runs far ahead. Long ones keep to the
// first two: what these hold is more likely to be in a cache, and that counts for more.
// What each rank has ended it says in few lines, since a line that others read costs whoever writes
// it next a way to their caches. Operations in order are told by the last one. Of the others, one
// that ends while no other is under way tells that all before it are over, too; else it says so in
// a line of its window's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "schedule/schedule.h"
#include "shm/habits.h"

namespace weft {

class NodeWindows;

// One operation's use of a window. A counter holds the number of the use, the fingerprint of the
// call and the signals given, from the highest bits to the lowest: no use begins at zero again, but
// for the one after 2^32 - 1 others.
class NodeTurn {
 public:
  NodeTurn() = default;

  std::byte* memory() const { return memory_; }  // Buffer::node; nullptr: no turn
  NodeWindows* windows() const { return windows_; }
  // The same turn, by windows over the same memory and of the same rank that another process has.
  NodeTurn in(NodeWindows& others) const;
  bool is_odd() const;  // every other use of that memory

  // The counter of this rank becomes `value`; whoever sees that sees what was written before.
  void signal(std::uint32_t value) const {
    counter_at(own_line_).store(base_ + value, std::memory_order_release);
  }
  // other_call: that rank takes part in a call with another fingerprint.
  enum class Seen : std::uint8_t { no, yes, other_call };
  // polls: how often to look at most.
  Seen look_for(int rank, std::uint32_t value, int polls) const {
    if (polls == 0) return Seen::no;
    return is_seen(counter_of(rank), value) ? Seen::yes : look_again(rank, value, polls);
  }

  // What the ranks of this node show, by place.
  std::byte* shown_by(int place) const;
  // Whether this rank reaches all of it, and what the others say of themselves; nothing yet: empty.
  void answer(bool reaches) const;
  std::optional<bool> answer_of(int place) const;
  // Whether to look for shared buffers in this operation, and what became of it. Between
  // may_begin() and end() only: what has happened in a window before is then over on all ranks, so
  // that all come to the same.
  bool worth_looking() const;
  void looked(bool found) const;

  // True once no rank uses the window for an earlier operation any more.
  bool may_begin() const;
  // Before end(). The next operation most likely begins by writing this rank's line, which other
  // cores have read: so this core writes there now, in the spare word, and owns it by then. (A
  // prefetch for writing took longer.) For operations in lines only: where more is to be done
  // before that, those that wait take the line back.
  void own_next_line() const;
  // This rank reads and writes there no more. synchronizing: no rank ends before all have begun.
  void end(bool synchronizing) const;

 private:
  friend class NodeWindows;

  // Also when the counter has begun at zero again.
  static bool is_reached(std::uint64_t value, std::uint64_t counter) {
    return static_cast<std::int64_t>(counter - value) >= 0;
  }
  std::uint64_t counter_of(int rank) const {
    return counter_at(memory_ + rank * kLineBytes).load(std::memory_order_acquire);
  }
  Seen look_again(int rank, std::uint32_t value, int polls) const;
  bool is_seen(std::uint64_t counter, std::uint32_t value) const {
    return (counter ^ base_) >> kSignalBits == 0 && counter >= base_ + value;
  }
  std::uint32_t fingerprint() const {
    return static_cast<std::uint32_t>(base_ >> kSignalBits) & ((1u << kFingerprintBits) - 1);
  }
  Habits& habits() const;
  static std::atomic_ref<std::uint64_t> counter_at(std::byte* line) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line));
  }

  NodeWindows* windows_ = nullptr;
  std::byte* memory_ = nullptr;
  std::byte* own_line_ = nullptr;
  std::uint64_t base_ = 0;
  std::uint64_t number_ = 0;  // of the operation, from 1 on
  std::uint64_t before_ = 0;  // of the one that used the window before; 0: none
  std::uint32_t window_ = 0;
  bool in_order_ = false;
  bool after_in_order_ = false;  // so was the one before
};

// How an operation ends with respect to others on the same windows.
enum class Ends : std::uint8_t {
  in_order,  // on each rank before the next one begins: blocking calls, starts of one request
  any_time,
};

class NodeWindows {
 public:
  static std::int64_t bytes(int ranks, std::int64_t window_bytes);

  // `memory` is page-aligned, of bytes(), zero at first, and outlives this. window_bytes: of the
  // lines and what follows them.
  NodeWindows(std::byte* memory, int rank, int ranks, std::int64_t window_bytes);
  NodeWindows(const NodeWindows&) = delete;
  NodeWindows& operator=(const NodeWindows&) = delete;

  std::byte* memory() const { return memory_; }
  // What others over the same memory are made with.
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::int64_t window_bytes() const { return window_bytes_ - ranks_ * kLineBytes; }

  // How many turns this rank has taken; and whether all ranks have ended all that it has.
  std::uint64_t taken() const { return taken_; }
  bool are_at_rest();
  // For others than before, when they are at rest. anew: the memory is zero again.
  void begin_again(bool anew);

  // The turn of the next operation; all ranks take the same turns in the same order. `schedule`: or
  // what is tried first.
  NodeTurn next(Ends ends, const Schedule& schedule) {
    NodeTurn turn;
    next(ends, schedule, &turn);
    return turn;
  }
  // Where it is to be: a copy would have to wait until what was written has reached the cache.
  void next(Ends ends, const Schedule& schedule, NodeTurn* turn);

 private:
  friend class NodeTurn;
  using Counter = std::atomic_ref<std::uint64_t>;
  static constexpr std::int64_t kOverOffset = 8;
  static constexpr unsigned kWindows = 4, kOfLong = 2;  // powers of two: turns are cheap to tell

  // What one rank knows of a window; the others know the same.
  struct Window {
    std::byte* memory = nullptr;
    std::uint64_t uses = 0;
    std::uint64_t last = 0;  // the number of the operation that used it last
    bool last_in_order = true;
  };

  Counter passed(int rank) const;  // the last operation in order that the rank has ended
  // Of the others, one up to which it has ended all; and the last one there that says so itself.
  Counter over(int rank) const;
  Counter released(std::uint32_t window, int rank) const;
  bool all_have_passed(std::uint64_t number) {
    return all_passed_.load(std::memory_order_acquire) >= number || look_who_passed(number);
  }
  bool look_who_passed(std::uint64_t number);
  // The same of one that ends at any time, the last one in its window.
  bool all_have_ended(std::uint32_t window, std::uint64_t number) {
    return all_over_.load(std::memory_order_acquire) >= number || look_who_ended(window, number);
  }
  bool look_who_ended(std::uint32_t window, std::uint64_t number);
  void end_at_any_time(std::uint32_t window, std::uint64_t number);

  std::byte* const memory_;  // begins with what each rank has ended; the windows lie behind that
  const int rank_;
  const int ranks_;
  const std::int64_t window_bytes_;  // what is shown included
  std::uint64_t taken_ = 0;
  // Of these, the turns that end at any time, and how many of them have ended here. (An agent ends
  // them by windows of its own, which have taken none; then each later one speaks for itself.)
  std::atomic<std::uint32_t> taken_at_any_time_{0}, ended_at_any_time_{0};
  std::array<Window, kWindows> state_{};
  std::array<std::unique_ptr<Habits>, kWindows> habits_;  // made where buffers are looked for
  // All have ended those in order up to this one. Written by whoever looked at the ranks' counters
  // (release), read by who relies on it (acquire). The same of those that end at any time.
  std::atomic<std::uint64_t> all_passed_{0}, all_over_{0};
};

inline void NodeWindows::next(Ends ends, const Schedule& schedule, NodeTurn* turn) {
  turn->number_ = ++taken_;
  turn->window_ =
      static_cast<std::uint32_t>(turn->number_ & ((schedule.is_long ? kOfLong : kWindows) - 1));
  Window& window = state_[turn->window_];
  turn->windows_ = this;
  turn->memory_ = window.memory;
  turn->own_line_ = turn->memory_ + rank_ * kLineBytes;
  turn->base_ = ++window.uses << (kSignalBits + kFingerprintBits) |
                std::uint64_t{schedule.fingerprint} << kSignalBits;
  turn->in_order_ = ends == Ends::in_order;
  turn->before_ = window.last;
  turn->after_in_order_ = window.last_in_order;
  window.last = turn->number_;
  window.last_in_order = turn->in_order_;
  if (turn->in_order_) return;
  const std::uint32_t before = taken_at_any_time_.load(std::memory_order_relaxed);
  taken_at_any_time_.store(before + 1, std::memory_order_relaxed);
}

inline NodeWindows::Counter NodeWindows::passed(int rank) const {
  return NodeTurn::counter_at(memory_ + rank * kLineBytes);
}

inline NodeWindows::Counter NodeWindows::over(int rank) const {
  return NodeTurn::counter_at(memory_ + rank * kLineBytes + kOverOffset);
}

inline NodeWindows::Counter NodeWindows::released(std::uint32_t window, int rank) const {
  const auto line = static_cast<std::int64_t>(window + 1) * ranks_ + rank;
  return NodeTurn::counter_at(memory_ + line * kLineBytes);
}

// It counts as ended once it has been told: whoever finds no other one under way has seen all that
// they told, and tells more. How many have been taken is looked at after that, and so includes all
// that have ended.
inline void NodeWindows::end_at_any_time(std::uint32_t window, std::uint64_t number) {
  const std::uint32_t ended = ended_at_any_time_.load(std::memory_order_acquire);
  const bool alone = taken_at_any_time_.load(std::memory_order_relaxed) - ended == 1;
  (alone ? over(rank_) : released(window, rank_)).store(number, std::memory_order_release);
  ended_at_any_time_.fetch_add(1, std::memory_order_acq_rel);
}

inline NodeTurn NodeTurn::in(NodeWindows& others) const {
  NodeTurn turn = *this;
  turn.windows_ = &others;
  turn.memory_ = others.state_[window_].memory;
  turn.own_line_ = turn.memory_ + others.rank_ * kLineBytes;
  return turn;
}

inline std::byte* NodeTurn::shown_by(int place) const {
  return memory_ + windows_->window_bytes_ - (windows_->ranks_ - place) * kLineBytes;
}

// As a counter, so that no answer given in another use of the window is taken for one.
inline void NodeTurn::answer(bool reaches) const {
  counter_at(shown_by(windows_->rank_) + kAnswerOffset)
      .store(base_ + (reaches ? 1 : 2), std::memory_order_release);
}

inline std::optional<bool> NodeTurn::answer_of(int place) const {
  const std::uint64_t answer =
      counter_at(shown_by(place) + kAnswerOffset).load(std::memory_order_acquire);
  if (answer >> kSignalBits != base_ >> kSignalBits) return std::nullopt;
  return answer == base_ + 1;
}

inline Habits& NodeTurn::habits() const {
  auto& habits = windows_->habits_[window_];
  if (!habits) [[unlikely]]
    habits = std::make_unique<Habits>();
  return *habits;
}

inline bool NodeTurn::is_odd() const {
  return (base_ >> (kSignalBits + kFingerprintBits)) % 2 != 0;
}

inline bool NodeTurn::worth_looking() const {
  return habits().worth_trying(fingerprint());
}

inline void NodeTurn::looked(bool found) const {
  habits().tried(fingerprint(), found);
}

inline bool NodeTurn::may_begin() const {
  if (before_ == 0) return true;
  return after_in_order_ ? windows_->all_have_passed(before_)
                         : windows_->all_have_ended(window_, before_);
}

inline void NodeTurn::own_next_line() const {
  const NodeWindows& all = *windows_;
  std::byte* const window = all.state_[(number_ + 1) % NodeWindows::kWindows].memory;
  counter_at(window + all.rank_ * kLineBytes + kSpareOffset)
      .store(number_, std::memory_order_relaxed);
}

inline void NodeTurn::end(bool synchronizing) const {
  NodeWindows& all = *windows_;
  if (!in_order_) return all.end_at_any_time(window_, number_);
  all.passed(all.rank_).store(number_, std::memory_order_release);
  // All have begun this one, so all have ended those before it.
  if (synchronizing) all.all_passed_.store(number_ - 1, std::memory_order_release);
}

}  // namespace weft
