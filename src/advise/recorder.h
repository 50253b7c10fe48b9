// What one rank has recorded so far: its call sites, its calls, and when it came to collectives.
// Bounded: tables of a fixed size, whatever the number of calls.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <mutex>

#include "advise/callers.h"
#include "advise/record.h"

namespace weft::advise {

// A communicator as far as the record needs it.
struct Communicator {
  std::uint64_t identity = 0;  // the same on all its ranks
  int rank = 0, size = 0, nodes = 0, kind = 0;
  bool inter = false;
  std::uint32_t sequence = 0;  // collective calls so far
};

class Recorder {
 public:
  // The file that holds the record while the rank runs; memory alone where there can be none.
  void open();
  bool recording() const { return record_ != nullptr; }
  void give_up();
  Record& record() { return *record_; }
  const char* path() const { return path_; }
  std::mutex& lock() { return lock_; }

  // With the lock held.
  Site& site(const Caller& caller, CallId call, const Communicator& comm, std::uint64_t bytes);
  void arrival(const Communicator& comm, const Site& site, std::int64_t arrived, std::int64_t left,
               int root);
  // At any time, in a signal handler, too.
  void event(const Site& site, What what, std::int64_t began, std::int64_t ended);
  // Thins the arrivals out until there are no more than so many.
  void keep_arrivals(int most);

 private:
  std::uint32_t module_of(const char* file);
  Site& another(const Caller& caller, CallId call, const Communicator& comm);
  void thin_out();

  Record* record_ = nullptr;
  std::mutex lock_;
  char path_[kPath] = "";
  std::uint32_t stride_ = 1;  // every so many-th arrival is kept
};

extern Recorder recorder;

// What this rank knows of a communicator; a reference that holds until that one is freed.
Communicator& communicator(MPI_Comm comm);
void forget_communicator(MPI_Comm comm);

}  // namespace weft::advise
