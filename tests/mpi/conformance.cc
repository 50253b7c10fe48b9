// The main program of the conformance tests: its options and its time limit. The exit status is 0
// if all results are equal, 1 if some differ, 2 after a bad option, and 3 after a hang or a crash.
#include "conformance.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace conformance {
namespace {

char current_case[256] = "start";
int current_rank = 0;

// Reports how the program ends. It runs in a signal handler and ends the process.
void report_end(int signal_number) {
  char text[400];
  const int length =
      std::snprintf(text, sizeof text, "conformance: rank %d %s in: %s\n", current_rank,
                    signal_number == SIGALRM ? "hangs" : "crashes", current_case);
  if (write(2, text, length) < 0) _exit(4);
  _exit(3);
}

bool set(Options* options, const std::string& name, const std::string& value) {
  if (name == "--groups") {
    options->results = value.find("results") != std::string::npos;
    options->flight = value.find("flight") != std::string::npos;
    options->lifetime = value.find("lifetime") != std::string::npos;
    options->mistakes = value.find("mistakes") != std::string::npos;
    options->blocking = value.find("blocking") != std::string::npos;
    return options->mistakes || options->results || options->flight || options->lifetime;
  }
  if (name == "--only") options->only = value;
  if (name == "--without") options->without = value;
  if (name == "--largest-count") options->largest_count = std::atoi(value.c_str());
  if (name == "--limit-s") options->limit_s = std::atoi(value.c_str());
  return !value.empty() && (name == "--only" || name == "--without" || name == "--largest-count" ||
                            name == "--limit-s");
}

int run(const Options& options, bool threads) {
  const int rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
  current_rank = rank;
  Tally tally(rank);
  if (options.results) check_results(options, &tally);
  if (options.flight) check_flight(threads, &tally);
  if (options.lifetime) check_blocking(&tally);
  if (options.lifetime) check_lifetime(options, &tally);
  if (options.mistakes) check_mistakes(&tally);
  long failures = tally.failures(), all = 0;
  MPI_Comm oracle = oracle_of(MPI_COMM_WORLD);
  MPI_Allreduce(&failures, &all, 1, MPI_LONG, MPI_SUM, oracle);
  MPI_Comm_free(&oracle);
  if (rank == 0 && all) std::printf("conformance: %ld differ (%d ranks)\n", all, size);
  if (rank == 0 && !all)
    std::printf("conformance: %ld cases equal (%d ranks)\n", tally.cases(), size);
  return all ? 1 : 0;
}

}  // namespace

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

MPI_Comm oracle_of(MPI_Comm comm) {
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "weft_engine", "native");
  MPI_Comm oracle;
  MPI_Comm_dup_with_info(comm, hints, &oracle);
  MPI_Info_free(&hints);
  return oracle;
}

void rest() {
  std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void Tally::begin(const std::string& name) {
  std::snprintf(current_case, sizeof current_case, "%s", name.c_str());
}

void Tally::end(bool good, const char* why) {
  ++cases_;
  if (good) return;
  if (++failures_ <= 10) std::printf("rank %d: %s: %s\n", rank_, current_case, why);
  std::fflush(stdout);
}

void Tally::library_fault(const char* what) {
  if (++library_faults_ <= 3) std::printf("rank %d: %s: %s is wrong\n", rank_, current_case, what);
}

void Tally::skip(const std::string& name, const char* why) {
  if (rank_ == 0) std::printf("skipped: %s: %s\n", name.c_str(), why);
}

}  // namespace conformance

int main(int argc, char** argv) {
  conformance::Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && conformance::set(&options, argv[i], argv[i + 1])) continue;
    std::fprintf(
        stderr,
        "conformance: cannot use '%s'\nusage: conformance [--groups "
        "results,blocking,flight,lifetime,mistakes] [--only COLLECTIVE,...] [--without CASE,...] "
        "[--largest-count N] [--limit-s N]\n",
        argv[i]);
    return 2;
  }
  for (int number : {SIGALRM, SIGSEGV, SIGBUS, SIGABRT}) signal(number, conformance::report_end);
  alarm(options.limit_s);
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const int status = conformance::run(options, provided == MPI_THREAD_MULTIPLE);
  MPI_Finalize();
  return status;
}
