// The main program of the fault tests: its arguments, its time limit, and the functions that the
// cases share.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "faults.h"

namespace faults {
namespace {

const char* current_case = "start";
int failures = 0;
bool started = false;  // whether MPI_Init has returned and MPI_Finalize was not called

void report_hang(int) {
  char text[200];
  const int length =
      std::snprintf(text, sizeof text, "faults: process %d hangs in: %s\n", getpid(), current_case);
  if (write(2, text, length) < 0) _exit(4);
  _exit(3);
}

const Case* find(const char* name) {
  for (const auto* cases :
       {&request_cases(), &collective_cases(), &many_cases(), &end_cases(), &limit_cases(),
        &operator_cases(), &caller_cases(), &nested_cases(), &failure_cases(), &finalize_cases(),
        &session_cases(), &looked_up_cases(), &left_cases(), &callback_cases()})
    for (const auto& one : *cases)
      if (std::strcmp(one.name, name) == 0) return &one;
  return nullptr;
}

void print_line(const char* format, va_list arguments) {
  char text[1000];
  int length = std::vsnprintf(text, sizeof text - 1, format, arguments);
  if (length > static_cast<int>(sizeof text) - 2) length = sizeof text - 2;
  text[length] = '\n';
  std::fwrite(text, 1, static_cast<std::size_t>(length) + 1, stdout);
  std::fflush(stdout);
}

int usage(const char* word) {
  std::fprintf(stderr, "faults: cannot use '%s'\nusage: faults [--limit-s N] CASE...\n", word);
  return 2;
}

void run(const Case& one) {
  current_case = one.name;
  one.run();
}

}  // namespace

void expect(bool good, const char* what) {
  if (good) return;
  ++failures;
  std::fprintf(stderr, "faults: process %d: %s: wrong: %s\n", getpid(), current_case, what);
}

void tell(const char* format, ...) {
  if (started && rank_of(MPI_COMM_WORLD) != 0) return;
  va_list arguments;
  va_start(arguments, format);
  print_line(format, arguments);
  va_end(arguments);
}

void tell_all(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_line(format, arguments);
  va_end(arguments);
}

int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  return size;
}

int class_of(int code) {
  int result = 0;
  MPI_Error_class(code, &result);
  return result;
}

int sum_of_ranks(MPI_Comm comm) {
  const int size = size_of(comm);
  return size * (size - 1) / 2;
}

void rest(int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

Sum::Sum(int count, MPI_Comm comm) : comm_(comm), in_(count), out_(count, -1) {
  for (int i = 0; i < count; ++i) in_[i] = rank_of(comm) + i;
}

void Sum::start(MPI_Request* request) {
  MPI_Iallreduce(in_.data(), out_.data(), static_cast<int>(in_.size()), MPI_INT, MPI_SUM, comm_,
                 request);
}

void Sum::initialise(MPI_Request* request) {
  MPI_Allreduce_init(in_.data(), out_.data(), static_cast<int>(in_.size()), MPI_INT, MPI_SUM, comm_,
                     MPI_INFO_NULL, request);
}

void Sum::reset() {
  std::fill(out_.begin(), out_.end(), -1);
}

bool Sum::right() const {
  // comm_ may have been freed, so the size is taken from MPI_COMM_WORLD. Rank r contributes r + i
  // to element i.
  return right_of(size_of(MPI_COMM_WORLD));
}

bool Sum::right_of(int ranks) const {
  const int base = ranks * (ranks - 1) / 2;
  for (std::size_t i = 0; i < out_.size(); ++i)
    if (out_[i] != base + ranks * static_cast<int>(i)) return false;
  return true;
}

}  // namespace faults

int main(int argc, char** argv) {
  using namespace faults;
  int next = 1, limit_s = 60;
  if (argc > 2 && std::strcmp(argv[1], "--limit-s") == 0) {
    limit_s = std::atoi(argv[2]);
    next = 3;
  }
  for (int i = next; i < argc; ++i)
    if (!find(argv[i])) return usage(argv[i]);
  if (next >= argc) return usage("no case");
  signal(SIGALRM, report_hang);
  alarm(static_cast<unsigned>(limit_s));
  if (find(argv[next])->before_init) {
    run(*find(argv[next]));
    return failures ? 1 : 0;
  }
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  started = true;
  for (int i = next; i < argc; ++i) run(*find(argv[i]));
  started = false;
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all || failures ? 1 : 0;  // callbacks in MPI_Finalize may have failed, too
}
