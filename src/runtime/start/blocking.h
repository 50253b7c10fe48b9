// Carries out blocking collectives by their caller.
#pragma once

#include <atomic>

#include "library/generated/call_ids.h"
#include "runtime/start/started.h"
#include "transport/mpi/call.h"

namespace weft {

inline std::atomic<bool> blocking_taken{false};  // true while a runtime is active that carries out
                                                 // blocking collectives
// Carries the whole blocking collective out, or declines it in favour of the library. known: the
// call's plan; nullptr if it must be looked up.
Started carry_out(CallId id, const Call& call, const Plan* known);

// Measures, while it lives, how long the library takes for a blocking collective that carry_out()
// has declined, if engine auto needs this time.
class DeclinedCall {
 public:
  explicit DeclinedCall(const Started& declined) : call_class_(declined.call_class) {
    if (call_class_) [[unlikely]]
      begin();
  }
  ~DeclinedCall() {
    if (call_class_) [[unlikely]]
      end();
  }
  DeclinedCall(const DeclinedCall&) = delete;
  DeclinedCall& operator=(const DeclinedCall&) = delete;

 private:
  void begin();
  void end() const;

  CallClass* const call_class_;
  long long began_ns_ = 0;
};

}  // namespace weft
