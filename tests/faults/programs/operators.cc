// User-defined operators in a program that expects no other thread than its own, and the rounding
// of floating-point numbers, which the program chooses.
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "faults.h"

namespace faults {
namespace {

std::atomic<bool> computing{false};
std::atomic<int> beside{0}, runs{0};

void add(void* in, void* inout, int* length, MPI_Datatype*) {
  if (computing.load()) beside.fetch_add(1);
  runs.fetch_add(1);
  for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// Computes until seen() returns true, like an application between start and wait, but not longer
// than a time limit.
template <class Seen>
void compute_until(Seen seen) {
  computing = true;
  for (int i = 0; i < 200 && !seen(); ++i) rest(1000);
  computing = false;
}

class OwnSum {
 public:
  OwnSum(int count, MPI_Comm comm)
      : in_(static_cast<std::size_t>(count), rank_of(comm) + 1), out_(in_.size()), comm_(comm) {
    MPI_Op_create(add, 1, &op_);
  }
  ~OwnSum() { MPI_Op_free(&op_); }
  OwnSum(const OwnSum&) = delete;
  OwnSum& operator=(const OwnSum&) = delete;

  void start(MPI_Request* request) {
    MPI_Iallreduce(in_.data(), out_.data(), count(), MPI_INT, op_, comm_, request);
  }
  void initialise(MPI_Request* request) {
    MPI_Allreduce_init(in_.data(), out_.data(), count(), MPI_INT, op_, comm_, MPI_INFO_NULL,
                       request);
  }
  bool right() const {
    const int sum = sum_of_ranks(comm_) + size_of(comm_);
    return std::all_of(out_.begin(), out_.end(), [sum](int one) { return one == sum; });
  }

 private:
  int count() const { return static_cast<int>(in_.size()); }

  std::vector<int> in_, out_;
  MPI_Comm comm_;
  MPI_Op op_;
};

// While the program computes, another thread may progress a long bcast, which the other ranks start
// late. It must not execute the reduction's operator meanwhile.
void operator_beside() {
  OwnWorld comm;
  std::vector<int> data(200000, rank_of(comm));
  for (const int count : {10, 1000, 100000}) {
    OwnSum sum(count, comm);
    MPI_Request requests[2];
    sum.start(&requests[0]);
    if (rank_of(comm) == 0) {
      MPI_Ibcast(data.data(), static_cast<int>(data.size()), MPI_INT, size_of(comm) - 1, comm,
                 &requests[1]);
      compute_until([] { return false; });
    } else {
      compute_until([] { return false; });
      MPI_Ibcast(data.data(), static_cast<int>(data.size()), MPI_INT, size_of(comm) - 1, comm,
                 &requests[1]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(sum.right(), "the operator's result");
  }
  expect(beside == 0, "no operator beside the computation");
  int of_all = runs;  // an algorithm may call the operator on one rank only
  MPI_Allreduce(MPI_IN_PLACE, &of_all, 1, MPI_INT, MPI_SUM, comm);
  expect(of_all > 0, "the operator has been run");
}

void persistent_operator_beside() {
  OwnWorld comm;
  OwnSum sum(100000, comm);
  MPI_Request request;
  sum.initialise(&request);
  for (int i = 0; i < 2; ++i) {
    MPI_Start(&request);
    compute_until([] { return false; });
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum.right(), "the operator's result");
  }
  MPI_Request_free(&request);
  expect(beside == 0, "no operator beside the computation");
}

// Rank 0 waits for a message that rank 1 sends only when its reduction is complete, which needs
// rank 0's part.
void operator_while_blocked() {
  OwnWorld comm;
  for (const int count : {1, 100000}) {
    OwnSum sum(count, comm);
    MPI_Request request;
    sum.start(&request);
    int token = 0;
    if (rank_of(comm) == 0) {
      MPI_Recv(&token, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);
      compute_until([] { return false; });
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank_of(comm) == 1) MPI_Send(&token, 1, MPI_INT, 0, 3, comm);
    expect(sum.right(), "the operator's result");
    MPI_Barrier(comm);
  }
  expect(beside == 0, "no operator beside the computation");
}

void begin_funneled_and(void (*act)()) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  act();
  MPI_Finalize();
}

// Adds with the processor's current rounding mode.
template <class T>
T sum_here(T a, T b) {
  volatile T first = a, second = b;
  return first + second;
}

// Two ranks reduce while the program computes. The result must be what this thread computes with
// its rounding mode.
template <class T>
void expect_sums_as_here(MPI_Datatype type, T mine, T others, const char* what) {
  OwnWorld comm;
  std::vector<T> in(200000, rank_of(comm) == 0 ? mine : others), out(in.size(), T(7));
  MPI_Request request;
  MPI_Iallreduce(in.data(), out.data(), static_cast<int>(in.size()), type, MPI_SUM, comm, &request);
  compute_until([&] { return static_cast<volatile T&>(out.back()) != T(7); });
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const T expected = sum_here(mine, others);
  expect(std::all_of(out.begin(), out.end(), [&](T one) { return one == expected; }), what);
}

void rounding() {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TONEAREST}) {
    std::fesetround(mode);
    expect_sums_as_here(MPI_DOUBLE, 1.0, 1e-18, "doubles as the caller rounds");
    expect_sums_as_here(MPI_DOUBLE, 1.0, -1e-18, "doubles as the caller rounds");
    expect_sums_as_here(MPI_LONG_DOUBLE, 1.0L, 1e-25L, "long doubles as the caller rounds");
  }
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 0x8000;
  for (const unsigned bits : {kFlushToZero, 0U}) {
    _mm_setcsr((_mm_getcsr() & ~kFlushToZero) | bits);
    expect_sums_as_here(MPI_DOUBLE, 3e-308, -2.5e-308, "small numbers as the caller has them");
  }
#endif
}

#if defined(__x86_64__)
std::atomic<int> trapped{0};

// Disables the trap, so that the instruction succeeds when it is repeated.
void note_trap(int, siginfo_t*, void* context) {
  constexpr unsigned kNoTraps = 0x1f80, kNoTrapsOfOldUnit = 0x3f;
  auto* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.fpregs;
  registers->mxcsr |= kNoTraps;
  registers->cwd |= kNoTrapsOfOldUnit;
  ++trapped;
}

double sum_of_all(double mine, int count, MPI_Comm comm) {
  std::vector<double> in(static_cast<std::size_t>(count), mine), out(in.size(), -1.0);
  MPI_Request request;
  MPI_Iallreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, comm, &request);
  if (count > 1000) compute_until([&] { return static_cast<volatile double&>(out.back()) != -1; });
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return out.back();
}

// Row 37 of tests/faults/README.md: floating-point errors raise signals, since the program has
// enabled the traps. The rank's handler must run whoever computes the sum, and only for such
// errors.
void floating_point_errors() {
  OwnWorld comm;
  struct sigaction action = {}, before;
  action.sa_sigaction = note_trap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGFPE, &action, &before);
  constexpr int kLong = 200000, kErrors = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW;
  const auto trap = [] {
    std::feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(kErrors);
  };
  sum_of_all(1.0, kLong, comm);  // threads that help have started without traps
  trap();
  for (int turn = 0; turn < 20; ++turn)
    for (const int count : {1, 1000, kLong})
      expect(sum_of_all(1.5, count, comm) == 1.5 * size_of(comm), "the sum of harmless numbers");
  expect(trapped == 0, "no signal for harmless numbers");
  for (int turn = 0; turn < 3; ++turn)
    for (const int count : {1, 1000, kLong}) {
      trapped = 0;
      trap();
      const double sum = sum_of_all(std::numeric_limits<double>::max(), count, comm);
      fedisableexcept(FE_ALL_EXCEPT);
      expect(std::isinf(sum), "a sum that is too large");
      int of_all = trapped;  // an element may be added on one rank or on all
      MPI_Allreduce(MPI_IN_PLACE, &of_all, 1, MPI_INT, MPI_SUM, comm);
      expect(of_all > 0, "the handler has run");
    }
  sigaction(SIGFPE, &before, nullptr);
}
#endif

}  // namespace

const std::vector<Case>& operator_cases() {
  static const std::vector<Case> cases = {
    {"operator-beside", [] { begin_funneled_and(operator_beside); }, true},
    {"persistent-operator-beside", [] { begin_funneled_and(persistent_operator_beside); }, true},
    {"operator-while-blocked", [] { begin_funneled_and(operator_while_blocked); }, true},
    {"rounding", rounding},
#if defined(__x86_64__)
    {"floating-point-errors", floating_point_errors},
#endif
  };
  return cases;
}

}  // namespace faults
