// Starting a thread of Weft's: no signal is ever delivered to it, and running out of threads is a
// value, not an exception.
#pragma once

#include <functional>
#include <thread>

namespace weft {

// False: the system refused (RLIMIT_NPROC, memory); a sentence has been said.
bool start_thread(std::thread& thread, std::function<void()> main);

}  // namespace weft
