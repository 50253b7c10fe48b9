// What one rank has recorded so far: its call sites, its calls, and when it came to collectives.
// Bounded: tables of a fixed size, whatever the number of calls.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "advise/callers.h"
#include "advise/record.h"

namespace weft::advise {

// Of an identity: which plan's starts these are, since each plan's have an order of their own; 0:
// all other calls.
inline constexpr std::uint64_t kWhichPlan = (1 << 20) - 1;

// A communicator as far as the record needs it.
struct Communicator {
  std::uint64_t identity = 0;  // the same on all its ranks
  std::uint64_t members = 0;   // of its group, as a number
  int rank = 0, size = 0, nodes = 0, kind = 0;
  bool inter = false;
  std::uint32_t sequence = 0;  // collective calls so far
  std::uint32_t plans = 0;     // persistent ones of them
};

// Held for some ten instructions at a time, by every call; a std::mutex takes thrice as long.
class ShortLock {
 public:
  void lock();
  void unlock() { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_;
};

class Recorder {
 public:
  // The file that holds the record while the rank runs; memory alone where there can be none.
  // The directory is made where this node has none of that name.
  void open();
  void remove_file();
  bool recording() const { return record_ != nullptr; }
  void give_up();
  void stop() { record_ = nullptr; }  // in a child, which has it from its parent
  Record& record() { return *record_; }
  const char* path() const { return path_; }
  ShortLock& lock() { return lock_; }

  // What recording has taken, about; `took` with the lock held.
  std::int64_t taken_ns() const { return taken_ns_.load(std::memory_order_relaxed); }
  void took(std::int64_t ns) {
    taken_ns_.store(taken_ns_.load(std::memory_order_relaxed) + ns, std::memory_order_relaxed);
  }

  // With the lock held.
  Site& site(const Caller& caller, CallId call, const Communicator& comm, std::uint64_t bytes);
  void arrival(const Communicator& comm, const Site& site, std::int64_t arrived, std::int64_t left,
               int root);
  void messages(const Caller& caller, CallId call, const MessageWait& more);
  // At any time, in a signal handler, too.
  void event(const Site& site, What what, std::int64_t began, std::int64_t ended,
             std::uint16_t apart = 0);
  // Finds the places of a site's touches that are not known yet.
  void note_touches(Site& site);
  // Thins the arrivals out until there are no more than so many.
  void keep_arrivals(int most);

 private:
  std::uint32_t module_of(const char* file);
  Site& another(const Caller& caller, CallId call, const Communicator& comm);
  bool is_kept(std::uint64_t comm, std::uint32_t sequence) const;
  bool thin_out(std::uint32_t first);

  Record* record_ = nullptr;
  ShortLock lock_;
  std::atomic<std::int64_t> taken_ns_{0};
  char path_[kPath] = "", directory_[kPath] = "";
  std::uint32_t stride_ = 1;  // every so many-th run of arrivals is kept
};

extern Recorder recorder;

// What this rank knows of a communicator; a reference that holds until that one is freed.
Communicator& communicator(MPI_Comm comm);
// It has been made of this parent. duplicate: with the parent's members; it need not be usable yet.
void note_communicator(MPI_Comm parent, MPI_Comm comm, bool duplicate);
void forget_communicator(MPI_Comm comm);

}  // namespace weft::advise
