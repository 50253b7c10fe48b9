#include "advise/check.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "advise/agreement.h"
#include "advise/findings.h"
#include "advise/guard.h"
#include "advise/guard_budget.h"
#include "advise/requests.h"
#include "advise/threads.h"
#include "advise/variables.h"
#include "advise/waits.h"

namespace weft::advise {

namespace {

constexpr int kFlights = 256;  // the number of operations in flight that can be watched at a time

struct Flight {
  std::uint64_t comm = 0;  // the communicator's handle as a number
  InFlight memory;
  CallId call{};
  Caller caller;
  // A copy of caller.where, since the interpreter may overwrite that text at its next call.
  char where[kWhere];
  std::uint64_t sum = 0;
  bool summed = false;
  bool overlaps = false;
  // True while the application is in a call that may complete the operation.
  bool asked = false;
  // The first wrong access to one of the operation's buffers. It may be written by a signal
  // handler, under the lock of class Locked.
  Instruction touch;
  // True if `touch` accessed the receive buffer; false if it wrote the send buffer.
  bool touched_written;
};
Flight flights[kFlights];
// The handles of the operations' requests as numbers; 0 for free entries.
std::uint64_t requests[kFlights];
int flights_end = 0;  // all entries from this index on are free

// Calls what(index) for each operation whose request has this handle. MPI libraries may give the
// same handle to several operations that are already complete.
template <class What>
void for_each_of(std::uint64_t request, What what) {
  for (int i = 0; request && i < flights_end; ++i)
    if (requests[i] == request) what(i);
}

// Stores the request in a free entry of the table. Returns the entry's index; -1 if there is none.
int take_entry(std::uint64_t request) {
  const auto free = std::find(requests, requests + kFlights, std::uint64_t{0});
  if (free == requests + kFlights || !request) return -1;
  *free = request;
  const int number = static_cast<int>(free - requests);
  flights_end = std::max(flights_end, number + 1);
  return number;
}

void end_watch(int number) {
  end_flight(number + 1);
}

void give_entry_back(int number) {
  requests[number] = 0;
  while (flights_end > 0 && requests[flights_end - 1] == 0) --flights_end;
}

void drop(int number) {
  end_watch(number);
  give_entry_back(number);
}

// Returns whether all pages of the range are mapped. msync(MS_ASYNC) fails if they are not, and
// does not change the memory.
bool is_mapped(const Bytes& bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.begin) & ~(kPage - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.begin) + bytes.count;
  return msync(pointer(first), end - first, MS_ASYNC) == 0;
}

// Returns a checksum of the bytes. It computes four sums in parallel: each step of one sum must
// wait for the step before, and the processor can overlap the four.
std::uint64_t sum_of(const Bytes& bytes) {
  constexpr std::size_t kSums = 4, kWord = sizeof(std::uint64_t);
  const std::int64_t began_ns = now_ns();
  std::uint64_t sums[kSums] = {bytes.count, 1, 2, 3};
  const auto add = [&](std::uint64_t& sum, std::size_t at, std::size_t count) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.begin + at, count);
    sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    sum ^= sum >> 29;
  };
  std::size_t at = 0;
  for (; at + kSums * kWord <= bytes.count; at += kSums * kWord)
    for (std::size_t i = 0; i < kSums; ++i) add(sums[i], at + i * kWord, kWord);
  for (; at < bytes.count; at += kWord) add(sums[0], at, std::min(kWord, bytes.count - at));
  for (std::size_t i = 1; i < kSums; ++i) sums[0] = sums[0] * 31 + sums[i];
  spent_ns.fetch_add(now_ns() - began_ns, std::memory_order_relaxed);
  return sums[0];
}

bool meet(const Bytes& one, const Bytes& other) {
  return one.count && other.count && one.begin < other.begin + other.count &&
         other.begin < one.begin + one.count;
}

Line start_of(const Flight& flight) {
  Line line = line_of(flight.call, flight.caller);
  line.where = flight.where;
  return line;
}

void tell(const char* rule, const Flight& flight, const Line& other = {}) {
  tell(rule, finding_rank(), start_of(flight), other);
}

void tell_touch(const Flight& flight) {
  Line by;
  if (flight.touch.address) by = line_of(toucher(flight.touch.address, flight.touch.returns_to));
  tell(flight.touched_written ? kReceiveTouched : kSendWritten, flight, by);
}

// Reports the operation, and marks it, if one of its buffers overlaps a buffer of another operation
// in flight. The checksums of marked operations are ignored, since each operation may change the
// other's buffer.
void tell_overlaps(Flight& flight) {
  for (int i = 0; i < flights_end; ++i) {
    Flight& other = flights[i];
    if (!requests[i] || other.asked || &other == &flight ||
        !(meet(flight.memory.written, other.memory.written) ||
          meet(flight.memory.written, other.memory.read) ||
          meet(flight.memory.read, other.memory.written)))
      continue;
    flight.overlaps = other.overlaps = true;
    return tell(kOverlap, flight, start_of(other));
  }
}

bool is_affordable(const Bytes& bytes) {
  return bytes.count && guard_affordable(bytes.count, kept_for_slice_ns());
}

void guard_side(int number, const Bytes& side, bool read_only) {
  if (is_affordable(side)) guard_flight(number + 1, side.begin, side.count, read_only);
}

bool is_below(const Bytes& bytes, Called called) {
  const Thread* const me = this_record();
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.begin);
  return me && bytes.count && me->stack.meets(begin, begin + bytes.count) &&
         begin < reinterpret_cast<std::uintptr_t>(called.frame_end);
}

// Notes that an instruction has accessed a protected buffer of operation `number` in flight. begin:
// the first protected byte. It is called by the code that handles page faults, perhaps in a signal
// handler, so it must not block.
void flight_touched(int number, std::uintptr_t begin, Instruction by) {
  Flight& flight = flights[number - 1];
  if (flight.touch.address) return;
  flight.touch = by;
  const Bytes& written = flight.memory.written;
  flight.touched_written = begin - reinterpret_cast<std::uintptr_t>(written.begin) < written.count;
}

}  // namespace

void check_begins(const char* directory, int rank, int ranks) {
  if (!std::getenv(kCheckVariable) || !directory) return;
  findings_begin(directory, rank);
  agreement_begins(directory);
  waits_begin(directory, rank, ranks);
  checking = findings_go();
  touched_in_flight = flight_touched;
}

void check_started(std::uint64_t request, const InFlight& memory, std::uint64_t comm, CallId call,
                   const Caller& caller) {
  // The table may still contain an older operation with the same handle. It has been completed by a
  // call that has not reported this yet, for instance in another thread. It is dropped.
  for_each_of(request, [](int i) {
    if (flights[i].asked) drop(i);
  });
  const int number = take_entry(request);
  if (number < 0) return;
  Flight& flight = flights[number];
  flight = Flight{};
  flight.comm = comm;
  flight.memory = memory;
  flight.call = call;
  flight.caller = caller;
  std::snprintf(flight.where, sizeof flight.where, "%s", caller.where);
  tell_overlaps(flight);
  const Bytes& read = memory.read;
  if (is_affordable(read) && !meet(read, memory.written)) {
    flight.sum = sum_of(read);
    flight.summed = true;
  }
  guard_side(number, read, true);
  guard_side(number, memory.written, memory.passed_on);
}

void check_asked(std::uint64_t request) {
  for_each_of(request, [](int i) { flights[i].asked = true; });
}

void check_incomplete(std::uint64_t request) {
  for_each_of(request, [](int i) { flights[i].asked = false; });
}

// Ends the watching of all operations whose request has this handle, and reports wrong accesses.
// Several operations may have the same handle: MPI libraries do this for operations that complete
// at once.
void check_completed(std::uint64_t request, Called called) {
  for_each_of(request, [&](int i) {
    const Flight& flight = flights[i];
    end_watch(i);
    const Bytes &read = flight.memory.read, &written = flight.memory.written;
    const bool gone = (read.count && !is_mapped(read)) || (written.count && !is_mapped(written));
    if (gone)
      tell(kGone, flight);
    else if (is_below(read, called) || is_below(written, called))
      tell(kBelowStack, flight);
    else if (flight.touch.address ||
             (flight.summed && !flight.overlaps && sum_of(read) != flight.sum))
      tell_touch(flight);
    give_entry_back(i);
  });
}

void check_communicator_ends(std::uint64_t comm, CallId call, const Caller& caller) {
  for (int i = 0; i < flights_end; ++i)
    if (requests[i] && !flights[i].asked && flights[i].comm == comm)
      tell(kCommFreed, flights[i], line_of(call, caller));
}

void check_dropped(std::uint64_t request) {
  for_each_of(request, drop);
}

void check_ends() {
  for (int i = 0; i < kFlights; ++i) {
    if (!requests[i]) continue;
    const Flight& flight = flights[i];
    end_watch(i);
    if (!flight.asked) {
      if (flight.touch.address) tell_touch(flight);
      tell(kNeverCompleted, flight);
    }
    give_entry_back(i);
  }
  checking = false;
}

}  // namespace weft::advise
