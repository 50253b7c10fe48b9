// The requests of the application that have not completed, and what began them.
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
  std::uint64_t request = 0;  // its handle as a number; 0: free
  Site* site = nullptr;       // of a non-blocking collective
  bool is_message = false;
  std::uint32_t times = 1;    // messages: a library may give several that it has sent one handle
  std::uint64_t bytes = 0;    // of a message
  std::int64_t began_ns = 0;  // of messages that are started in a row the first one's
  std::uint32_t tests = 0;
  std::uint64_t order = 0;  // one more than of the request noted before
  Sample sample{};          // of a collective
};

// A persistent collective or message: what each of its starts counts for.
struct Planned {
  Site* site = nullptr;   // nullptr: a message
  Communicator starts{};  // of a collective: the communicator, with this plan's own sequence
  std::uint64_t bytes = 0;
  std::uint64_t arguments = 0;
  int root = 0;
  bool in_parts = false;   // a message, whose parts are given to MPI one by one
  Bytes sent{}, read{};    // from a start on; sent: the caller wrote it for this call
  Sample result{};         // and what MPI writes then
  InFlight in_flight{};    // for `weft check`
  std::uint64_t comm = 0;  // likewise: its handle as a number
};

template <class Handle>
std::uint64_t number_of(Handle handle) {
  std::uint64_t number = 0;
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

// Returns the number of requests noted so far; needs no lock.
std::uint64_t requests_noted();
// The following functions need the recorder's lock.
void note_request(MPI_Request request, Site* site, std::int64_t began_ns, const Sample& sample);
// called: the place where the message was started.
void note_message(MPI_Request request, std::uint64_t bytes, const void* called);
Pending* find_request(std::uint64_t request);  // nullptr: not one of them
void drop_request(Pending& pending);
void note_planned(MPI_Request request, const Planned& planned);
Planned* find_planned(MPI_Request request);  // nullptr: it is none of them
void drop_planned(MPI_Request request);
// Returns whether some request is a collective's; needs no lock.
extern std::atomic<int> pending_collectives;
inline bool collectives_pending() {
  return pending_collectives.load(std::memory_order_relaxed) > 0;
}
// Returns whether an incomplete operation may use memory beside a result.
bool operations_pending();

}  // namespace weft::advise
