// Builds the record of one rank: its call sites, its calls, and its arrivals at collectives. All
// tables have a fixed size, so that memory stays bounded in long runs.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "advise/callers.h"
#include "advise/record.h"

namespace weft::advise {

// In a communicator's identity these bits contain the number of the persistent request, because the
// starts of each request are counted separately. They are 0 for all other calls.
inline constexpr std::uint64_t kWhichPlan = (1 << 20) - 1;

// Holds the advisor's data about a communicator.
struct Communicator {
  // This number is equal on all ranks of the communicator, and different for each communicator.
  std::uint64_t identity = 0;
  std::uint64_t members = 0;  // hash of the group's members
  int rank = 0, size = 0, nodes = 0, kind = 0;
  bool inter = false;
  // Number of neighbours from which this rank receives and to which it sends; -1: there is no
  // topology, or it has edges to MPI_PROC_NULL.
  int sources = -1, targets = -1;
  std::uint32_t sequence = 0;  // collective calls so far
  std::uint32_t plans = 0;     // persistent collectives initialised so far
  // `weft check` uses these (agreement.h).
  std::uint32_t compared = 0;  // collective calls so far, including failed ones
  bool differs = false;        // the ranks' calls have differed: later ones are not compared
};

// A spin lock. Every MPI call holds it for about ten instructions, for which a std::mutex would
// take three times as long.
class ShortLock {
 public:
  void lock();
  void unlock() { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_;
};

class Recorder {
 public:
  // Opens the file that holds the record while the rank runs, and creates its directory if this
  // node does not have it yet. If that fails, the record is kept only in memory.
  void open();
  void remove_file();
  bool recording() const { return record_ != nullptr; }
  void give_up();
  void stop() { record_ = nullptr; }  // stops recording in a forked child, whose record is a copy
  Record& record() { return *record_; }
  const char* path() const { return path_; }
  ShortLock& lock() { return lock_; }

  // Returns the approximate time in ns that recording has taken so far. took() adds to it, and must
  // be called with lock() held.
  std::int64_t taken_ns() const { return taken_ns_.load(std::memory_order_relaxed); }
  void took(std::int64_t ns) {
    taken_ns_.store(taken_ns_.load(std::memory_order_relaxed) + ns, std::memory_order_relaxed);
  }

  // lock() must be held when these three functions are called.
  Site& site(const Caller& caller, CallId call, const Communicator& comm, std::uint64_t bytes);
  void arrival(const Communicator& comm, const Site& site, std::int64_t arrived, std::int64_t left,
               int root);
  void messages(const Caller& caller, CallId call, const MessageWait& more);
  // Adds an interval to the record. It may be called at any time, even in a signal handler, and
  // without lock().
  void event(const Site& site, What what, std::int64_t began, std::int64_t ended,
             std::uint16_t apart = 0);
  // Returns the index of the file in Record::modules, after adding it if necessary.
  std::uint32_t module_of(const char* file);
  // Removes recorded arrivals at collectives until at most `most` are left. All ranks remove the
  // same ones.
  void keep_arrivals(int most);

 private:
  Site& another(const Caller& caller, CallId call, const Communicator& comm);
  bool is_kept(std::uint64_t comm, std::uint32_t sequence) const;
  bool thin_out(std::uint32_t first);

  Record* record_ = nullptr;
  ShortLock lock_;
  std::atomic<std::int64_t> taken_ns_{0};
  char path_[kPath] = "", directory_[kPath] = "";
  // When the table of arrivals at collectives is full, some are removed: of this number of runs of
  // consecutive arrivals, one run is kept.
  std::uint32_t stride_ = 1;
};

extern Recorder recorder;

}  // namespace weft::advise
