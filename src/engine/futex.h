// Functions that sleep in the kernel until a word changes. Unlike std::atomic's wait() they have a
// time limit and work between processes.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace weft {

// Says whether several processes use the word or only this one.
enum class FutexOf : int { processes = 0, this_process = FUTEX_PRIVATE_FLAG };

// Sleeps until wake_one() or wake_all() is called for the word, or for `ns` nanoseconds at most if
// that is given. Returns at once if the word differs from `seen`.
inline void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, FutexOf of) {
  syscall(SYS_futex, &word, FUTEX_WAIT | static_cast<int>(of), seen, nullptr, nullptr, 0);
}
inline void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, FutexOf of,
                     std::int64_t ns) {
  const timespec at_most{ns / 1'000'000'000, ns % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT | static_cast<int>(of), seen, &at_most, nullptr, 0);
}
inline void wake_one(std::atomic<std::uint32_t>& word, FutexOf of) {
  syscall(SYS_futex, &word, FUTEX_WAKE | static_cast<int>(of), 1, nullptr, nullptr, 0);
}
inline void wake_all(std::atomic<std::uint32_t>& word, FutexOf of) {
  syscall(SYS_futex, &word, FUTEX_WAKE | static_cast<int>(of), INT_MAX, nullptr, nullptr, 0);
}

}  // namespace weft
