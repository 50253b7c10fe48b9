// Keeps the application's incomplete requests in a hash table of fixed size, with open addressing.
// Once a request did not fit into the table, operations_pending() always returns true.
#include "advise/requests.h"

#include <algorithm>
#include <unordered_map>

#include "base/clock.h"

namespace weft::advise {

std::atomic<int> pending_collectives{0};

namespace {

constexpr std::size_t kPlaces = 8192;
constexpr std::size_t kMost = kPlaces / 2;
constinit Pending table[kPlaces];
std::size_t used = 0;
bool overflowed = false;
std::atomic<std::uint64_t> noted{0};

// Returns all persistent requests, by handle. The map is never destroyed, since it may be used
// while the process exits.
std::unordered_map<std::uint64_t, Planned>& all_planned() {
  static auto& all = *new std::unordered_map<std::uint64_t, Planned>;
  return all;
}

// Adds `change` to the number of pending collectives. Recorder::lock() must be held.
void count_collectives(int change) {
  const int before = pending_collectives.load(std::memory_order_relaxed);
  pending_collectives.store(before + change, std::memory_order_relaxed);
}

std::size_t home_of(std::uint64_t request) {
  return static_cast<std::size_t>((request * UINT64_C(0x9e3779b97f4a7c15)) >> 51);
}
static_assert(kPlaces == std::size_t{1} << (64 - 51));

std::size_t after(std::size_t place) {
  return (place + 1) % kPlaces;
}

}  // namespace

std::uint64_t requests_noted() {
  return noted.load(std::memory_order_relaxed);
}

namespace {

// Adds a request to the table, and gives it a number.
void note(Pending wanted) {
  if (!wanted.request) return;
  wanted.order = noted.fetch_add(1, std::memory_order_relaxed) + 1;
  // MPICH gives the same handle to all operations that are complete when they are started.
  if (Pending* again = find_request(wanted.request)) {
    count_collectives((wanted.site != nullptr) - (again->site != nullptr));
    if (wanted.is_message && again->is_message) {
      wanted.times += again->times;
      wanted.bytes += again->bytes;
      wanted.began_ns = std::min(wanted.began_ns, again->began_ns);
    }
    *again = wanted;
    return;
  }
  if (used == kMost) {
    overflowed = true;
    return;
  }
  std::size_t place = home_of(wanted.request);
  while (table[place].request) place = after(place);
  table[place] = wanted;
  count_collectives(wanted.site != nullptr);
  ++used;
}

// A row is a series of messages that are started at one place of the program, without any
// completion between them. row_began_ns: the time of its first start; 0 if there is none.
// row_called: the return address of the call.
std::int64_t row_began_ns = 0;
const void* row_called = nullptr;

}  // namespace

void note_request(MPI_Request request, Site* site, std::int64_t began_ns, const Sample& sample) {
  note({.request = number_of(request), .site = site, .began_ns = began_ns, .sample = sample});
}

// Records the request of a message. The clock is read only for the first message of a series that
// one place starts.
void note_message(MPI_Request request, std::uint64_t bytes, const void* called) {
  if (!row_began_ns || row_called != called) row_began_ns = now_ns();
  row_called = called;
  note({.request = number_of(request),
        .is_message = true,
        .bytes = bytes,
        .began_ns = row_began_ns});
}

Pending* find_request(std::uint64_t request) {
  for (std::size_t place = home_of(request); table[place].request; place = after(place))
    if (table[place].request == request) return &table[place];
  return nullptr;
}

// Removes an entry of the hash table. Moves later entries into its place if a search would no
// longer find them.
void drop_request(Pending& pending) {
  row_began_ns = 0;
  count_collectives(-(pending.site != nullptr));
  auto hole = static_cast<std::size_t>(&pending - table);
  for (std::size_t next = after(hole); table[next].request; next = after(next)) {
    const std::size_t home = home_of(table[next].request);
    if ((next - home) % kPlaces < (next - hole) % kPlaces) continue;
    table[hole] = table[next];
    hole = next;
  }
  table[hole] = {};
  --used;
}

void note_planned(MPI_Request request, const Planned& planned) {
  all_planned().insert_or_assign(number_of(request), planned);
}

Planned* find_planned(MPI_Request request) {
  const auto found = all_planned().find(number_of(request));
  return found != all_planned().end() ? &found->second : nullptr;
}

void drop_planned(MPI_Request request) {
  all_planned().erase(number_of(request));
}

bool operations_pending() {
  return used > 0 || overflowed;
}

}  // namespace weft::advise
