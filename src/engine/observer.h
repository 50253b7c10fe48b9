// Observer: receives what executors report about the time of their threads. The trace implements
// it.
#pragma once

#include <cstdint>

namespace weft {

enum class Activity : std::uint8_t { working, polling, asleep };

class Observer {
 public:
  virtual ~Observer() = default;
  // Prepares a new thread of Weft, before its first work: its name, core and trace. Is called by
  // that thread. index: counts the threads of this process from 0.
  virtual void thread_started(const char* name, int index) = 0;
  // Binds the calling thread of Weft to this core, regardless of the placement policy.
  virtual void moves_to(int) {}
  // Lets the MPI library progress its own messages. Is called while a caller waits for other ranks
  // without calling the library, since these may themselves wait for such messages, and while the
  // application has transfers under way.
  virtual void keep_library_going() {}
  // Reports that this core's agent has ended while it carried out an operation of this process.
  // Nobody can complete that operation.
  virtual void agent_has_ended() {}
  // Records the activity that the calling thread of Weft begins now.
  virtual void activity(Activity what) = 0;
};

}  // namespace weft
