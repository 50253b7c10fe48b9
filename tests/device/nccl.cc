// A stand-in for NCCL. The ranks' streams exchange data through memory that their processes share.
// Like NCCL, it refuses two ranks with the same device, and what it has begun waits for the other
// ranks until the communicator is aborted. In a group, at most one message goes from a rank to
// another. WEFT_STANDIN_NCCL_VERSION: its version as a number, 22105 by default.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/operators.h"
#include "standin.h"
#include "streams.h"
#include "timeline.h"

namespace {

using standin::Address;

constexpr int kMostRanks = 8, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;
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
  std::atomic<int> joined, failed;
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
  std::atomic<bool> aborted{false};

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
    while (!all.empty() && !aborted) {
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

// Finds where the processor has the data of the messages. Returns false if the device may not
// access one of them.
bool find_all(std::vector<Message>* messages) {
  for (Message& one : *messages) {
    const auto address = reinterpret_cast<Address>(one.data);
    if (!standin::kernel_may_run({{address, one.bytes}})) return false;
    one.data = standin::reachable(address);
  }
  return true;
}

int end_of_group() {
  const std::vector<Message> messages = std::move(group.messages);
  group.messages.clear();
  if (messages.empty()) return standin::kSuccess;
  return standin::enqueue(group.stream, standin::named("ncclSend", [comm = group.comm, messages] {
                            std::vector<Message> found = messages;
                            if (find_all(&found)) comm->carry_out(std::move(found));
                          }));
}

// Returns the bytes of an element of this ncclDataType_t; 0 if there is none.
std::size_t bytes_of(int type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return type >= 0 && type < 10 ? kBytes[type] : 0;
}

int add(bool is_sent, const void* data, std::size_t count, int type, int peer, void* comm,
        void* stream) {
  if (const int code = standin::stopped(is_sent ? "ncclSend" : "ncclRecv")) return code;
  const auto* const mine = static_cast<const Comm*>(comm);
  if (bytes_of(type) == 0 || peer < 0 || peer >= mine->ranks) return kInvalidArgument;
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(data));
  if (count > 0) group.messages.push_back({is_sent, peer, bytes, count * bytes_of(type)});
  group.comm = mine, group.stream = stream;
  return group.depth == 0 ? end_of_group() : standin::kSuccess;
}

template <class T>
void combine_as(weft_gpu_op op, const std::byte* from, std::byte* inout, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
    T one, other;
    std::memcpy(&one, from + i, sizeof(T));
    std::memcpy(&other, inout + i, sizeof(T));
    other = weft::gpu::combined(op, one, other);
    std::memcpy(inout + i, &other, sizeof(T));
  }
}

void combine(int type, int op, const std::byte* from, std::byte* inout, std::size_t bytes) {
  constexpr weft_gpu_op kOps[] = {WEFT_GPU_SUM, WEFT_GPU_PROD, WEFT_GPU_MAX, WEFT_GPU_MIN};
  using Combine = void(weft_gpu_op, const std::byte*, std::byte*, std::size_t);
  constexpr Combine* kAll[] = {combine_as<std::int8_t>,     combine_as<std::uint8_t>,
                               combine_as<std::int32_t>,    combine_as<std::uint32_t>,
                               combine_as<std::int64_t>,    combine_as<std::uint64_t>,
                               combine_as<weft::gpu::Half>, combine_as<float>,
                               combine_as<double>,          combine_as<weft::gpu::Bfloat16>};
  kAll[type](kOps[op], from, inout, bytes);
}

// What a collective does: from `in` to `out`, with blocks of so many bytes.
using Body = std::function<void(const Comm&, std::byte* in, std::byte* out)>;

// Enqueues a collective whose buffers have these lengths.
int enqueue(const char* name, const void* in, std::size_t in_bytes, void* out,
            std::size_t out_bytes, void* comm, void* stream, Body body) {
  if (const int code = standin::stopped(name)) return code;
  const auto from = reinterpret_cast<Address>(in), to = reinterpret_cast<Address>(out);
  return standin::enqueue(stream, standin::named(name, [=] {
                            if (!standin::kernel_may_run({{from, in_bytes}, {to, out_bytes}}))
                              return;
                            body(*static_cast<const Comm*>(comm), standin::reachable(from),
                                 standin::reachable(to));
                          }));
}

// Sends the block to(peer) to each other rank, and receives the block from(peer) from it.
void exchange(const Comm& comm, std::size_t bytes, const std::function<std::byte*(int)>& to,
              const std::function<std::byte*(int)>& from) {
  std::vector<Message> messages;
  for (int peer = 0; peer < comm.ranks; ++peer) {
    if (peer == comm.rank) continue;
    messages.push_back({true, peer, to(peer), bytes});
    messages.push_back({false, peer, from(peer), bytes});
  }
  comm.carry_out(std::move(messages));
}

// Reduces the blocks mine(peer) of all ranks to `out`. All ranks combine in the same order.
void reduce(const Comm& comm, std::byte* out, std::size_t bytes, int type, int op,
            const std::function<std::byte*(int)>& mine) {
  std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(comm.ranks));
  for (auto& its : all) its.resize(bytes);
  const auto received = [&](int peer) { return all[static_cast<std::size_t>(peer)].data(); };
  std::memcpy(received(comm.rank), mine(comm.rank), bytes);
  exchange(comm, bytes, mine, received);
  for (int peer = 1; peer < comm.ranks; ++peer)
    combine(type, op, received(peer), received(0), bytes);
  std::memcpy(out, received(0), bytes);
}

bool is_bad(int type, int op) {
  return bytes_of(type) == 0 || op < 0 || op > 3;
}

}  // namespace

DRIVER int ncclGetVersion(int* version) {
  const char* const given = std::getenv("WEFT_STANDIN_NCCL_VERSION");
  *version = given ? std::atoi(given) : 22105;
  return standin::stopped("ncclGetVersion");
}

DRIVER const char* ncclGetErrorString(int code) {
  switch (code) {
    case kInvalidArgument:
      return "invalid argument";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "unhandled system error";
  }
}

DRIVER int ncclGetUniqueId(Id* id) {
  if (const int code = standin::stopped("ncclGetUniqueId")) return code;
  const int file = memfd_create("standin-nccl", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return kInvalidArgument;
  *id = {getpid(), file, {}};
  return standin::kSuccess;
}

// If it fails on one rank, it fails on all.
DRIVER int ncclCommInitRank(void** comm, int ranks, Id id, int rank) {
  if (ranks > kMostRanks || rank < 0 || rank >= ranks) return kInvalidArgument;
  const std::string path = "/proc/" + std::to_string(id.process) + "/fd/" + std::to_string(id.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return kInvalidArgument;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return kInvalidArgument;
  auto* const shared = static_cast<Shared*>(memory);
  const int own = standin::stopped("ncclCommInitRank");
  if (own != standin::kSuccess) ++shared->failed;
  shared->devices[rank] = standin::owner().device;
  ++shared->joined;
  while (shared->joined < ranks) sched_yield();
  if (own != standin::kSuccess) return own;
  if (shared->failed > 0) return kRemoteError;
  for (int other = 0; other < ranks; ++other) {
    const bool has_mine = shared->devices[other] == shared->devices[rank];
    if (other != rank && has_mine) return kInvalidUsage;
  }
  *comm = new Comm{shared, rank, ranks};
  return standin::kSuccess;
}

DRIVER int ncclCommDestroy(void* comm) {
  auto* const gone = static_cast<Comm*>(comm);
  munmap(gone->shared, sizeof(Shared));
  delete gone;
  return standin::kSuccess;
}

// Streams may still be in a collective, so that the memory stays.
DRIVER int ncclCommAbort(void* comm) {
  static_cast<Comm*>(comm)->aborted = true;
  return standin::kSuccess;
}

DRIVER int ncclCommGetAsyncError(void*, int* code) {
  *code = standin::stopped("ncclCommGetAsyncError");
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
  if (is_bad(type, op)) return kInvalidArgument;
  const std::size_t bytes = count * bytes_of(type);
  return enqueue("ncclAllReduce", from, bytes, to, bytes, comm, stream,
                 [=](const Comm& by, std::byte* in, std::byte* out) {
                   reduce(by, out, bytes, type, op, [&](int) { return in; });
                 });
}

DRIVER int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int op,
                             void* comm, void* stream) {
  if (is_bad(type, op)) return kInvalidArgument;
  const std::size_t bytes = count * bytes_of(type);
  const auto ranks = static_cast<std::size_t>(static_cast<const Comm*>(comm)->ranks);
  return enqueue("ncclReduceScatter", from, ranks * bytes, to, bytes, comm, stream,
                 [=](const Comm& by, std::byte* in, std::byte* out) {
                   reduce(by, out, bytes, type, op,
                          [&](int peer) { return in + static_cast<std::size_t>(peer) * bytes; });
                 });
}

DRIVER int ncclAllGather(const void* from, void* to, std::size_t count, int type, void* comm,
                         void* stream) {
  const std::size_t bytes = count * bytes_of(type);
  if (bytes_of(type) == 0) return kInvalidArgument;
  const auto ranks = static_cast<std::size_t>(static_cast<const Comm*>(comm)->ranks);
  return enqueue("ncclAllGather", from, bytes, to, ranks * bytes, comm, stream,
                 [=](const Comm& by, std::byte* in, std::byte* out) {
                   const auto block = [&](int peer) {
                     return out + static_cast<std::size_t>(peer) * bytes;
                   };
                   std::memmove(block(by.rank), in, bytes);
                   exchange(
                       by, bytes, [&](int) { return block(by.rank); }, block);
                 });
}

DRIVER int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root,
                         void* comm, void* stream) {
  const std::size_t bytes = count * bytes_of(type);
  if (bytes_of(type) == 0) return kInvalidArgument;
  return enqueue("ncclBroadcast", from, bytes, to, bytes, comm, stream,
                 [=](const Comm& by, std::byte* in, std::byte* out) {
                   if (by.rank != root) return by.carry_out({{false, root, out, bytes}});
                   std::memmove(out, in, bytes);
                   std::vector<Message> all;
                   for (int peer = 0; peer < by.ranks; ++peer) {
                     if (peer != root) all.push_back({true, peer, in, bytes});
                   }
                   by.carry_out(std::move(all));
                 });
}
