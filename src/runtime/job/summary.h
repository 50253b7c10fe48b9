// Summary counts the application's calls while the program runs. At the end rank 0 prints the
// totals of all ranks.
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

// Says why Weft has left a call to the MPI library.
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

// Tells users what engine auto does inside a node, and how to change that.
inline constexpr const char* kLevelKept =
    "inside one node engine auto takes what shared memory does faster than the MPI library, and "
    "does not ask for MPI_THREAD_MULTIPLE, with which the library's own calls are slower; for "
    "other calls name an engine (--engine thread)";

// Tells users how engine tcc runs under Intel MPI.
inline constexpr const char* kWholeByMessages =
    "Intel MPI's blocking collectives inside a node go by messages (I_MPI_COLL_INTRANODE=pt2pt), "
    "since two of them in shared memory, on two threads, can hang";

class Summary {
 public:
  // wanted: whether a summary is requested, so that calls must be counted.
  explicit Summary(bool wanted) : wanted_(wanted) {}

  // Counts a call that Weft carries out. bytes: its size on this rank. in_memory: whether its
  // schedule uses only the node's shared memory.
  void handled(CallId id, std::int64_t bytes, bool in_memory) {
    if (wanted_) count_handled(id, bytes, in_memory);
  }
  // Counts a call whose data are moved without a copy, or by a single copy of the kernel. For a
  // persistent collective only the initialisation is counted.
  void direct(CallId id);
  void passed_on(CallId id, Reason reason);
  bool wanted() const { return wanted_; }
  // Adds the time in ns that the application has spent inside a blocking call.
  void spent(CallId id, std::int64_t ns) {
    if (wanted_)
      counters_[static_cast<std::size_t>(id)].inside_ns.fetch_add(ns, std::memory_order_relaxed);
  }
  // Counts a collective that this rank leaves to the core agent. For a persistent collective each
  // start is counted.
  void left_to_agent() {
    if (wanted_) left_to_agent_.fetch_add(1, std::memory_order_relaxed);
  }
  // Counts an operation in which this rank, whose thread is the agent, sends for its node.
  void led_by_agent() {
    if (wanted_) led_by_agent_.fetch_add(1, std::memory_order_relaxed);
  }
  // Counts a collective that the application has completed in a call that ended at `ended_ns`.
  void completed(CallId id, const Times& times, std::int64_t ended_ns);

  // Records how a persistent collective is carried out, as its initialisation has decided.
  void planned(PlanRecord record);

  // Further counts of this rank. Rank 0 adds them up over all ranks.
  struct Counted {
    std::int64_t transfers = 0;
    std::int64_t windows = 0;  // number of windows that other ranks may lock
    std::int64_t one_copy_bytes = 0;
    std::int64_t ended_by_agent = 0;
    // 1 if the application of this rank may call MPI from several threads at a time; otherwise 0.
    std::int64_t ranks_with_threads = 0;
    std::int64_t left_to_agent = 0;
    std::int64_t led_by_agent = 0;
  };
  void end() { until_ns_ = now_ns(); }  // notes the end of the run; must be called in MPI_Finalize
  // Adds up the counts of all ranks. Rank 0 prints the summary and writes its JSON form, as the
  // user has requested. It is collective over `all`, a communicator of all ranks. end() must be
  // called before. remark: a sentence about the whole run; "" for none. mpi: the name of the MPI
  // library.
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
    // The time from start to completion, summed over the calls that Weft has carried out.
    std::atomic<std::int64_t> duration_ns{0};
    std::atomic<std::int64_t> waited_for_handled_ns{0};
    std::atomic<std::int64_t> inside_ns{0};  // time inside blocking calls
    std::array<std::atomic<std::int64_t>, kReasons> passed_on{};
  };
  const bool wanted_;
  const std::int64_t since_ns_ = now_ns();  // time of MPI_Init
  std::int64_t until_ns_ = 0;               // time of MPI_Finalize
  std::array<Counters, kCalls> counters_{};
  std::atomic<std::int64_t> left_to_agent_{0}, led_by_agent_{0};
  std::mutex plans_mutex_;  // guards plans_
  std::vector<PlanRecord> plans_;
};

}  // namespace weft
