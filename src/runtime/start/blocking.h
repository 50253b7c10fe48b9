// Carries out blocking collectives on the calling thread.
#pragma once

#include <atomic>

#include "library/generated/call_ids.h"
#include "runtime/start/started.h"
#include "transport/mpi/call.h"

namespace weft {

// True while Weft carries out blocking collectives.
inline std::atomic<bool> blocking_taken{false};
// Carries out a blocking collective to its end, or declines it; the MPI library must then carry it
// out. known: the call's plan; nullptr if it must be looked up.
Started carry_out(CallId id, const Call& call, const Plan* known);

// Measures how long the MPI library takes for a blocking collective that carry_out() has declined,
// if engine auto needs this time. The measurement lasts as long as the object lives.
class DeclinedCall {
 public:
  explicit DeclinedCall(const Started& declined)
      : call_class_(declined.call_class), watch_(declined.is_watched ? declined.watch : nullptr) {
    if (call_class_ || watch_) [[unlikely]]
      begin();
  }
  ~DeclinedCall() {
    if (call_class_ || watch_) [[unlikely]]
      end();
  }
  DeclinedCall(const DeclinedCall&) = delete;
  DeclinedCall& operator=(const DeclinedCall&) = delete;

 private:
  void begin();
  void end() const;

  CallClass* const call_class_;
  NativeWatch* const watch_;
  long long began_ns_ = 0;
};

}  // namespace weft
