// Hooks: what the generated wrappers call; written by hand in hooks.cc.
// Why: a wrapper knows its call's arguments and nothing else; the decisions are taken here.
// bodies.h (generated) declares the wrapper bodies that are written out one by one.
#pragma once

#include <mpi.h>

#include "interpose/generated/call_ids.h"
#include "schedule/collective.h"

namespace weft::interpose {

// One collective call with its arguments as the application gave them. Reductions and bcast have
// send and recv alike; what a call has not is value-initialised (which need not be a null handle).
struct Call {
  Kind kind;
  const void* sendbuf;
  void* recvbuf;
  int sendcount;
  MPI_Datatype sendtype;
  int recvcount;
  MPI_Datatype recvtype;
  MPI_Op op;
  int root;
  MPI_Comm comm;
};

// Marks this thread as inside a wrapper while it lives. Nested: the thread already was, so the
// call comes from the MPI library or from Weft, and goes on untouched.
class Entry {
 public:
  Entry();
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  bool nested() const { return nested_; }

 private:
  bool nested_;
};

// Lives while the application is inside a call that may wait for another process.
class BlockingCall {
 public:
  explicit BlockingCall(CallId id);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;
};

// Binds next_calls; may be called by several threads at once.
void bind_now();
// The application called what no library in the chain has: says so and aborts.
[[noreturn]] void missing_call(CallId id);

// True: Weft took the call, *request and *code are the application's. False: nothing was posted.
bool start(const Call& call, MPI_Request* request, int* code);
// A non-blocking collective or persistent initialisation that the library carried out.
void passed_on(CallId id, MPI_Comm comm, MPI_Request* request, int code);
// The library returned `code` and, if that is success, a new communicator (which is a null handle
// on ranks that are no members). `comm` is value-initialised where the call has no old one.
void communicator_created(MPI_Comm comm, MPI_Comm* new_comm, int code);
// The application entered MPI without blocking: an opportunity for progress.
void poll();

}  // namespace weft::interpose
