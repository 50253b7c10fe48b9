// What the wrappers of collectives offer to Weft.
#pragma once

#include <mpi.h>

#include <atomic>

#include "library/generated/call_ids.h"
#include "transport/mpi/call.h"

namespace weft {

struct Site;

struct Plan;

// True: Weft took the call, *request and *code are the application's. False: nothing was posted.
// known: its plan; nullptr: to be asked for.
bool start(CallId id, const Call& call, const Plan* known, MPI_Request* request, int* code);
// The same for a persistent initialisation; Weft takes every one that the library lacks.
bool initialise(CallId id, const Call& call, bool in_library, MPI_Request* request, int* code);
inline std::atomic<bool> blocking_taken{false};  // true while a runtime is active that takes them
// True: Weft carried the whole collective out, *code is the application's. known: as of start().
bool carry_out(CallId id, const Call& call, const Plan* known, int* code);
// Lives while the library carries out a blocking collective that carry_out() has declined: engine
// auto may want to know how long that takes (runtime/adaptive/sites.h).
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

  // Whose next call on this thread is to be measured; nullptr: none. What the library calls inside
  // is none of it.
  static inline constinit thread_local Site* declined_at
      __attribute__((tls_model("initial-exec"))) = nullptr;

 private:
  void begin();
  void end() const;

  Site* const site_;
  long long began_ns_ = 0;
};
// A non-blocking collective or persistent initialisation that the library carried out.
void passed_on(CallId id, MPI_Request* request, int code);

}  // namespace weft
