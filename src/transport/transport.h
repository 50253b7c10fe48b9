// Transport: how one operation's steps are carried out (MPI point-to-point, the simulator, later
// shared segments). Execution: runs one schedule's rounds over a transport.
// Why the split: the rounds' logic exists once, and the simulator tests the same code that runs.
#pragma once

#include "base/result.h"
#include "schedule/schedule.h"

namespace weft {

// Belongs to one operation: knows its buffers, datatypes, operator, communicator and tag.
// Never called from two threads at once.
class Transport {
 public:
  virtual ~Transport() = default;

  // Carries out a local step or posts a communication step, without blocking
  // (library_blocking excepted).
  virtual Result<bool> start(const Step& step) = 0;
  // True once everything posted since the last true has completed.
  virtual Result<bool> test() = 0;
};

class Execution {
 public:
  Execution(const Schedule& schedule, Transport& transport)
      : schedule_(&schedule), transport_(&transport) {}

  // Goes on as far as possible without blocking; true once the last round has completed.
  // After an error, the operation is over: do not call again.
  Result<bool> advance();

  // From the first round on again, once the last has completed.
  void rewind() { next_step_ = round_ = 0; }

  std::uint32_t round() const { return round_; }

 private:
  const Schedule* schedule_;
  Transport* transport_;
  std::uint32_t next_step_ = 0;
  std::uint32_t round_ = 0;
  bool round_started_ = false;
};

}  // namespace weft
