// Runs random programs: they are made from seeds, and every result is compared with the expected
// one. The exit status is 0 if all is right, 1 after wrong results, 2 after a bad option, and 3
// after a hang or a crash.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include "execution.h"

namespace random_programs {
namespace {

struct Options {
  std::uint64_t seed = 1;
  int programs = 1, repeat = 1, limit_s = 20;
  int level = MPI_THREAD_MULTIPLE;
  bool list = false;
  Limits limits;
};

// What the signal handler reports.
volatile sig_atomic_t current_rank = 0;
volatile std::uint64_t current_seed = 0;

void report_end(int signal_number) {
  char line[200];
  const int length =
      std::snprintf(line, sizeof line,
                    "random: seed %llu, rank %d %s at step %d of thread 0 (%d of 1, %d of 2)\n",
                    static_cast<unsigned long long>(current_seed), static_cast<int>(current_rank),
                    signal_number == SIGALRM ? "hangs" : "crashes", at_step[0].load(),
                    at_step[1].load(), at_step[2].load());
  if (write(1, line, static_cast<std::size_t>(length)) < 0) _exit(4);
  _exit(3);
}

// Reports an MPI error like a crash, since the library alone would not print the seed.
void report_error(MPI_Comm*, int* code, ...) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(*code, text, &length);
  std::printf("random: seed %llu, rank %d: error of MPI: %s\n",
              static_cast<unsigned long long>(current_seed), static_cast<int>(current_rank), text);
  std::fflush(stdout);
  report_end(SIGABRT);
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> result;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');) result.push_back(word);
  return result;
}

bool set_level(Options* options, const std::string& value) {
  const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                        MPI_THREAD_MULTIPLE};
  const char* names[] = {"single", "funneled", "serialized", "multiple"};
  for (int i = 0; i < 4; ++i) {
    if (value != names[i]) continue;
    options->level = levels[i];
    return true;
  }
  return false;
}

bool set(Options* options, const std::string& name, const std::string& value) {
  const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  if (name == "--level") return set_level(options, value);
  if (name == "--without") {
    for (const auto& word : words(value)) options->limits.without.insert(word);
    return true;
  }
  if (name == "--only") {
    for (const auto& word : words(value)) options->limits.only.insert(std::atoi(word.c_str()));
    return true;
  }
  if (!number) return false;
  if (name == "--seed") options->seed = std::stoull(value);
  if (name == "--programs") options->programs = std::atoi(value.c_str());
  if (name == "--repeat") options->repeat = std::atoi(value.c_str());
  if (name == "--limit-s") options->limit_s = std::atoi(value.c_str());
  if (name == "--largest-count") options->limits.largest_count = std::atoi(value.c_str());
  if (name == "--threads") options->limits.threads = value != "0";
  if (name == "--list") options->list = value != "0";
  for (const char* known : {"--seed", "--programs", "--repeat", "--limit-s", "--largest-count",
                            "--threads", "--list"}) {
    if (name == known) return true;
  }
  return false;
}

using CommunicatorSets = std::vector<std::unique_ptr<Communicators>>;

int run(std::uint64_t seed, const Options& options, const CommunicatorSets& sets,
        const conformance::TypeCases& types) {
  current_seed = seed;
  alarm(options.limit_s);
  Findings findings(seed, current_rank);
  const auto steps = generate(seed, options.limits);
  std::vector<std::thread> threads;
  const auto carry_out = [&](int thread) {
    Execution(seed, thread, *sets[thread], types, options.limits, &findings).run(steps);
  };
  int needed = 1;
  for (const auto& step : steps) needed = std::max(needed, step.thread + 1);
  for (int i = 1; i < needed; ++i) threads.emplace_back(carry_out, i);
  carry_out(0);
  for (auto& thread : threads) thread.join();
  return findings.count();
}

void list(const Options& options) {
  for (int i = 0; i < options.programs; ++i) {
    for (const auto& step : generate(options.seed + i, options.limits)) {
      std::printf("%s\n", text(step).c_str());
    }
  }
}

int run_all(Options options, int provided) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  current_rank = rank;
  if (provided < MPI_THREAD_MULTIPLE || options.level < MPI_THREAD_MULTIPLE)
    options.limits.threads = false;
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(report_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  conformance::TypeCases types;
  CommunicatorSets sets;
  for (int i = 0; i < (options.limits.threads ? kThreads : 1); ++i) {
    sets.push_back(std::make_unique<Communicators>(i == 0));
  }
  int wrong = 0, all = 0;
  for (int i = 0; i < options.programs; ++i) {
    for (int k = 0; k < options.repeat; ++k) wrong += run(options.seed + i, options, sets, types);
  }
  MPI_Errhandler_free(&handler);
  alarm(options.limit_s);
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && !all)
    std::printf("random: %d programs right, from seed %llu\n", options.programs,
                static_cast<unsigned long long>(options.seed));
  return all ? 1 : 0;
}

}  // namespace
}  // namespace random_programs

int main(int argc, char** argv) {
  using namespace random_programs;
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && set(&options, argv[i], argv[i + 1])) continue;
    std::fprintf(stderr,
                 "random: cannot use '%s'\nusage: random [--seed S] [--programs N] [--repeat N] "
                 "[--only STEP,...] [--without WORD,...] [--largest-count N] [--threads 0|1] "
                 "[--level single|funneled|serialized|multiple] [--limit-s N] [--list 0|1]\n",
                 argv[i]);
    return 2;
  }
  if (options.list) {
    list(options);
    return 0;
  }
  struct sigaction action {};
  action.sa_handler = report_end;
  for (int number : {SIGALRM, SIGSEGV, SIGBUS, SIGABRT}) sigaction(number, &action, nullptr);
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, options.level, &provided);
  const int status = run_all(options, provided);
  MPI_Finalize();
  return status;
}
