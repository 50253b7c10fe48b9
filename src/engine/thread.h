// Starting a thread of Weft's: no signal is delivered to it but those that its own instructions
// raise, and running out of threads is a value, not an exception.
#pragma once

#include <functional>
#include <thread>

#include "base/result.h"

namespace weft {

// An error where the system refuses (RLIMIT_NPROC, memory): its words.
Result<bool> start_thread(std::thread& thread, std::function<void()> main);

}  // namespace weft
