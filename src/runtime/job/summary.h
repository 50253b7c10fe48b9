// Summary: counts calls while the program runs. Rank 0 prints the totals at the end.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "library/generated/call_ids.h"
#include "runtime/job/records.h"

namespace weft {

// Tells why a call was passed to the MPI library.
enum class Reason : std::uint8_t {
  engine_native,
  level_kept,
  outside_memory,
  rule,
  tried,
  learnt,
  library_wins,
  communicator,
  session,
  crowded,
  topology,
  empty,
  large,
  arguments,
  kind_left,
};
inline constexpr int kReasons = 15;

// Explains to users what engine `auto` does inside a node, and how to change it.
inline constexpr const char* kLevelKept =
    "inside one node engine auto takes what shared memory does faster than the MPI library, and "
    "does not ask for MPI_THREAD_MULTIPLE, with which the library's own calls are slower; for "
    "other calls name an engine (--engine thread)";

// Explains to users how engine `tcc` runs under Intel MPI.
inline constexpr const char* kWholeByMessages =
    "Intel MPI's blocking collectives inside a node go by messages (I_MPI_COLL_INTRANODE=pt2pt), "
    "since two of them in shared memory, on two threads, can hang";

class Summary {
 public:
  // wanted: whether to count calls for a report.
  explicit Summary(bool wanted) : wanted_(wanted) {}

  // Counts a call that Weft carries out. in_memory: by a schedule in the node's shared memory.
  void handled(CallId id, std::int64_t bytes, bool in_memory) {
    if (wanted_) count_handled(id, bytes, in_memory);
  }
  // Counts a call whose data are not copied, or are copied once by the kernel. A persistent request
  // counts once.
  void direct(CallId id);
  void passed_on(CallId id, Reason reason);
  bool wanted() const { return wanted_; }
  // Adds the time that the application has spent inside a blocking call.
  void spent(CallId id, std::int64_t ns) {
    if (wanted_)
      counters_[static_cast<std::size_t>(id)].inside_ns.fetch_add(ns, std::memory_order_relaxed);
  }
  // Counts an operation left to a core agent. Each start of a persistent request counts.
  void left_to_agent() {
    if (wanted_) left_to_agent_.fetch_add(1, std::memory_order_relaxed);
  }
  // Counts a collective that the application has completed in a call that ended at `ended_ns`.
  void completed(CallId id, const Times& times, std::int64_t ended_ns);

  // Records for the summary how a persistent collective is carried out, as it was decided in its
  // initialisation.
  void planned(PlanRecord record);

  // Further counts of this rank; rank 0 adds them up.
  struct Counted {
    std::int64_t transfers = 0;
    std::int64_t windows = 0;  // that others may lock
    std::int64_t one_copy_bytes = 0;
    std::int64_t ended_by_agent = 0;
    std::int64_t ranks_with_threads = 0;  // 1 on a rank whose application may call MPI from several
                                          // threads at a time
    std::int64_t left_to_agent = 0;
  };
  void end() { until_ns_ = now_ns(); }  // is called in MPI_Finalize
  // Reports the totals of all ranks. Collective over `all`, after end(). Rank 0 prints the summary
  // (text) and writes it (JSON file) as configured. remark: a sentence about the whole run for the
  // text; "" for none.
  void report(const Config& config, const std::string& remark, const char* mpi, Counted resources,
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
    std::atomic<std::int64_t> duration_ns{0};  // time from start to completion, summed over the
                                               // calls that Weft carried out
    std::atomic<std::int64_t> waited_for_handled_ns{0};
    std::atomic<std::int64_t> inside_ns{0};  // time inside blocking calls
    std::array<std::atomic<std::int64_t>, kReasons> passed_on{};
  };
  const bool wanted_;
  const std::int64_t since_ns_ = now_ns();  // time of MPI_Init
  std::int64_t until_ns_ = 0;               // time of MPI_Finalize
  std::array<Counters, kCalls> counters_{};
  std::atomic<std::int64_t> left_to_agent_{0};
  std::mutex plans_mutex_;  // guards plans_
  std::vector<PlanRecord> plans_;
};

}  // namespace weft
