// Observer: receives what executors report about their threads' time (the trace listens).
#pragma once

#include <cstdint>

namespace weft {

enum class Activity : std::uint8_t { working, polling, asleep };

class Observer {
 public:
  virtual ~Observer() = default;
  // Called at the start of a new thread of Weft's, before its first work. `index` counts the
  // threads of this process from 0.
  virtual void thread_started(const char* name, int index) = 0;
  // Places the calling thread of Weft's on this core, whatever holds for others.
  virtual void moves_to(int) {}
  // Gives the MPI library time to progress its own messages: a caller waits for other ranks without
  // calling it, and these may not come before their messages are there; or the application has
  // transfers under way.
  virtual void keep_library_going() {}
  // Reports that the agent of this core has ended while it carried out an operation of this
  // process's, which nobody can complete.
  virtual void agent_has_ended() {}
  // Records the activity that the calling thread of Weft's begins now.
  virtual void activity(Activity what) = 0;
};

}  // namespace weft
