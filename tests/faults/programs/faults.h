// Faults: an ordinary MPI program whose cases are what may go wrong around collectives, each by its
// name: `faults CASE...`. It knows nothing of Weft; the tests run it natively and under each
// engine. Exit status: 0 right, 1 a check failed, 3 hung (the time limit); some cases end
// otherwise.
#pragma once

#include <mpi.h>

#include <vector>

namespace faults {

struct Case {
  const char* name;
  void (*run)();
  bool before_init = false;  // calls MPI_Init itself, and runs alone
};

const std::vector<Case>& request_cases();     // requests.cc
const std::vector<Case>& collective_cases();  // collectives.cc
const std::vector<Case>& many_cases();        // many.cc
const std::vector<Case>& end_cases();         // ends.cc
const std::vector<Case>& limit_cases();       // limits.cc
const std::vector<Case>& operator_cases();    // operators.cc
const std::vector<Case>& caller_cases();      // callers.cc
const std::vector<Case>& nested_cases();      // nested.cc
const std::vector<Case>& failure_cases();     // failures.cc
const std::vector<Case>& finalize_cases();    // finalize.cc
const std::vector<Case>& session_cases();     // sessions.cc
const std::vector<Case>& looked_up_cases();   // looked_up.cc
const std::vector<Case>& left_cases();        // left.cc
const std::vector<Case>& callback_cases();    // generalised.cc

// Counts a failure of the current case and names it.
void expect(bool good, const char* what);
// Something for the test to read: one line on standard output, by rank 0 or by every rank.
void tell(const char* format, ...) __attribute__((format(printf, 1, 2)));
void tell_all(const char* format, ...) __attribute__((format(printf, 1, 2)));

int rank_of(MPI_Comm comm);
int size_of(MPI_Comm comm);
int class_of(int code);
int sum_of_ranks(MPI_Comm comm);
// Polling ranks leave the core to others when there are more ranks than cores.
void rest(int microseconds = 50);

// A duplicate of MPI_COMM_WORLD, freed at the end.
class OwnWorld {
 public:
  OwnWorld() { MPI_Comm_dup(MPI_COMM_WORLD, &comm_); }
  ~OwnWorld() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  OwnWorld(const OwnWorld&) = delete;
  OwnWorld& operator=(const OwnWorld&) = delete;
  operator MPI_Comm() const { return comm_; }
  MPI_Comm* address() { return &comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// An allreduce of `count` ints with its buffers and its oracle.
class Sum {
 public:
  Sum(int count, MPI_Comm comm);
  void start(MPI_Request* request);       // MPI_Iallreduce
  void initialise(MPI_Request* request);  // MPI_Allreduce_init
  void reset();                           // so that the next result is seen
  bool right() const;                     // of as many ranks as MPI_COMM_WORLD
  bool right_of(int ranks) const;

 private:
  MPI_Comm comm_;
  std::vector<int> in_, out_;
};

}  // namespace faults
