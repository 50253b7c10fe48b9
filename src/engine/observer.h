// Observer: receives what the threads of Weft report about their time. The trace implements it.
#pragma once

#include <cstdint>

namespace weft {

enum class Activity : std::uint8_t { working, polling, asleep };

class Observer {
 public:
  virtual ~Observer() = default;
  // Is called first by each new thread of Weft. It sets the thread's name, core and trace. index:
  // the number of the thread among those of this kind in the process, from 0.
  virtual void thread_started(const char* name, int index) = 0;
  // Binds the calling thread of Weft to this core, whatever the placement policy says.
  virtual void moves_to(int) {}
  // Lets the MPI library progress its own messages. It is called while a caller waits for other
  // ranks without calling the library, since these ranks may themselves wait for such messages. It
  // is also called while the application has transfers in progress.
  virtual void keep_library_going() {}
  // Reports that this core's agent has ended while it carried out an operation of this process. No
  // thread can complete that operation any more.
  virtual void agent_has_ended() {}
  // Records that the calling thread of Weft begins this activity now.
  virtual void activity(Activity what) = 0;
};

}  // namespace weft
