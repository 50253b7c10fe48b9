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
  // A caller waits for other ranks without a call of the MPI library: time for one, in which the
  // library brings its own messages forward. Another rank may not come before these are there.
  virtual void keep_library_going() {}
  // Time for a look at the application's transfers, in which the library brings them forward. True
  // if one has been found to have ended.
  virtual bool look_at_transfers() { return false; }
  // The calling thread of Weft's turns to this from now on.
  virtual void activity(Activity what) = 0;
};

}  // namespace weft
