// NodeWindows: a piece of memory that all ranks of a node share, divided into windows that
// operations use in turn. A window holds one line per rank (a counter and a few bytes of payload,
// schedule.h), then what the schedule asked for, then a place for each rank to tell where its
// buffers lie (a line more, so that a schedule that goes on after a meeting in vain may use its own
// lines while others still read what was shown).
// Why in turn: an operation may begin on one rank while the one before still reads on another. With
// several windows nobody waits for that, as long as no rank runs far ahead.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "schedule/schedule.h"
#include "shm/habits.h"

namespace weft {

class NodeWindows;

// One operation's use of a window. A counter holds the number of the use, the fingerprint of the
// call and the signals given, from the highest bits to the lowest: no use begins at zero again.
class NodeTurn {
 public:
  NodeTurn() = default;

  std::byte* memory() const { return memory_; }  // Buffer::node; nullptr: no turn
  bool is_odd() const;                           // every other use of that memory

  // The counter of this rank becomes `value`; whoever sees that sees what was written before.
  void signal(std::uint32_t value) const {
    counter_at(own_line_).store(base_ + value, std::memory_order_release);
  }
  // other_call: that rank takes part in a call with another fingerprint.
  enum class Seen : std::uint8_t { no, yes, other_call };
  // polls: how often to look at most.
  Seen look_for(int rank, std::uint32_t value, int polls) const {
    for (;;) {
      const std::uint64_t counter =
          counter_at(memory_ + rank * kLineBytes).load(std::memory_order_acquire);
      const bool this_call = counter >> kSignalBits == base_ >> kSignalBits;
      if (this_call && counter >= base_ + value) return Seen::yes;
      const Seen seen = this_call ? Seen::no : look_closer(counter);
      if (seen != Seen::no || --polls <= 0) return seen;
      pause();
    }
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
  // This rank reads and writes there no more. synchronizing: no rank ends before all have begun.
  void end(bool synchronizing) const;

 private:
  friend class NodeWindows;

  Seen look_closer(std::uint64_t counter) const;
  // Without one, a waiting core takes the line back and forth: five times as long to see a signal.
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
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
  std::uint64_t number_ = 0;
  bool in_order_ = false;
  bool after_in_order_ = false;  // what used the window before was in order
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

  // The turn of the next operation; all ranks take the same turns in the same order.
  NodeTurn next(Ends ends, std::uint32_t fingerprint);

 private:
  friend class NodeTurn;
  using Counter = std::atomic_ref<std::uint64_t>;
  static constexpr unsigned kWindows = 4;  // a power of two: turns are cheap to tell

  Counter passed(int rank) const;  // in-order operations that the rank has ended
  Counter released(std::uint64_t number, int rank) const;  // turns of this window, of the others
  bool all_have_passed(std::uint64_t number);
  bool all_have_released(std::uint64_t number) const;

  std::byte* const memory_;   // begins with what each rank has ended
  std::byte* const windows_;  // behind that
  const int rank_;
  const int ranks_;
  const std::int64_t window_bytes_;  // what is shown included
  std::uint64_t taken_ = 0;
  std::array<bool, kWindows> last_in_order_{};
  std::array<Habits, kWindows> habits_{};  // the turns' of each window, one after the other
  // Written by whoever looked at the ranks' counters (release), read by who relies on it (acquire).
  std::atomic<std::uint64_t> all_passed_{0};
};

inline NodeTurn NodeWindows::next(Ends ends, std::uint32_t fingerprint) {
  const std::uint64_t number = taken_++;
  const auto window = static_cast<std::int64_t>(number % kWindows);
  NodeTurn turn;
  turn.windows_ = this;
  turn.memory_ = windows_ + window * window_bytes_;
  turn.own_line_ = turn.memory_ + rank_ * kLineBytes;
  const std::uint64_t use = number / kWindows + 1;  // 0: what is in fresh memory
  turn.base_ = use << (kSignalBits + kFingerprintBits) | std::uint64_t{fingerprint} << kSignalBits;
  turn.number_ = number;
  turn.in_order_ = ends == Ends::in_order;
  turn.after_in_order_ = last_in_order_[static_cast<std::size_t>(window)];
  last_in_order_[static_cast<std::size_t>(window)] = turn.in_order_;
  return turn;
}

inline NodeWindows::Counter NodeWindows::passed(int rank) const {
  return NodeTurn::counter_at(memory_ + rank * kLineBytes);
}

inline NodeWindows::Counter NodeWindows::released(std::uint64_t number, int rank) const {
  const auto line = static_cast<std::int64_t>(number % kWindows + 1) * ranks_ + rank;
  return NodeTurn::counter_at(memory_ + line * kLineBytes);
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
  return windows_->habits_[number_ % NodeWindows::kWindows];
}

inline bool NodeTurn::is_odd() const {
  return number_ / NodeWindows::kWindows % 2 != 0;
}

inline bool NodeTurn::worth_looking() const {
  return habits().worth_trying(fingerprint());
}

inline void NodeTurn::looked(bool found) const {
  habits().tried(fingerprint(), found);
}

inline bool NodeTurn::may_begin() const {
  constexpr unsigned kWindows = NodeWindows::kWindows;
  if (number_ < kWindows) return true;
  const std::uint64_t before = number_ - kWindows;
  return after_in_order_ ? windows_->all_have_passed(before) : windows_->all_have_released(before);
}

inline void NodeTurn::end(bool synchronizing) const {
  NodeWindows& all = *windows_;
  if (!in_order_) {
    all.released(number_, all.rank_)
        .store(number_ / NodeWindows::kWindows + 1, std::memory_order_release);
    return;
  }
  all.passed(all.rank_).store(number_ + 1, std::memory_order_release);
  // All have begun this one, so all have ended those before it.
  if (synchronizing) all.all_passed_.store(number_, std::memory_order_release);
}

}  // namespace weft
