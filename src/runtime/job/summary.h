// Summary: what became of the calls, counted while the program runs and told by rank 0 at its end.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "library/generated/call_ids.h"
#include "runtime/request/requests.h"
#include "runtime/trial/tuning.h"

namespace weft {

struct LearntReport;

// Why a call went to the MPI library untouched.
enum class Reason : std::uint8_t {
  engine_native,
  level_kept,
  outside_memory,
  rule,
  learnt,
  library_wins,
  communicator,
  session,
  crowded,
  topology,
  empty,
  large,
  arguments,
};
inline constexpr int kReasons = 13;

// What engine `auto` does inside one node, and what to do about it.
inline constexpr const char* kLevelKept =
    "inside one node engine auto takes what shared memory does faster than the MPI library, and "
    "does not ask for MPI_THREAD_MULTIPLE, with which the library's own calls are slower; for "
    "other calls name an engine (--engine thread)";

// Where engine `tcc` runs under Intel MPI.
inline constexpr const char* kWholeByMessages =
    "Intel MPI's blocking collectives inside a node go by messages (I_MPI_COLL_INTRANODE=pt2pt), "
    "since two of them in shared memory, on two threads, can hang";

class Summary {
 public:
  // Counts only what will be told.
  explicit Summary(bool wanted) : wanted_(wanted) {}

  // in_memory: by a schedule in the node's memory.
  void handled(CallId id, std::int64_t bytes, bool in_memory) {
    if (wanted_) count_handled(id, bytes, in_memory);
  }
  // It needed no copy, or one by the kernel; a persistent request counts once.
  void direct(CallId id);
  void passed_on(CallId id, Reason reason);
  // The application has spent so long inside a blocking call.
  void spent(CallId id, std::int64_t ns) {
    if (wanted_)
      counters_[static_cast<std::size_t>(id)].inside_ns.fetch_add(ns, std::memory_order_relaxed);
  }
  // It has been left to the agent of a core; each start of a persistent request counts.
  void left_to_agent() {
    if (wanted_) left_to_agent_.fetch_add(1, std::memory_order_relaxed);
  }
  // A collective that the application has completed, in a call that ended at `ended_ns`.
  void completed(CallId id, const Times& times, std::int64_t ended_ns);

  // How a persistent collective in the node's memory is done, by what this rank decided or was
  // told.
  void planned(PlanRecord record);

  // Beside the calls, of this rank; what is left to agents is counted here.
  struct Counted {
    std::int64_t transfers = 0;
    std::int64_t one_copy_bytes = 0;
    std::int64_t ended_by_agent = 0;
    std::int64_t left_to_agent = 0;
  };
  // Collective over `all` ranks; rank 0 says it (text) and writes it (JSON file), where wanted.
  // remark: a sentence about the whole run, in the text; "": none.
  void report(const Config& config, const std::string& remark, const char* mpi, Counted beside,
              const LearntReport& learnt, MPI_Comm all, int rank, int ranks);

 private:
  void count_handled(CallId id, std::int64_t bytes, bool in_memory);

  struct Counters {
    std::atomic<std::int64_t> handled{0};
    std::atomic<std::int64_t> bytes{0};
    std::atomic<std::int64_t> in_memory{0};
    std::atomic<std::int64_t> direct{0};
    std::atomic<std::int64_t> completed{0};
    std::atomic<std::int64_t> start_to_wait_ns{0};
    std::atomic<std::int64_t> waited_ns{0};
    std::atomic<std::int64_t> duration_ns{0};  // from start to complete, of those handled
    std::atomic<std::int64_t> waited_for_handled_ns{0};
    std::atomic<std::int64_t> inside_ns{0};  // of blocking calls
    std::array<std::atomic<std::int64_t>, kReasons> passed_on{};
  };
  const bool wanted_;
  const std::int64_t since_ns_ = now_ns();  // MPI_Init
  std::array<Counters, kCalls> counters_{};
  std::atomic<std::int64_t> left_to_agent_{0};
  std::mutex plans_mutex_;  // guards plans_
  std::vector<PlanRecord> plans_;
};

}  // namespace weft
