// AgreedLength: about how long the calls are whose size no rank knows, such as an alltoallv. Each
// rank knows its own part of such a call only. Now and then the ranks of a node tell each other, in
// the memory that they share, how long their parts of some calls in a row were. The length class of
// the longest part is then in force on all ranks from the same call on, until they have agreed
// again. So the answer depends on earlier calls only, and no rank waits for it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

// Comparisons: the type of the exchanges between ranks (NodeComparisons<1>,
// shm/node_comparisons.h).
template <class Comparisons>
class AgreedLength {
 public:
  // The number of length classes, and the most binary digits of a length in bytes of each class.
  static constexpr std::size_t kClasses = 3;
  static constexpr std::array<int, kClasses> kDigits = {13, 18, 31};

  // After so many calls of another length, that length is in force, unless a rank lags behind.
  static constexpr std::uint64_t kNoticesAfter = 80;

  explicit AgreedLength(const Comparisons& comparisons) : comparisons_(comparisons) {}

  // Returns the length class of this rank's part of a call.
  static int class_of(std::int64_t bytes) {
    int length = 0;
    while (length + 1 < static_cast<int>(kClasses) &&
           bytes >= std::int64_t{1} << kDigits[static_cast<std::size_t>(length)])
      ++length;
    return length;
  }

  // Returns the length class of the current call, which next() has counted. All ranks get the same.
  int in_force() const { return in_force_; }
  // Returns whether next() must be told the length of the next call.
  bool needs_length() const { return calls_ >= looks_from_; }
  // Counts a call. own: the length class of this rank's part; it does not matter unless
  // needs_length(). Returns whether another length class is in force from this call on.
  bool next(int own) {
    if (!needs_length()) {
      ++calls_;
      return false;
    }
    return next_of_window(own);
  }

 private:
  // Number of calls in a row of which the longest counts. Calls of several lengths that take turns
  // have the class of the longest.
  static constexpr std::uint64_t kWindow = 8;
  // Number of calls without a look between two windows, by the length class in force.
  static constexpr std::array<std::uint64_t, kClasses> kBetween = {64, 8, 0};
  static_assert(kBetween[0] + 2 * kWindow <= kNoticesAfter);
  // The most calls until the ranks look again for an answer that some rank has delayed.
  static constexpr std::uint64_t kMostDelay = 64;

  bool next_of_window(int own) {
    longest_ = std::max<std::int64_t>(longest_, own);
    return calls_++ == acts_at_ && act();
  }

  bool act() {
    if (!is_told_) {
      comparisons_.publish({longest_});
      is_told_ = true;
      look_after(delay_ = 1);
      return false;
    }
    const auto agreed = comparisons_.look();
    if (!agreed) {
      look_after(delay_ = std::min(2 * delay_, kMostDelay));
      return false;
    }
    const int before = in_force_;
    in_force_ = static_cast<int>((*agreed)[0]);
    is_told_ = false;
    longest_ = 0;
    looks_from_ = calls_ + kBetween[static_cast<std::size_t>(in_force_)];
    acts_at_ = looks_from_ + kWindow - 1;
    return in_force_ != before;
  }

  // Lets the ranks look for the answer at the call after the next `delay` - 1 calls.
  void look_after(std::uint64_t delay) { looks_from_ = acts_at_ = calls_ + delay - 1; }

  Comparisons comparisons_;
  int in_force_ = 0;
  std::int64_t longest_ = 0;      // length class of the longest call in the window so far
  std::uint64_t calls_ = 0;       // number of calls so far
  std::uint64_t looks_from_ = 0;  // number of the first call of the window, or of the next look
  std::uint64_t acts_at_ = 0;     // number of the call at which the ranks tell, or look
  bool is_told_ = false;          // the ranks have told, and not agreed yet
  std::uint64_t delay_ = 1;       // number of calls from the last look to the next one
};

}  // namespace weft
