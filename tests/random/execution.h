// Execution: one thread of this rank carries out its steps of a program and checks every result.
// What the ranks may do differently is random on each rank: the order of starts on different
// communicators, and for what they wait and how. What must be alike follows from the steps.
#pragma once

#include <mpi.h>

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "collective.h"
#include "communicators.h"
#include "completion.h"
#include "program.h"

namespace random_programs {

// Counts wrong results and prints where they occur.
class Findings {
 public:
  Findings(std::uint64_t seed, int rank) : seed_(seed), rank_(rank) {}
  void add(const Step& step, const std::string& what);
  int count() const { return count_; }

 private:
  std::uint64_t seed_;
  int rank_;
  std::atomic<int> count_{0};  // written by all threads of the program; read after they are joined
};

// The step that each thread is executing, for the report of a hang or a crash. Written by the
// threads, read by a signal handler.
inline std::atomic<int> at_step[kThreads];

class Execution {
 public:
  Execution(std::uint64_t seed, int thread, const Communicators& comms,
            const conformance::TypeCases& types, const Limits& limits, Findings* findings);
  void run(const std::vector<Step>& steps);

 private:
  // A request with everything it needs until it is freed.
  struct Operation {
    const Step* step = nullptr;
    MPI_Request request = MPI_REQUEST_NULL;
    bool persistent = false, active = false;
    int starts_left = 0;
    unsigned salt = 0;
    std::unique_ptr<conformance::Place> own_place;
    std::unique_ptr<conformance::Collective> collective;
    // Whether this half of a message is the receive.
    bool receives = false;
    int partner = 0;
    std::vector<int> data;
  };
  using Burst = std::vector<const Step*>;

  void start_all(const Burst& burst);
  void perform(const Step& step);
  void start_collective(const Step& step, const conformance::Place& place);
  void start_message(const Step& step, const conformance::Place& place);
  void block(const Step& step, const conformance::Place& place);
  void exchange(const Step& step, const conformance::Place& place);
  void restart(const Step& step);
  void complete_some();
  void complete_rest();

  void fill(Operation* operation);
  void check(Operation* operation, const MPI_Status& status);
  void complete(const std::vector<Operation*>& chosen, Completion way);
  std::vector<Operation*> active();

  Random random_;  // of this rank and thread
  const Communicators& comms_;
  const conformance::TypeCases& types_;
  const std::set<std::string>& without_;
  Findings* findings_;
  int thread_;
  std::list<Operation> operations_;
};

}  // namespace random_programs
