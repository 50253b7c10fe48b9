#include "advise/check.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <tuple>

#include "advise/guard.h"
#include "advise/requests.h"
#include "advise/variables.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft::advise {

namespace {

constexpr int kFlights = 256;  // further operations are not checked

// The names are those of python/weft/check/rules.py.
constexpr char kSendWritten[] = "send-written", kReceiveTouched[] = "receive-touched",
               kOverlap[] = "overlap", kGone[] = "buffer-gone", kBelowStack[] = "stack-gone",
               kNeverCompleted[] = "never-completed";

struct Flight {
  std::uint64_t request = 0;  // 0: free
  InFlight memory;
  CallId call{};
  Caller caller;
  std::uint64_t sum = 0;
  bool summed = false;
  Instruction touch;     // of the first access that was seen; guarded by the guards' lock
  bool touched_written;  // a receive buffer
};
Flight flights[kFlights];
std::FILE* file = nullptr;
int own_rank = 0;
std::string program;

// The kernel says so without a change to the memory.
bool is_mapped(const Bytes& bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.begin) & ~(kPage - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.begin) + bytes.count;
  return msync(pointer(first), end - first, MS_ASYNC) == 0;
}

std::uint64_t sum_of(const Bytes& bytes) {
  std::uint64_t sum = bytes.count;
  const auto add = [&](std::uint64_t word) {
    sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    sum ^= sum >> 29;
  };
  std::size_t at = 0;
  for (; at + 8 <= bytes.count; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.begin + at, 8);
    add(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.begin + at, bytes.count - at);
  add(rest);
  return sum;
}

bool meet(const Bytes& one, const Bytes& other) {
  return one.count && other.count && one.begin < other.begin + other.count &&
         other.begin < one.begin + one.count;
}

Place named(Place place) {
  if (!place.file[0]) std::snprintf(place.file, sizeof place.file, "%s", program.c_str());
  return place;
}

// A line of the rank's file: rule, rank, call, its place, and the place of the access or of the
// other call. Each pair of places is told once.
void tell(const char* rule, const Flight& flight, const Place& other, const char* other_where) {
  static auto& told = *new std::set<std::tuple<std::string, std::uintptr_t, std::uint64_t>>;
  if (!file || !told.insert({rule, flight.caller.address, other.offset}).second) return;
  const Place start = named(place_of(flight.caller.address));
  std::fprintf(file, "%s\t%d\t%s\t%s\t%lu\t%s\t%s\t%lu\t%s\n", rule, own_rank,
               call_name(flight.call), start.file, start.offset, flight.caller.where, other.file,
               other.offset, other_where);
  std::fflush(file);
}

void tell_touch(const Flight& flight) {
  const Place by = flight.touch.address
                       ? named(toucher(flight.touch.address, flight.touch.returns_to))
                       : Place{};
  tell(flight.touched_written ? kReceiveTouched : kSendWritten, flight, by, "");
}

void tell_overlaps(const Flight& flight) {
  for (const Flight& other : flights)
    if (other.request && &other != &flight &&
        (meet(flight.memory.written, other.memory.written) ||
         meet(flight.memory.written, other.memory.read) ||
         meet(flight.memory.read, other.memory.written)))
      return tell(kOverlap, flight, named(place_of(other.caller.address)), other.caller.where);
}

void guard_side(int flight, const Bytes& side, bool read_only) {
  if (side.count && guard_affordable(side.count))
    guard_flight(flight, side.begin, side.count, read_only);
}

bool is_below(const Bytes& bytes, Called called) {
  const Thread* const me = this_record();
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.begin);
  return me && bytes.count && me->stack.meets(begin, begin + bytes.count) &&
         begin < reinterpret_cast<std::uintptr_t>(called.frame_end);
}

// Notes the instruction that touched a guard, which begins there: at the buffer's first byte, or at
// its first whole page. The guards' lock is held, perhaps in a signal handler.
void flight_touched(int number, std::uintptr_t begin, Instruction by) {
  Flight& flight = flights[number - 1];
  if (flight.touch.address) return;
  flight.touch = by;
  const Bytes& written = flight.memory.written;
  flight.touched_written = begin - reinterpret_cast<std::uintptr_t>(written.begin) < written.count;
}

}  // namespace

Bytes dense(const void* buffer, std::int64_t count, MPI_Datatype type) {
  const Bytes span = elements(buffer, count, type);
  int size = 0;
  if (!span.count || library_calls.Type_size(type, &size) != MPI_SUCCESS) return {};
  return span.count == static_cast<std::size_t>(count * size) ? span : Bytes{};
}

InFlight in_flight(const Call& call, const Communicator& comm) {
  if (comm.inter || is_neighborhood(call.kind)) return {};
  InFlight found{read_by_mpi(call, comm), received(call, comm), true};
  const bool scatters =
      call.kind == Kind::reduce_scatter || call.kind == Kind::reduce_scatter_block;
  if (found.written.count && has_gaps(call, comm)) found.written = {};
  if (found.read.count && (scatters || call.sendtypes || call.senddispls.is_array() ||
                           !dense(found.read.begin, 1, call.sendtype).count))
    found.read = {};
  return found;
}

void check_begins(const char* directory, int rank) {
  if (!std::getenv(kCheckVariable) || !directory) return;
  char path[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length > 0) program.assign(path, static_cast<std::size_t>(length));
  const std::string name = std::string(directory) + "/check-" + std::to_string(rank);
  file = std::fopen(name.c_str(), "we");
  own_rank = rank;
  checking = file != nullptr;
  touched_in_flight = flight_touched;
}

void check_started(std::uint64_t request, const InFlight& memory, CallId call,
                   const Caller& caller) {
  auto* const slot = std::find_if(std::begin(flights), std::end(flights),
                                  [](const Flight& one) { return one.request == 0; });
  if (slot == std::end(flights) || !request) return;
  *slot = Flight{};
  slot->request = request;
  slot->memory = memory;
  slot->call = call;
  slot->caller = caller;
  tell_overlaps(*slot);
  const Bytes& read = memory.read;
  if (read.count && guard_affordable(read.count) && !meet(read, memory.written)) {
    slot->sum = sum_of(read);
    slot->summed = true;
  }
  const int number = static_cast<int>(slot - flights) + 1;
  guard_side(number, read, true);
  guard_side(number, memory.written, memory.passed_on);
}

// MPI libraries give several operations that are complete already one handle: all of them end.
void check_completed(std::uint64_t request, Called called) {
  for (Flight& flight : flights) {
    if (flight.request != request) continue;
    const int number = static_cast<int>(&flight - flights) + 1;
    end_flight(number);
    const Bytes &read = flight.memory.read, &written = flight.memory.written;
    const bool gone = (read.count && !is_mapped(read)) || (written.count && !is_mapped(written));
    if (gone)
      tell(kGone, flight, {}, "");
    else if (is_below(read, called) || is_below(written, called))
      tell(kBelowStack, flight, {}, "");
    else if (flight.touch.address || (flight.summed && sum_of(read) != flight.sum))
      tell_touch(flight);
    flight.request = 0;
  }
}

void check_dropped(std::uint64_t request) {
  for (Flight& flight : flights) {
    if (flight.request != request) continue;
    end_flight(static_cast<int>(&flight - flights) + 1);
    flight.request = 0;
  }
}

void check_ends() {
  for (Flight& flight : flights) {
    if (!flight.request) continue;
    end_flight(static_cast<int>(&flight - flights) + 1);
    if (flight.touch.address) tell_touch(flight);
    tell(kNeverCompleted, flight, {}, "");
    flight.request = 0;
  }
  checking = false;
}

}  // namespace weft::advise
