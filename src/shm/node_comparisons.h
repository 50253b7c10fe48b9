// NodeComparisons: lets the ranks of one node exchange numbers, so that each gets the maximum of
// each number, without waiting. Ranks look for the result at certain calls of the program, which
// are the same on all ranks. The first rank to look decides for all: either all have written their
// numbers and the result holds, or all ranks look again at the next of these calls. So a late rank
// gets the same answer. Two areas of memory are used alternately, which suffices however far ranks
// drift apart: a rank begins a comparison only when it knows the result of the previous one. Once
// all have written in one area, no rank reads the other any more, and the last rank to write clears
// that one for the next comparison. The class is independent of MPI and of the kind of memory, so
// that a test can run it in all orders of accesses.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace weft {

// Words of 64 bits in memory that the ranks share. They must be zero at first.
class SharedWords {
 public:
  explicit SharedWords(std::byte* memory) : words_(reinterpret_cast<std::int64_t*>(memory)) {}

  std::int64_t get(std::size_t word) const { return at(word).load(std::memory_order_acquire); }
  void set(std::size_t word, std::int64_t value) const {
    at(word).store(value, std::memory_order_release);
  }
  // Adds 1 to the word, and returns its previous value.
  std::int64_t add_one(std::size_t word) const {
    return at(word).fetch_add(1, std::memory_order_acq_rel);
  }
  // Sets the word to `value` if it still has the expected value.
  void change(std::size_t word, std::int64_t expected, std::int64_t value) const {
    at(word).compare_exchange_strong(expected, value, std::memory_order_acq_rel);
  }

 private:
  std::atomic_ref<std::int64_t> at(std::size_t word) const { return std::atomic_ref(words_[word]); }

  std::int64_t* words_;
};

// NodeComparisons: this rank's part in exchanges of kNumbers non-negative numbers.
template <std::size_t kNumbers, class Shared = SharedWords>
class NodeComparisons {
 public:
  using Numbers = std::array<std::int64_t, kNumbers>;

  // The words in each of the two areas of shared memory. The exchanged numbers follow them.
  enum Word : std::size_t {
    kTold,      // number of ranks that have written their numbers
    kComplete,  // 1 if all ranks have written and the other area is cleared, otherwise 0
    kOutcome,   // what the ranks have decided so far, encoded by state_after()
    kFirstNumber,
    kWordsOfPlace = kFirstNumber + kNumbers
  };
  static constexpr std::size_t kWords = 2 * kWordsOfPlace;

  NodeComparisons(Shared shared, int ranks) : shared_(shared), ranks_(ranks) {}

  // Begins the next comparison: writes this rank's numbers. The previous comparison must have
  // ended.
  void publish(const Numbers& own) {
    ++number_;
    looks_ = 0;
    for (std::size_t i = 0; i < kNumbers; ++i) raise(word(kFirstNumber + i), own[i]);
    if (shared_.add_one(word(kTold)) + 1 < ranks_) return;
    for (std::size_t i = 0; i < kWordsOfPlace; ++i) shared_.set(word_of(number_ + 1, i), 0);
    shared_.set(word(kComplete), 1);
  }

  // Returns the maximum of each number if all ranks have written theirs, which ends the comparison;
  // otherwise nothing, and the ranks must look again later. The nth call since publish() returns
  // the same on all ranks.
  std::optional<Numbers> look() {
    const bool is_complete = shared_.get(word(kComplete)) != 0;
    const std::int64_t before = state_after(looks_, false);
    ++looks_;
    shared_.change(word(kOutcome), before, state_after(looks_, is_complete));
    if (shared_.get(word(kOutcome)) != state_after(looks_, true)) return std::nullopt;
    Numbers greatest;
    for (std::size_t i = 0; i < kNumbers; ++i) greatest[i] = shared_.get(word(kFirstNumber + i));
    return greatest;
  }

  // Returns the index of a word in comparison `number`. Tests use it, too.
  static std::size_t word_of(std::int64_t number, std::size_t word) {
    return static_cast<std::size_t>(number % 2) * kWordsOfPlace + word;
  }

 private:
  // Returns the encoding of how often the ranks have looked, and whether the last look ended the
  // comparison.
  static std::int64_t state_after(std::int64_t looks, bool is_over) {
    return 2 * looks + (is_over ? 1 : 0);
  }

  std::size_t word(std::size_t which) const { return word_of(number_, which); }

  void raise(std::size_t word, std::int64_t value) const {
    for (std::int64_t seen = shared_.get(word); seen < value; seen = shared_.get(word))
      shared_.change(word, seen, value);
  }

  Shared shared_;
  int ranks_;
  std::int64_t number_ = 0;  // number of the current comparison
  // How often this rank has looked for the result of the current comparison.
  std::int64_t looks_ = 0;
};

}  // namespace weft
