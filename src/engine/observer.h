// Observer: what executors tell about how threads spend time (the trace listens).
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
  // The calling thread of Weft's belongs on this core, whatever holds for others.
  virtual void moves_to(int) {}
  // Time for a call of the MPI library, in which it brings its own messages forward: a caller waits
  // for other ranks without one, and another rank may not come before these are there; or the
  // application has transfers under way.
  virtual void keep_library_going() {}
  // The agent of this core has ended in the midst of an operation of this process's, which nobody
  // can bring to its end.
  virtual void agent_has_ended() {}
  // The calling thread of Weft's turns to this from now on.
  virtual void activity(Activity what) = 0;
};

}  // namespace weft
