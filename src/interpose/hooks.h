// Hooks: what the generated wrappers call; written by hand in start.cc, runtime.cc, bind.cc.
// Why: a wrapper knows its call's arguments and nothing else; the decisions are taken here.
// bodies.h (generated) declares the wrapper bodies that are written out one by one
// (completion.cc, lifecycle.cc, objects.cc).
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>

#include "interpose/generated/call_ids.h"
#include "interpose/generated/next_calls.h"
#include "interpose/this_thread.h"
#include "interpose/watchdog.h"
#include "transport/mpi/call.h"

namespace weft::interpose {

using weft::Call;

struct Site;

// Marks this thread as inside a wrapper while it lives. profiling: by the name PMPI_X. Nested: the
// thread already was, or the caller says so. The call comes from inside the MPI library or Weft: no
// collective of it is Weft's, but what it does to objects that Weft knows counts.
class Entry {
 public:
  explicit Entry(bool profiling = false, bool nested = false)
      : before_(this_thread), nested_(nested || (before_ & kInside)) {
    this_thread = profiling ? kInside | kProfiling : kInside;
  }
  ~Entry() { this_thread = before_; }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  bool nested() const { return nested_; }

 private:
  const std::uint8_t before_;
  const bool nested_;
};

// Lives while the application is inside a call that may wait for another process: meanwhile the
// progress thread takes over what the caller would have advanced. Where there may be no thread,
// the call is made in its non-blocking form and the caller goes on helping.
class BlockingCall {
 public:
  explicit BlockingCall(CallId id);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  // No thread can take anything over. Says the same on all ranks and at all times, since the
  // blocking and the non-blocking form of a collective do not match each other.
  bool must_not_block() const { return alone_; }
  // Starts the call by `post` and helps until it has completed. status: nullptr to ignore it.
  int drive(const std::function<int(MPI_Request*)>& post, MPI_Status* status);
  // Repeats the non-blocking form until it says `flag`, helping.
  int repeat(const std::function<int(int*)>& ask);

  // The call is collective: those that are held on this communicator go first (interpose/sites.h).
  void after_held(MPI_Comm comm);
  // Where the call must not block, is collective and has no non-blocking form: helps until all its
  // ranks are in it, which then wait for each other only (all_in_call.cc).
  void meet(MPI_Comm comm);
  void meet_of_file(MPI_File file);
  void meet_of_window(MPI_Win window);
  // On which communicator they can do so.
  void opened_file(MPI_File file, MPI_Comm comm);
  void closed_file(MPI_File file);
  void opened_window(MPI_Win window, MPI_Comm comm);
  void freed_window(MPI_Win window);

 private:
  const CallId id_;
  const WatchedCall watched_{id_};
  bool handed_over_ = false;
  bool alone_ = false;
  long long began_ns_ = 0;  // 0: no trace
};

// Binds next_calls; may be called by several threads at once.
void bind_now();
// Whether this address lies in the MPI library, which calls itself by PMPI_ names.
bool from_library(const void* caller);
// The application called what no library in the chain has: says so and aborts.
[[noreturn]] void missing_call(CallId id);

// True: Weft took the call, *request and *code are the application's. False: nothing was posted.
bool start(CallId id, const Call& call, MPI_Request* request, int* code);
// The same for a persistent initialisation; Weft takes every one that the library lacks.
bool initialise(CallId id, const Call& call, bool in_library, MPI_Request* request, int* code);
// Blocking collectives are offered to carry_out().
inline std::atomic<bool> blocking_taken{false};  // true while a runtime is active that takes them
inline bool blocking_wanted() {
  return blocking_taken.load(std::memory_order_acquire);
}
// True: Weft carried the whole collective out, *code is the application's.
bool carry_out(CallId id, const Call& call, int* code);
// Lives while the library carries out a blocking collective that carry_out() has declined: engine
// auto may want to know how long that takes (interpose/sites.h).
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
// The library returned `code` and, if that is success, a new communicator (which is a null handle
// on ranks that are no members).
void communicator_created(MPI_Comm* new_comm, int code);
// The application entered MPI without blocking: an opportunity for progress.
void poll();

}  // namespace weft::interpose
