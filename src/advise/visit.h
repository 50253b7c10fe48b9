// A Visit records one MPI call of the application, from its beginning to its return. Each of the
// advisor's wrappers creates one.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "advise/call_times.h"
#include "advise/callers.h"
#include "advise/check.h"
#include "advise/guard.h"
#include "advise/recorder.h"
#include "advise/requests.h"
#include "advise/waits.h"
#include "base/clock.h"
#include "base/left_calls.h"
#include "library/generated/call_ids.h"
#include "library/generated/next_calls.h"
#include "library/search.h"
#include "transport/mpi/call.h"

namespace weft::advise {

struct Times {
  std::int64_t began_ns, left_ns;
};

// Returns the number of elements of a message: `count`, or 0 if the peer is MPI_PROC_NULL.
constexpr std::int64_t passed(int peer, std::int64_t count) {
  return peer == MPI_PROC_NULL ? 0 : count;
}

class Visit {
 public:
  // Begins the recording of a call. profiling: whether the application called PMPI_X instead of
  // MPI_X. Such a call is not recorded if the MPI library itself makes it. called: its return
  // address and stack frame.
  Visit(CallId id, bool profiling, Called called);
  // A faster constructor for calls that never wait; a program may make a million of them per
  // second.
  [[gnu::always_inline]] Visit(CallId id, bool profiling, Called called, Waits waits)
      : before_(bits_at_begin(called.frame_end)),
        records_(!(before_ & kInside) && recorder.recording() &&
                 !(profiling && from_library(called.address))),
        watching_(records_ && !checking && guards_exist()),
        timed_(records_ && !checking && is_timed(id, waits)),
        enters_(!(before_ & kInside) && !(waits == Waits::never && nobody_looks())),
        id_(id),
        called_(called),
        began_ns_(timed_ ? now_ns() : 0) {
    this_thread.is = static_cast<std::uint8_t>(kInside | (profiling ? kProfiling : 0));
    if (enters_) in_mpi.begin();
  }
  [[gnu::always_inline]] ~Visit() {
    if (waits_) published.end();
    if (timed_ && !counted_) count_now();
    if (enters_) in_mpi.end();
    this_thread.is = before_;
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Says whether MPI reads or writes a buffer.
  enum class Use : std::uint8_t { read, written };
  // Says how MPI will use a buffer of unknown size, so that an access to a watched buffer is
  // noticed. It must be called before the MPI call, for each of its buffers.
  void buffer(Use use, const void* begin) {
    if (watching_) given_to_mpi(begin, SIZE_MAX, use == Use::written, here());
  }
  void buffer(Use use, const void* begin, std::int64_t count, MPI_Datatype type);
  void collective(const Call& call);
  void unknown_memory() {
    if (watching_) release_all_guards(Unknown::mpi_call);
  }

  // The following functions record the call. They must be called after the MPI call; `code` is its
  // result, which they return.
  int blocking(const Call& call, int code);
  int started(const Call* call, MPI_Request* request, int code);
  int started_message(std::int64_t count, MPI_Datatype type, MPI_Comm comm,
                      const MPI_Request* request, int code);
  void completing(std::int64_t count, const MPI_Request* requests) {
    notes_ = records_ || (checking && is_callbacks());
    if (!notes_) return;
    count_ = count;
    noted_ = requests_noted();
    if (count > kFew) many_ = std::make_unique<MPI_Request[]>(static_cast<std::size_t>(count));
    std::copy_n(requests, count, many_ ? many_.get() : few_);
    if (checking) ask();
  }
  // Describes the output arguments of a call that completes requests.
  struct Ends {
    bool tests = false;          // true if the call is a test; false if it waits
    bool all = false;            // whether all requests are complete whenever any() returns true
    const int* flag = nullptr;   // output argument `flag`; nullptr if the call has none
    const int* count = nullptr;  // number of `indices`; nullptr if there is one
    // Output argument with the completed requests; nullptr if the call has none.
    const int* indices = nullptr;

    bool any() const { return (!flag || *flag != 0) && (!count || *count > 0); }
    int named() const { return !indices || !any() ? 0 : count ? *count : 1; }
  };
  int completed(const MPI_Request* requests, int code, const Ends& ends) {
    const bool nothing = !notes_ || !requests;
    // The result of an unsuccessful test matters only if collectives are pending, or under `weft
    // check`.
    const bool in_vain =
        ends.tests && !ends.any() && !timed_ && !collectives_pending() && !checking;
    return nothing || in_vain ? code : note_completed(requests, code, ends);
  }
  int planned(const Call& call, const MPI_Request* request, int code);
  // Records the initialisation of a persistent message. use: how MPI uses the buffer; nullopt if
  // its parts are passed to MPI at different times (partitioned messages).
  int planned_message(std::optional<Use> use, const void* begin, std::int64_t count,
                      MPI_Datatype type, MPI_Comm comm, const MPI_Request* request, int code);
  void freed(const MPI_Request* request);  // records MPI_Request_free; must be called before it
  // Says which buffers these persistent requests will pass to MPI, so that accesses to watched
  // buffers are noticed. It must be called before the MPI call that starts them.
  void starting(std::int64_t count, const MPI_Request* requests);
  int activated(std::int64_t count, const MPI_Request* requests, int code);
  int window_made(int code);
  int window_freed(int code);
  int begun(int code);  // begins the recording; must be called after MPI_Init
  void ending();        // ends the recording; must be called before MPI_Finalize
  int made(MPI_Comm parent, const MPI_Comm* comm, bool duplicate, int code);
  void forgets(MPI_Comm comm);

 private:
  const std::uint8_t before_;
  bool records_;
  const bool watching_;
  const bool timed_;
  // True if this call sets in_mpi. Other threads and the handlers of page faults and system calls
  // then see that the thread is inside MPI.
  bool enters_;
  const CallId id_;
  const Called called_;
  const std::int64_t began_ns_;
  std::int64_t left_ns_ = 0;
  // Bounds on the time since the program last wrote the call's send buffer, if that was watched.
  std::optional<Unwritten> unwritten_;
  Instruction here() const { return {caller_address(called_), 0}; }
  Times times_for(const Pending& pending) const;
  // Adds this call to the totals of its MPI function. Recorder::lock() must be held.
  void count(std::int64_t left_ns);
  void count_now();
  int note_completed(const MPI_Request* requests, int code, const Ends& ends);
  bool is_callbacks() const;
  const MPI_Request* before() const { return many_ ? many_.get() : few_; }
  void ask() const;
  struct Completed;
  struct Results;
  void check(MPI_Request request, const InFlight& memory, std::uint64_t comm, const Caller& caller);
  void check_operation(const Call& call, MPI_Request request);
  void check_planned(std::int64_t count, const MPI_Request* requests);
  void compare(const Call& call);
  void note_messages(Completed& completed);
  void watch_results(const Results& results);
  bool counted_ = false;
  // True if `weft check` sees this call as the one that the rank is in (waits.h).
  bool waits_ = false;
  bool notes_ = false;  // true if the requests that this call completes are recorded
  static constexpr int kFew = 128;
  MPI_Request few_[kFew];  // handles of the requests before the call
  std::unique_ptr<MPI_Request[]> many_;
  std::int64_t count_ = 0;
  std::uint64_t noted_ = 0;  // number of requests recorded before the call
  InFlight memory_;          // buffers of the message that this call starts
};

}  // namespace weft::advise
