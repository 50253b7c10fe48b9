#include "advise/agreement.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <unordered_map>

#include "advise/findings.h"
#include "advise/stated.h"
#include "base/kind.h"
#include "library/search.h"
#include "transport/mpi/predefined.h"

namespace weft::advise {
namespace {

// kEntries: the number of collective calls by which ranks may be apart; calls that are further
// apart are not compared. kPlaces: the number of call sites of all ranks that the table can hold.
constexpr int kEntries = 1024, kPlaces = 4096;
constexpr std::uint64_t kMix = UINT64_C(0x9e3779b97f4a7c15);

// A call site of the program, stored in a form that other processes can read.
struct SharedLine {
  Place place;
  char where[kWhere];
  char call[40];
};

// The arguments with which one rank has made a collective call.
struct Made {
  std::int32_t rank;  // the rank in MPI_COMM_WORLD
  std::int32_t comm_rank;
  std::int32_t root;
  std::uint32_t line;  // index of the call site in Shared::lines
  std::uint64_t bytes;
  Kind kind;
  Way way;
  std::uint8_t type, op;
};

// Describes a collective call on a communicator, with the arguments of the ranks that have made it
// so far.
struct Entry {
  std::atomic<std::uint32_t> held;
  std::uint32_t sequence;
  std::uint64_t comm;
  bool has_pairs;  // false if `pairs` still holds data of an earlier call
  // Index in `made` of the rank with which all others are compared; -1 if no rank has made the call
  // yet.
  int first;
  // Indexed by the rank in the communicator. If the communicator has more than kPeers ranks, only
  // the first element is used.
  Made made[kPeers];
  // The element pairs[i][j] is the number of bytes from rank i to rank j plus 1; 0 if neither of
  // them has stored it.
  std::uint64_t pairs[kPeers][kPeers];
};

struct Shared {
  std::atomic<std::uint32_t> places;
  SharedLine lines[kPlaces];
  Entry entries[kEntries];
};
Shared* shared = nullptr;

// Returns the path of the file that the ranks of this node map. The name contains the kernel's boot
// ID, since only processes on the same kernel can share a mapping.
std::string path_in(const char* directory) {
  char boot[64] = "";
  if (std::FILE* from = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fscanf(from, "%63s", boot) != 1) boot[0] = '\0';
    std::fclose(from);
  }
  return std::string(directory) + "/calls-" + boot;
}

// Holds an entry's lock. A rank that was killed may never release the lock, so the constructor
// gives up after some time. operator bool then returns false, and the call is not compared.
class Held {
 public:
  explicit Held(Entry& entry) : entry_(entry) {
    constexpr int kPatience = 4096;
    for (int i = 0; i < kPatience && !holds_; ++i) {
      holds_ = entry.held.exchange(1, std::memory_order_acquire) == 0;
      if (!holds_) sched_yield();
    }
  }
  ~Held() {
    if (holds_) entry_.held.store(0, std::memory_order_release);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  explicit operator bool() const { return holds_; }

 private:
  Entry& entry_;
  bool holds_ = false;
};

// Returns the index of this call's call site in the table Shared::lines. Adds the site if this rank
// calls from there for the first time. Returns 0, an entry that is never used, if the table is
// full.
std::uint32_t shared_line(CallId id, const Caller& caller) {
  static auto& known = *new std::unordered_map<std::uint64_t, std::uint32_t>;
  const auto [found, is_new] = known.try_emplace(key_of_line(id, caller), 0);
  if (!is_new) return found->second;
  const std::uint32_t number = 1 + shared->places.fetch_add(1);
  if (number >= kPlaces) return 0;
  const Line line = line_of(id, caller);
  SharedLine& to = shared->lines[number];
  to.place = line.place;
  std::snprintf(to.where, sizeof to.where, "%s", line.where);
  std::snprintf(to.call, sizeof to.call, "%s", line.call);
  return found->second = number;
}

Line line_of(const Made& made) {
  const SharedLine& line = shared->lines[made.line];
  return {line.place, line.where, line.call};
}

// Reports a difference between the calls of two ranks. The message is worded from the view of the
// rank that is higher in the communicator, so that all ranks print the same text.
void tell_both(const char* rule, const Made& one, const Made& other, const std::string& detail) {
  const bool turned = one.comm_rank < other.comm_rank;
  const Made &start = turned ? other : one, &there = turned ? one : other;
  tell(rule, start.rank, line_of(start), line_of(there), detail.c_str());
}

bool same_call(const Made& one, const Made& other) {
  return one.kind == other.kind && one.way == other.way && one.root == other.root;
}

std::string roots(const Made& one, const Made& other) {
  if (one.root == other.root) return "";
  const auto [low, high] = std::minmax(
      one, other, [](const Made& a, const Made& b) { return a.comm_rank < b.comm_rank; });
  return "root " + std::to_string(high.root) + " here, root " + std::to_string(low.root) + " there";
}

// Describes the difference between the arguments of two ranks; "" if they agree.
std::string difference(const Made& one, const Made& other) {
  if (one.bytes != other.bytes && one.bytes != kNoBytes && other.bytes != kNoBytes) {
    const bool turned = one.comm_rank < other.comm_rank;
    return std::to_string(turned ? other.bytes : one.bytes) + " bytes here, " +
           std::to_string(turned ? one.bytes : other.bytes) + " bytes there";
  }
  if (one.type && other.type && one.type != other.type) return "another datatype";
  return one.op && other.op && one.op != other.op ? "another operator" : "";
}

// Checks the number of bytes that rank `from` sends to rank `to`: compares it with the number that
// the other of the two ranks has stored. If that rank has not stored one yet, stores it.
void pair(Entry& entry, const Made& own, int from, int to, std::uint64_t bytes) {
  std::uint64_t& noted = entry.pairs[from][to];
  const std::uint64_t before = noted;
  if (before == 0) noted = bytes + 1;
  if (before == 0 || before == bytes + 1) return;
  const bool sends = own.comm_rank == from;
  const std::uint64_t sent = sends ? bytes : before - 1, expected = sends ? before - 1 : bytes;
  tell_both(kCounts, own, entry.made[sends ? to : from],
            std::to_string(sent) + " bytes from rank " + std::to_string(from) + " to rank " +
                std::to_string(to) + ", which expects " + std::to_string(expected));
}

void compare_pairs(Entry& entry, const Made& own, const Stated& stated, int size) {
  if (!entry.has_pairs) std::memset(entry.pairs, 0, sizeof entry.pairs);
  entry.has_pairs = true;
  for (int i = 0; i < size; ++i) {
    if (stated.to[i] != kNoBytes) pair(entry, own, own.comm_rank, i, stated.to[i]);
    if (stated.from[i] != kNoBytes) pair(entry, own, i, own.comm_rank, stated.from[i]);
  }
}

// Claims the entry for the current collective call on `comm` if the entry holds an older call.
// Returns false if other ranks are so far ahead that the entry already holds a newer call.
bool is_for(Entry& entry, const Communicator& comm) {
  if (entry.comm == comm.identity && entry.sequence >= comm.compared)
    return entry.sequence == comm.compared;
  entry.sequence = comm.compared;
  entry.comm = comm.identity;
  entry.first = -1;
  entry.has_pairs = false;
  return true;
}

}  // namespace

void agreement_begins(const char* directory) {
  bind_predefined(find_variable);
  const int file = open(path_in(directory).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  // posix_fallocate() reserves the space on the disk. Without it, a store into the mapped file
  // would end the program with SIGBUS if the disk is full.
  const bool there = posix_fallocate(file, 0, sizeof(Shared)) == 0;
  void* const memory =
      there ? mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
            : MAP_FAILED;
  close(file);
  if (memory != MAP_FAILED) shared = static_cast<Shared*>(memory);
}

void compare_with_ranks(const Call& call, CallId id, Way way, Communicator& comm,
                        const Caller& caller) {
  if (!shared || comm.inter || comm.size < 2 || comm.differs || is_neighborhood(call.kind)) return;
  ++comm.compared;
  const Stated stated = stated_by(call, comm);
  const bool small = comm.size <= kPeers;
  const int place = small ? comm.rank : 0;
  Entry& entry = shared->entries[((comm.identity * kMix >> 32) + comm.compared) % kEntries];
  const Made own{.rank = finding_rank(),
                 .comm_rank = comm.rank,
                 .root = has_root(call.kind) ? call.root : 0,
                 .line = shared_line(id, caller),
                 .bytes = stated.bytes,
                 .kind = call.kind,
                 .way = way,
                 .type = stated.type,
                 .op = stated.op};
  if (stated.own != kNoBytes && stated.own != stated.bytes)
    tell(kCounts, own.rank, line_of(own), {},
         (std::to_string(stated.own) + " bytes to itself, of which it expects " +
          std::to_string(stated.bytes))
             .c_str());
  const Held held(entry);
  if (!held || !is_for(entry, comm)) return;
  if (small || entry.first < 0) entry.made[place] = own;
  if (entry.first < 0) entry.first = place;
  const Made& first = entry.made[entry.first];
  comm.differs = !same_call(own, first);
  if (comm.differs) return tell_both(kOrder, own, first, roots(own, first));
  if (const std::string how = difference(own, first); !how.empty())
    return tell_both(kCounts, own, first, how);
  if (stated.by_peer) compare_pairs(entry, own, stated, comm.size);
}

}  // namespace weft::advise
