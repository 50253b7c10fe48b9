// Visit: one call of MPI by the application, from its begin to its return. What the generated
// wrappers of the advisor use; every one makes one.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "advise/call_times.h"
#include "advise/callers.h"
#include "advise/guard.h"
#include "library/generated/call_ids.h"
#include "library/generated/next_calls.h"
#include "transport/mpi/call.h"

namespace weft::advise {

struct Pending;

struct Times {
  std::int64_t began_ns, left_ns;
};

class Visit {
 public:
  // profiling: by the name PMPI_X; from inside MPI nothing is recorded.
  Visit(CallId id, bool profiling, Called called, Waits waits = Waits::perhaps);
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Before the call: what it is given.
  void buffer(const void* begin) {
    if (watching_) given_to_mpi(begin, SIZE_MAX, true);
  }
  void buffer(const void* begin, std::int64_t count, MPI_Datatype type);
  void collective(const Call& call);
  void unknown_memory() {
    if (watching_) release_all_guards(Unknown::mpi_call);
  }

  // After it.
  int blocking(const Call& call, int code);
  int started(const Call* call, MPI_Request* request, int code);
  void completing(std::int64_t count, const MPI_Request* requests);
  // all: none of them may be incomplete when the call, or its flag, says so.
  int completed(const MPI_Request* requests, int code, bool all, const int* flag = nullptr);
  int activated(std::int64_t count, const MPI_Request* requests, int code);
  int window_made(int code);
  int window_freed(int code);
  int begun(int code);  // MPI_Init
  void ending();        // MPI_Finalize
  void forgets(MPI_Comm comm);

 private:
  const std::uint8_t before_;
  bool records_;
  const bool watching_;
  const bool timed_;
  const CallId id_;
  const Called called_;
  const std::int64_t began_ns_;
  std::int64_t left_ns_ = 0;
  std::optional<Bounds> unwritten_;  // how long what is sent was left alone before
  Times times_for(const Pending& pending) const;
  void count(std::int64_t left_ns);  // with the recorder's lock held
  bool counted_ = false;
  static constexpr int kFew = 128;
  MPI_Request few_[kFew];
  std::int64_t count_ = 0;
};

}  // namespace weft::advise
