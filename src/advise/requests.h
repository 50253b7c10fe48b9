// The application's incomplete requests, and the calls that started them.
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
  std::uint64_t request = 0;  // handle as a number; 0: the entry is free
  Site* site = nullptr;       // site of a non-blocking collective; nullptr: a message
  bool is_message = false;
  // Number of messages: a library may give several sent ones the same handle.
  std::uint32_t times = 1;
  std::uint64_t bytes = 0;    // size of the message
  std::int64_t began_ns = 0;  // start time; a series of messages shares that of the first
  std::uint32_t tests = 0;
  std::uint64_t order = 0;  // 1 plus the number of requests noted before
  Sample sample{};          // result buffer of a collective to be watched
};

// A persistent collective or message, with the values to be recorded at each of its starts.
struct Planned {
  Site* site = nullptr;  // nullptr: a message
  // For a collective: the communicator, with the request's own sequence number.
  Communicator starts{};
  std::uint64_t bytes = 0;
  std::uint64_t arguments = 0;
  int root = 0;
  bool in_parts = false;  // a partitioned message, whose partitions are passed to MPI one by one
  Bytes sent{}, read{};  // buffers from a start on; sent: bytes that the caller wrote for this call
  Sample result{};       // buffer that MPI writes
  InFlight in_flight{};  // buffers of the operation, for `weft check`
  std::uint64_t comm = 0;  // communicator's handle as a number, for `weft check`
};

template <class Handle>
std::uint64_t number_of(Handle handle) {
  std::uint64_t number = 0;
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

// Returns the number of requests noted so far; needs no lock.
std::uint64_t requests_noted();
// The following functions need the recorder's lock, except where noted.
void note_request(MPI_Request request, Site* site, std::int64_t began_ns, const Sample& sample);
// called: return address of the call that started the message.
void note_message(MPI_Request request, std::uint64_t bytes, const void* called);
Pending* find_request(std::uint64_t request);  // returns nullptr if it is not in the table
void drop_request(Pending& pending);
void note_planned(MPI_Request request, const Planned& planned);
Planned* find_planned(MPI_Request request);  // returns nullptr if it is not persistent
void drop_planned(MPI_Request request);
// collectives_pending() returns whether some request belongs to a collective. It needs no lock.
extern std::atomic<int> pending_collectives;
inline bool collectives_pending() {
  return pending_collectives.load(std::memory_order_relaxed) > 0;
}
// Returns whether an incomplete operation may use memory beside a result.
bool operations_pending();

}  // namespace weft::advise
