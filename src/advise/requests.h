// Keeps the application's incomplete requests, with what is known about the calls that started
// them.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "advise/extents.h"
#include "advise/record.h"
#include "advise/samples.h"

namespace weft::advise {

struct Pending {
  std::uint64_t request = 0;  // handle as a number; 0 if the entry is unused
  Site* site = nullptr;       // site of a non-blocking collective; nullptr for a message
  bool is_message = false;
  // The number of messages with this handle. An MPI library may give the same handle to several
  // messages that are already sent.
  std::uint32_t times = 1;
  std::uint64_t bytes = 0;  // size of the message
  // Time of the start; messages started in a row share that of the first.
  std::int64_t began_ns = 0;
  std::uint32_t tests = 0;
  std::uint64_t order = 0;  // 1 plus the number of requests recorded before
  // The receive buffer, if it is to be watched after the completion of a collective.
  Sample sample{};
};

// A persistent collective or message, with the values to record whenever it is started.
struct Planned {
  Site* site = nullptr;  // nullptr for a message
  // For a collective: a copy of the communicator's record, in which the starts of this request are
  // counted separately.
  Communicator starts{};
  std::uint64_t bytes = 0;
  std::uint64_t arguments = 0;
  int root = 0;
  // True for a partitioned message, whose partitions are passed to MPI one by one.
  bool in_parts = false;
  // The buffers that MPI uses while the request is active. sent: bytes that the program wrote for
  // this call. read: all bytes that MPI reads.
  Bytes sent{}, read{};
  Sample result{};         // buffer that MPI writes
  InFlight in_flight{};    // buffers of the operation, for `weft check`
  std::uint64_t comm = 0;  // the communicator's handle as a number, for `weft check`
};

template <class Handle>
std::uint64_t number_of(Handle handle) {
  std::uint64_t number = 0;
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

// Returns how many requests have been recorded so far. It needs no lock.
std::uint64_t requests_noted();
// Recorder::lock() must be held when the following functions are called, except where noted.
void note_request(MPI_Request request, Site* site, std::int64_t began_ns, const Sample& sample);
// Records the request of a message. called: the return address of the MPI call that started it.
void note_message(MPI_Request request, std::uint64_t bytes, const void* called);
// Returns the entry of a request; nullptr if the table does not contain it.
Pending* find_request(std::uint64_t request);
void drop_request(Pending& pending);
void note_planned(MPI_Request request, const Planned& planned);
Planned* find_planned(MPI_Request request);  // returns nullptr if the request is not persistent
void drop_planned(MPI_Request request);
// The number of incomplete requests that belong to collectives. collectives_pending() returns
// whether there are any; it needs no lock.
extern std::atomic<int> pending_collectives;
inline bool collectives_pending() {
  return pending_collectives.load(std::memory_order_relaxed) > 0;
}
// Returns whether any operation of the application is incomplete. Such an operation may use memory
// on the same page as a buffer whose pages are to be protected.
bool operations_pending();

}  // namespace weft::advise
