// The entry points that the wrappers of collectives call.
#pragma once

#include <mpi.h>

#include <atomic>

#include "library/generated/call_ids.h"
#include "transport/mpi/call.h"

namespace weft {

struct Site;

struct Plan;

// Returns true if Weft took the call; *request and *code are then the application's. Returns false
// if nothing was posted. known: the call's plan; nullptr if it must be looked up.
bool start(CallId id, const Call& call, const Plan* known, MPI_Request* request, int* code);
// Does likewise for a persistent initialisation; Weft takes every one that the library lacks.
bool initialise(CallId id, const Call& call, bool in_library, MPI_Request* request, int* code);
inline std::atomic<bool> blocking_taken{false};  // true while a runtime is active that takes them
// Returns true if Weft carried out the whole collective; *code is then the application's. known: as
// for start().
bool carry_out(CallId id, const Call& call, const Plan* known, int* code);
// Lives while the library carries out a blocking collective that carry_out() has declined: engine
// auto may need its duration (runtime/adaptive/sites.h).
class DeclinedCall {
 public:
  DeclinedCall() : site_(declined_at) {
    if (site_) [[unlikely]]
      begin();
  }
  ~DeclinedCall() {
    if (site_) [[unlikely]]
      end();
  }
  DeclinedCall(const DeclinedCall&) = delete;
  DeclinedCall& operator=(const DeclinedCall&) = delete;

  // The site whose next call on this thread is to be measured; nullptr if there is none. Calls that
  // the library makes inside do not count.
  static inline constinit thread_local Site* declined_at
      __attribute__((tls_model("initial-exec"))) = nullptr;

 private:
  void begin();
  void end() const;

  Site* const site_;
  long long began_ns_ = 0;
};
// Is called for a non-blocking collective or persistent initialisation that the library carried
// out.
void passed_on(CallId id, MPI_Request* request, int code);

}  // namespace weft
