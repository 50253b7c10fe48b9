// Shared buffers: an ordinary MPI program whose collectives work on memory that the ranks may see
// of each other (MPI_Alloc_mem; with --memory heap: malloc, for `weft run --shared-heap`), on
// private memory, or on both; held against the MPI library's own, for which MPI_Pcontrol switches
// Weft off. Why: whether buffers are shared each rank knows of its own only, and all must act
// alike.
#include <mpi.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

int rank, ranks, cases, failures;
bool from_heap = false;

// Who has shared memory: all, none, all but one.
enum class Sharing { all, none, mixed };

bool shares(Sharing sharing) {
  return sharing == Sharing::all || (sharing == Sharing::mixed && rank != ranks - 1);
}

class Memory {
 public:
  Memory(long count, bool shared) : bytes_(count * 8), shared_(shared) {
    if (!shared_)
      data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else if (from_heap)
      data_ = std::malloc(bytes_);
    else
      MPI_Alloc_mem(bytes_, MPI_INFO_NULL, &data_);
  }
  ~Memory() {
    if (!shared_)
      munmap(data_, bytes_);
    else if (from_heap)
      std::free(data_);
    else
      MPI_Free_mem(data_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  long* at(long index) const { return static_cast<long*>(data_) + index; }
  // From malloc only; what was there stays.
  void grow(long count) {
    bytes_ = count * 8;
    data_ = std::realloc(data_, bytes_);
  }

 private:
  size_t bytes_;
  bool shared_;
  void* data_ = nullptr;
};

void check(bool good, const std::string& what) {
  ++cases;
  if (good) return;
  if (++failures <= 5) std::printf("rank %d: %s differs\n", rank, what.c_str());
}

// Lower ranks' operand first: (a, b) then (c, d) is x -> c (a x + b) + d, in 32 bits each.
void affine(void* in, void* inout, int* length, MPI_Datatype*) {
  const auto* lower = static_cast<const unsigned*>(in);
  auto* higher = static_cast<unsigned*>(inout);
  for (int i = 0; i < 2 * *length; i += 2) {
    higher[i + 1] += higher[i] * lower[i + 1];
    higher[i] *= lower[i];
  }
}

// One collective: how long its buffers are, how it is called, and how initialised.
struct Collective {
  const char* name;
  long sends, receives;  // of `count`
  std::function<int(const void*, void*, int, MPI_Op)> call;
  std::function<int(const void*, void*, int, MPI_Op, MPI_Request*)> init;
  bool reduces = false;
};

const MPI_Comm kWorld = MPI_COMM_WORLD;
const MPI_Datatype kLong = MPI_LONG;

std::vector<Collective> collectives() {
  const int root = ranks - 1, p = ranks;
  const bool at_root = rank == root;
  const auto whole = [=](const void* s) { return at_root || s != MPI_IN_PLACE; };
  std::vector<Collective> all;
  all.push_back(
      {"allreduce", 1, 1,
       [](auto s, auto r, int n, MPI_Op op) { return MPI_Allreduce(s, r, n, kLong, op, kWorld); },
       [](auto s, auto r, int n, MPI_Op op, auto q) {
         return MPI_Allreduce_init(s, r, n, kLong, op, kWorld, MPI_INFO_NULL, q);
       },
       true});
  all.push_back({"reduce", 1, 1,
                 [=](auto s, auto r, int n, MPI_Op op) {
                   return MPI_Reduce(whole(s) ? s : r, r, n, kLong, op, root, kWorld);
                 },
                 [=](auto s, auto r, int n, MPI_Op op, auto q) {
                   return MPI_Reduce_init(whole(s) ? s : r, r, n, kLong, op, root, kWorld,
                                          MPI_INFO_NULL, q);
                 },
                 true});
  all.push_back({"reduce_scatter_block", p, p,
                 [](auto s, auto r, int n, MPI_Op op) {
                   return MPI_Reduce_scatter_block(s, r, n, kLong, op, kWorld);
                 },
                 [](auto s, auto r, int n, MPI_Op op, auto q) {
                   return MPI_Reduce_scatter_block_init(s, r, n, kLong, op, kWorld, MPI_INFO_NULL,
                                                        q);
                 },
                 true});
  all.push_back({"bcast", 1, 1,
                 [=](auto, auto r, int n, MPI_Op) { return MPI_Bcast(r, n, kLong, root, kWorld); },
                 [=](auto, auto r, int n, MPI_Op, auto q) {
                   return MPI_Bcast_init(r, n, kLong, root, kWorld, MPI_INFO_NULL, q);
                 }});
  all.push_back({"gather", 1, p,
                 [=](auto s, auto r, int n, MPI_Op) {
                   return MPI_Gather(whole(s) ? s : r, n, kLong, r, n, kLong, root, kWorld);
                 },
                 [=](auto s, auto r, int n, MPI_Op, auto q) {
                   return MPI_Gather_init(whole(s) ? s : r, n, kLong, r, n, kLong, root, kWorld,
                                          MPI_INFO_NULL, q);
                 }});
  all.push_back({"allgather", 1, p,
                 [](auto s, auto r, int n, MPI_Op) {
                   return MPI_Allgather(s, n, kLong, r, n, kLong, kWorld);
                 },
                 [](auto s, auto r, int n, MPI_Op, auto q) {
                   return MPI_Allgather_init(s, n, kLong, r, n, kLong, kWorld, MPI_INFO_NULL, q);
                 }});
  all.push_back(
      {"alltoall", p, p,
       [](auto s, auto r, int n, MPI_Op) { return MPI_Alltoall(s, n, kLong, r, n, kLong, kWorld); },
       [](auto s, auto r, int n, MPI_Op, auto q) {
         return MPI_Alltoall_init(s, n, kLong, r, n, kLong, kWorld, MPI_INFO_NULL, q);
       }});
  all.push_back({"scatter", p, 1,
                 [=](auto s, auto r, int n, MPI_Op) {
                   const bool keeps = at_root && s == MPI_IN_PLACE;
                   const void* const from = keeps ? r : s;
                   void* const to = keeps ? MPI_IN_PLACE : r;
                   return MPI_Scatter(from, n, kLong, to, n, kLong, root, kWorld);
                 },
                 [=](auto s, auto r, int n, MPI_Op, auto q) {
                   const bool keeps = at_root && s == MPI_IN_PLACE;
                   const void* const from = keeps ? r : s;
                   void* const to = keeps ? MPI_IN_PLACE : r;
                   return MPI_Scatter_init(from, n, kLong, to, n, kLong, root, kWorld,
                                           MPI_INFO_NULL, q);
                 }});
  return all;
}

void fill(long* at, long count, int salt) {
  for (long i = 0; i < count; ++i) at[i] = (i * 7 + rank * 13 + salt) % 1009 - 500;
}

// Buffers with a margin on both sides, in the middle of what was allocated.
struct Buffers {
  static constexpr long kMargin = 11;

  Buffers(long count, bool shared) : count(count), memory(count + 2 * kMargin, shared) {}
  long* data() const { return memory.at(kMargin); }
  void fill_all(int salt) const { fill(memory.at(0), count + 2 * kMargin, salt); }
  std::vector<long> contents() const { return {memory.at(0), memory.at(0) + count + 2 * kMargin}; }

  long count;
  Memory memory;
};

// What the library makes of the same input.
std::vector<long> expected(const Collective& collective, Buffers& send, Buffers& recv, int count,
                           bool in_place, MPI_Op op, int salt) {
  send.fill_all(salt);
  recv.fill_all(salt + 1);
  MPI_Pcontrol(0);
  collective.call(in_place ? MPI_IN_PLACE : send.data(), recv.data(), count, op);
  MPI_Pcontrol(1);
  return recv.contents();
}

// Behind the result, a library leaves what it likes of input that was there.
void forget_input(const Collective& collective, int count, bool in_place, std::vector<long>* of) {
  const bool holds_more = std::strcmp(collective.name, "reduce_scatter_block") == 0;
  if (in_place && holds_more) of->resize(Buffers::kMargin + count);
}

void try_one(const Collective& collective, int count, Sharing sharing, bool in_place, MPI_Op op) {
  const long most = std::max(collective.sends, collective.receives) * count;
  Buffers send(most, shares(sharing)), recv(most, shares(sharing));
  const void* const from = in_place ? MPI_IN_PLACE : send.data();
  const std::string name = std::string(collective.name) + (in_place ? " in place, " : ", ") +
                           std::to_string(count) + ", sharing " +
                           std::to_string(static_cast<int>(sharing));
  const auto results = [&] {
    auto contents = recv.contents();
    forget_input(collective, count, in_place, &contents);
    return contents;
  };
  for (int salt = 0; salt < 3; ++salt) {
    auto right = expected(collective, send, recv, count, in_place, op, salt);
    forget_input(collective, count, in_place, &right);
    const auto input = send.contents();
    recv.fill_all(salt + 1);
    collective.call(from, recv.data(), count, op);
    check(results() == right && send.contents() == input, name);
  }
  MPI_Request request;
  collective.init(from, recv.data(), count, op, &request);
  for (int salt = 5; salt < 8; ++salt) {
    auto right = expected(collective, send, recv, count, in_place, op, salt);
    forget_input(collective, count, in_place, &right);
    recv.fill_all(salt + 1);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(results() == right, name + ", persistent");
  }
  MPI_Request_free(&request);
}

void try_all() {
  MPI_Op in_order;
  MPI_Op_create(affine, 0, &in_order);
  for (const Collective& collective : collectives()) {
    for (const int count : {100, 4096, 33333})
      for (const Sharing sharing : {Sharing::all, Sharing::mixed, Sharing::none, Sharing::all})
        for (const bool in_place : {false, true}) {
          if (in_place && std::strcmp(collective.name, "bcast") == 0) continue;
          try_one(collective, count, sharing, in_place, MPI_SUM);
          if (collective.reduces && count == 4096)
            try_one(collective, count, sharing, in_place, in_order);
        }
  }
  MPI_Op_free(&in_order);
}

// A child has memory of its own, also of what is shared.
void try_fork() {
  constexpr long kCount = 50000;
  Buffers send(kCount, true), recv(kCount, true);
  send.fill_all(1);
  const auto before = send.contents();
  const pid_t child = fork();
  if (child == 0) {
    const bool same = send.contents() == before;
    send.fill_all(77);
    Memory more(kCount, from_heap);
    if (from_heap) fill(more.at(0), kCount, 3);
    _exit(same ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "what a forked child sees");
  check(send.contents() == before, "memory after a forked child wrote to its own");
  const auto right = expected(collectives()[0], send, recv, kCount, false, MPI_SUM, 4);
  recv.fill_all(5);
  MPI_Allreduce(send.data(), recv.data(), kCount, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  check(recv.contents() == right, "allreduce after a fork");
}

// Memory that comes and goes, so that blocks lie where others lay before.
void try_changes() {
  for (int turn = 0; turn < 20; ++turn) {
    const int count = 5000 + turn * 3001;
    try_one(collectives()[0], count, turn % 5 == 4 ? Sharing::mixed : Sharing::all, false, MPI_SUM);
    Memory other(20000 + 1000 * ((turn * 7 + rank) % 5), true);
    fill(other.at(0), 20000, turn);
    if (!from_heap) continue;
    const std::vector<long> before(other.at(0), other.at(20000));
    other.grow(300000);
    check(std::equal(before.begin(), before.end(), other.at(0)), "what realloc keeps");
    other.grow(10000);
    check(std::equal(other.at(0), other.at(10000), before.begin()), "what realloc keeps");
  }
}

}  // namespace

int main(int argc, char** argv) {
  from_heap =
      argc == 3 && std::strcmp(argv[1], "--memory") == 0 && std::strcmp(argv[2], "heap") == 0;
  if (argc != 1 && !from_heap) {
    std::fprintf(stderr, "usage: shared_buffers [--memory heap]\n");
    return 2;
  }
  alarm(150);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  try_all();
  try_fork();
  try_changes();
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all) std::printf("shared buffers: %d differ\n", all);
  if (rank == 0 && !all) std::printf("shared buffers: %d cases equal\n", cases);
  MPI_Finalize();
  return all ? 1 : 0;
}
