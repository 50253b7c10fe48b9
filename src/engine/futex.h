// Futex: sleeps in the kernel until a word changes. Unlike std::atomic's wait() it has a time limit
// and works between processes.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace weft {

// Says whether a word is shared by processes or used by this one only.
enum class FutexOf : int { processes = 0, this_process = FUTEX_PRIVATE_FLAG };

// Sleeps until the next wake_one(), but not if the word differs from `seen`. ns: the time limit.
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

}  // namespace weft
