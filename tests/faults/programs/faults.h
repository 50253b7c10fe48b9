// An ordinary MPI program whose cases are what may go wrong around collectives. Usage: faults
// CASE.... It does not know Weft: the tests run it without Weft and with each engine. The exit
// status is 0 if all is right, 1 if a check failed, and 3 if it hung until the time limit. Some
// cases end otherwise.
#pragma once

#include <mpi.h>

#include <vector>

namespace faults {

struct Case {
  const char* name;
  void (*run)();
  bool before_init = false;  // whether the case calls MPI_Init itself; it must then run alone
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

// Counts a failure of the current case and names it, if `good` is false.
void expect(bool good, const char* what);
// Prints a line on standard output for the test. tell() does so on rank 0, tell_all() on every
// rank.
void tell(const char* format, ...) __attribute__((format(printf, 1, 2)));
void tell_all(const char* format, ...) __attribute__((format(printf, 1, 2)));

int rank_of(MPI_Comm comm);
int size_of(MPI_Comm comm);
int class_of(int code);
int sum_of_ranks(MPI_Comm comm);
// Sleeps, so that polling ranks yield their core if there are more ranks than cores.
void rest(int microseconds = 50);

// A duplicate of MPI_COMM_WORLD, which is freed by the destructor.
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

// An allreduce of `count` ints with its buffers and its expected result.
class Sum {
 public:
  Sum(int count, MPI_Comm comm);
  void start(MPI_Request* request);       // calls MPI_Iallreduce
  void initialise(MPI_Request* request);  // calls MPI_Allreduce_init
  void reset();                           // clears the result, so that the next one is noticed
  // Whether the result is that of all ranks of MPI_COMM_WORLD.
  bool right() const;
  bool right_of(int ranks) const;

 private:
  MPI_Comm comm_;
  std::vector<int> in_, out_;
};

}  // namespace faults
