// A stand-in for NCCL. The ranks' streams exchange data through memory that their processes share.
// Like NCCL, it refuses two ranks with the same device. In a group, at most one message goes from a
// rank to another.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "standin.h"
#include "streams.h"

namespace {

using standin::Address;

constexpr int kMostRanks = 8, kDouble = 8, kSum = 0, kInvalidArgument = 4, kInvalidUsage = 5;
constexpr std::size_t kPiece = 64 << 10;

struct Id {
  int process, file;
  char unused[128 - 2 * sizeof(int)];
};
static_assert(sizeof(Id) == 128);

// The slot through which one rank sends messages to another, one piece at a time.
struct TagRange {
  std::atomic<std::uint64_t> sent, taken;
  std::byte piece[kPiece];
};

// The ranks' shared memory, which initially holds zeros.
struct Shared {
  std::atomic<int> joined;
  int devices[kMostRanks];
  TagRange tag_ranges[kMostRanks][kMostRanks];
};

struct Message {
  bool is_sent;
  int peer;
  std::byte* data;
  std::size_t bytes;
};

struct Comm {
  Shared* shared;
  int rank, ranks;

  // Moves the next piece of the message. Returns false if the other rank has not emptied or filled
  // the slot yet.
  bool move_piece(Message* one) const {
    TagRange& tag_range =
        one->is_sent ? shared->tag_ranges[rank][one->peer] : shared->tag_ranges[one->peer][rank];
    const bool is_full = tag_range.sent.load() != tag_range.taken.load();
    if (is_full == one->is_sent) return false;
    const std::size_t bytes = std::min(one->bytes, kPiece);
    if (one->is_sent) {
      std::memcpy(tag_range.piece, one->data, bytes);
      ++tag_range.sent;
    } else {
      std::memcpy(one->data, tag_range.piece, bytes);
      ++tag_range.taken;
    }
    one->data += bytes, one->bytes -= bytes;
    return true;
  }
  void carry_out(std::vector<Message> all) const {
    while (!all.empty()) {
      bool has_moved = false;
      for (Message& one : all) has_moved |= move_piece(&one);
      const auto has_ended = [](const Message& one) { return one.bytes == 0; };
      all.erase(std::remove_if(all.begin(), all.end(), has_ended), all.end());
      if (!has_moved) sched_yield();
    }
  }
};

// The messages that this thread has put into the current group. They belong to one communicator and
// one stream.
struct Group {
  int depth = 0;
  const Comm* comm = nullptr;
  void* stream = nullptr;
  std::vector<Message> messages;
};
thread_local Group group;

int end_of_group() {
  const std::vector<Message> messages = std::move(group.messages);
  group.messages.clear();
  if (messages.empty()) return standin::kSuccess;
  return standin::enqueue(group.stream, [comm = group.comm, messages] {
    std::vector<Message> found = messages;
    for (Message& one : found) one.data = standin::reachable(reinterpret_cast<Address>(one.data));
    comm->carry_out(std::move(found));
  });
}

int add(bool is_sent, const void* data, std::size_t count, int type, int peer, void* comm,
        void* stream) {
  const auto* const mine = static_cast<const Comm*>(comm);
  if (type != kDouble || peer < 0 || peer >= mine->ranks) return kInvalidArgument;
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(data));
  if (count > 0) group.messages.push_back({is_sent, peer, bytes, count * sizeof(double)});
  group.comm = mine, group.stream = stream;
  return group.depth == 0 ? end_of_group() : standin::kSuccess;
}

void sum_of_all(const Comm& comm, const double* from, double* to, std::size_t count) {
  std::vector<std::vector<double>> all(static_cast<std::size_t>(comm.ranks));
  std::vector<double> mine(from, from + count);
  std::vector<Message> messages;
  for (int peer = 0; peer < comm.ranks; ++peer) {
    auto& its = all[static_cast<std::size_t>(peer)];
    its = mine;
    if (peer == comm.rank) continue;
    const std::size_t bytes = count * sizeof(double);
    messages.push_back({true, peer, reinterpret_cast<std::byte*>(mine.data()), bytes});
    messages.push_back({false, peer, reinterpret_cast<std::byte*>(its.data()), bytes});
  }
  comm.carry_out(std::move(messages));
  std::fill_n(to, count, 0.0);
  for (const auto& its : all) std::transform(to, to + count, its.begin(), to, std::plus<>());
}

}  // namespace

DRIVER int ncclGetUniqueId(Id* id) {
  const int file = memfd_create("standin-nccl", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return kInvalidArgument;
  *id = {getpid(), file, {}};
  return standin::kSuccess;
}

DRIVER int ncclCommInitRank(void** comm, int ranks, Id id, int rank) {
  if (ranks > kMostRanks || rank < 0 || rank >= ranks) return kInvalidArgument;
  const std::string path = "/proc/" + std::to_string(id.process) + "/fd/" + std::to_string(id.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return kInvalidArgument;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return kInvalidArgument;
  auto* const shared = static_cast<Shared*>(memory);
  shared->devices[rank] = standin::owner().device;
  ++shared->joined;
  while (shared->joined < ranks) sched_yield();
  for (int other = 0; other < ranks; ++other) {
    const bool has_mine = shared->devices[other] == shared->devices[rank];
    if (other != rank && has_mine) return kInvalidUsage;
  }
  *comm = new Comm{shared, rank, ranks};
  return standin::kSuccess;
}

DRIVER int ncclGroupStart() {
  ++group.depth;
  return standin::kSuccess;
}

DRIVER int ncclGroupEnd() {
  return --group.depth == 0 ? end_of_group() : standin::kSuccess;
}

DRIVER int ncclSend(const void* data, std::size_t count, int type, int peer, void* comm,
                    void* stream) {
  return add(true, data, count, type, peer, comm, stream);
}

DRIVER int ncclRecv(void* data, std::size_t count, int type, int peer, void* comm, void* stream) {
  return add(false, data, count, type, peer, comm, stream);
}

DRIVER int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int op,
                         void* comm, void* stream) {
  if (type != kDouble || op != kSum) return kInvalidArgument;
  return standin::enqueue(stream, [=] {
    const auto reached = [](const void* one) {
      return reinterpret_cast<double*>(standin::reachable(reinterpret_cast<Address>(one)));
    };
    sum_of_all(*static_cast<const Comm*>(comm), reached(from), reached(to), count);
  });
}
