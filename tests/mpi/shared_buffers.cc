// An ordinary MPI program whose collectives use memory that other ranks may access directly: that
// of MPI_Alloc_mem, by default; of malloc, for `weft run --shared-heap` (--memory heap); of
// MPI_Win_allocate_shared (--memory window); or memory that other ranks attach, for `weft run
// --xpmem` (--memory attached). It also uses private memory, for `weft run --one-copy` (only that
// with --memory private), and both kinds at once. Results are compared with the MPI library's own,
// on a communicator that a hint leaves to it. Each rank knows only of its own buffers whether they
// are shared, but all ranks must take the same path.
#include <mpi.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "attachable_memory.h"

namespace {

int rank, ranks, cases, failures;
bool from_heap = false, from_windows = false, attached = false, is_private = false;
MPI_Comm left_to_library;  // has the same ranks as MPI_COMM_WORLD

MPI_Comm for_library(MPI_Comm comm) {
  MPI_Info info;
  MPI_Comm made;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_engine", "native");
  MPI_Comm_dup_with_info(comm, info, &made);
  MPI_Info_free(&info);
  return made;
}

// Which ranks have their buffers in shared memory: all, none, all but one.
enum class Sharing { all, none, mixed };

bool shares(Sharing sharing) {
  if (is_private) return false;
  return sharing == Sharing::all || (sharing == Sharing::mixed && rank != ranks - 1);
}

// A window in one of several forms, which successive windows use in turn. All ranks of `comm` must
// make it.
class Window {
 public:
  Window(MPI_Comm comm, MPI_Aint bytes) {
    static int made = 0;
    const int form = made++ % 4;
    MPI_Info info;
    MPI_Info_create(&info);
    if (form == 1) MPI_Info_set(info, "alloc_shared_noncontig", "true");
    if (form == 2)
      allocate_at_first_rank(comm, bytes);
    else if (form == 3)
      allocate_by_large_counts(comm, bytes);
    else
      MPI_Win_allocate_shared(bytes, 8, info, comm, &data, &window_);
    MPI_Info_free(&info);
  }
  ~Window() { MPI_Win_free(&window_); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  void* data = nullptr;

 private:
  // All memory belongs to the first rank. The parts of the other ranks follow each other in it.
  void allocate_at_first_rank(MPI_Comm comm, MPI_Aint bytes) {
    int node_rank = 0, unit = 0;
    MPI_Aint before = 0, all = 0;
    MPI_Comm_rank(comm, &node_rank);
    MPI_Exscan(&bytes, &before, 1, MPI_AINT, MPI_SUM, comm);
    MPI_Allreduce(&bytes, &all, 1, MPI_AINT, MPI_SUM, comm);
    MPI_Win_allocate_shared(node_rank == 0 ? all : 0, 8, MPI_INFO_NULL, comm, &data, &window_);
    MPI_Win_shared_query(window_, 0, &all, &unit, &data);
    if (node_rank > 0) data = static_cast<char*>(data) + before;
  }
  void allocate_by_large_counts(MPI_Comm comm, MPI_Aint bytes) {
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
    MPI_Win_allocate_shared_c(bytes, 8, MPI_INFO_NULL, comm, &data, &window_);
#else
    MPI_Win_allocate_shared(bytes, 8, MPI_INFO_NULL, comm, &data, &window_);
#endif
  }

  MPI_Win window_;
};

// Memory of one kind. If it belongs to windows or is attached, all ranks must allocate and free it
// together.
class Memory {
 public:
  Memory(long count, bool shared) : bytes_(count * 8), shared_(shared) {
    if (from_windows) window_ = std::make_unique<Window>(MPI_COMM_WORLD, shared ? bytes_ : 0);
    if (shared_ && from_windows)
      data_ = window_->data;
    else if (!shared_)
      data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else if (from_heap)
      data_ = std::malloc(bytes_);
    else if (attached)
      data_ = (own_ = std::make_unique<AttachableMemory>(bytes_))->data();
    else
      MPI_Alloc_mem(bytes_, MPI_INFO_NULL, &data_);
    if (attached) let_all_follow();
  }
  ~Memory() {
    if (shared_ && (from_windows || attached)) return;
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
  // Enlarges memory from malloc. Its contents are kept.
  void grow(long count) {
    bytes_ = count * 8;
    data_ = std::realloc(data_, bytes_);
  }

 private:
  static void let_all_follow() {
    MPI_Barrier(left_to_library);
    follow_owners();
  }

  size_t bytes_;
  bool shared_;
  void* data_ = nullptr;
  std::unique_ptr<Window> window_;
  std::unique_ptr<AttachableMemory> own_;
};

void check(bool good, const std::string& what) {
  ++cases;
  if (good) return;
  if (++failures <= 5) std::printf("rank %d: %s differs\n", rank, what.c_str());
}

// Composes affine maps in 32-bit parts, the lower rank's operand first: (a, b) then (c, d) is x ->
// c (a x + b) + d.
void affine(void* in, void* inout, int* length, MPI_Datatype*) {
  const auto* lower = static_cast<const unsigned*>(in);
  auto* higher = static_cast<unsigned*>(inout);
  for (int i = 0; i < 2 * *length; i += 2) {
    higher[i + 1] += higher[i] * lower[i + 1];
    higher[i] *= lower[i];
  }
}

// A collective: how long its buffers are, and how it is called, started and initialised.
struct Collective {
  const char* name;
  long sends, receives;  // as multiples of `count`
  std::function<int(const void*, void*, int, MPI_Op)> call;
  std::function<int(const void*, void*, int, MPI_Op, MPI_Request*)> start;
  std::function<int(const void*, void*, int, MPI_Op, MPI_Request*)> init;
  bool reduces = false;
};

MPI_Comm world = MPI_COMM_WORLD;  // left_to_library: to compute the expected result
const MPI_Datatype kLong = MPI_LONG;

std::vector<Collective> collectives() {
  const int root = ranks - 1, p = ranks;
  const bool at_root = rank == root;
  const auto whole = [=](const void* s) { return at_root || s != MPI_IN_PLACE; };
  std::vector<Collective> all;
  all.push_back(
      {"allreduce", 1, 1,
       [](auto s, auto r, int n, MPI_Op op) { return MPI_Allreduce(s, r, n, kLong, op, world); },
       [](auto s, auto r, int n, MPI_Op op, auto q) {
         return MPI_Iallreduce(s, r, n, kLong, op, world, q);
       },
       [](auto s, auto r, int n, MPI_Op op, auto q) {
         return MPI_Allreduce_init(s, r, n, kLong, op, world, MPI_INFO_NULL, q);
       },
       true});
  all.push_back({"reduce", 1, 1,
                 [=](auto s, auto r, int n, MPI_Op op) {
                   return MPI_Reduce(whole(s) ? s : r, r, n, kLong, op, root, world);
                 },
                 [=](auto s, auto r, int n, MPI_Op op, auto q) {
                   return MPI_Ireduce(whole(s) ? s : r, r, n, kLong, op, root, world, q);
                 },
                 [=](auto s, auto r, int n, MPI_Op op, auto q) {
                   return MPI_Reduce_init(whole(s) ? s : r, r, n, kLong, op, root, world,
                                          MPI_INFO_NULL, q);
                 },
                 true});
  all.push_back({"reduce_scatter_block", p, p,
                 [](auto s, auto r, int n, MPI_Op op) {
                   return MPI_Reduce_scatter_block(s, r, n, kLong, op, world);
                 },
                 [](auto s, auto r, int n, MPI_Op op, auto q) {
                   return MPI_Ireduce_scatter_block(s, r, n, kLong, op, world, q);
                 },
                 [](auto s, auto r, int n, MPI_Op op, auto q) {
                   return MPI_Reduce_scatter_block_init(s, r, n, kLong, op, world, MPI_INFO_NULL,
                                                        q);
                 },
                 true});
  all.push_back(
      {"bcast", 1, 1,
       [=](auto, auto r, int n, MPI_Op) { return MPI_Bcast(r, n, kLong, root, world); },
       [=](auto, auto r, int n, MPI_Op, auto q) { return MPI_Ibcast(r, n, kLong, root, world, q); },
       [=](auto, auto r, int n, MPI_Op, auto q) {
         return MPI_Bcast_init(r, n, kLong, root, world, MPI_INFO_NULL, q);
       }});
  all.push_back({"gather", 1, p,
                 [=](auto s, auto r, int n, MPI_Op) {
                   return MPI_Gather(whole(s) ? s : r, n, kLong, r, n, kLong, root, world);
                 },
                 [=](auto s, auto r, int n, MPI_Op, auto q) {
                   return MPI_Igather(whole(s) ? s : r, n, kLong, r, n, kLong, root, world, q);
                 },
                 [=](auto s, auto r, int n, MPI_Op, auto q) {
                   return MPI_Gather_init(whole(s) ? s : r, n, kLong, r, n, kLong, root, world,
                                          MPI_INFO_NULL, q);
                 }});
  all.push_back(
      {"allgather", 1, p,
       [](auto s, auto r, int n, MPI_Op) { return MPI_Allgather(s, n, kLong, r, n, kLong, world); },
       [](auto s, auto r, int n, MPI_Op, auto q) {
         return MPI_Iallgather(s, n, kLong, r, n, kLong, world, q);
       },
       [](auto s, auto r, int n, MPI_Op, auto q) {
         return MPI_Allgather_init(s, n, kLong, r, n, kLong, world, MPI_INFO_NULL, q);
       }});
  all.push_back(
      {"alltoall", p, p,
       [](auto s, auto r, int n, MPI_Op) { return MPI_Alltoall(s, n, kLong, r, n, kLong, world); },
       [](auto s, auto r, int n, MPI_Op, auto q) {
         return MPI_Ialltoall(s, n, kLong, r, n, kLong, world, q);
       },
       [](auto s, auto r, int n, MPI_Op, auto q) {
         return MPI_Alltoall_init(s, n, kLong, r, n, kLong, world, MPI_INFO_NULL, q);
       }});
  all.push_back({"scatter", p, 1,
                 [=](auto s, auto r, int n, MPI_Op) {
                   const bool keeps = at_root && s == MPI_IN_PLACE;
                   const void* const from = keeps ? r : s;
                   void* const to = keeps ? MPI_IN_PLACE : r;
                   return MPI_Scatter(from, n, kLong, to, n, kLong, root, world);
                 },
                 [=](auto s, auto r, int n, MPI_Op, auto q) {
                   const bool keeps = at_root && s == MPI_IN_PLACE;
                   const void* const from = keeps ? r : s;
                   void* const to = keeps ? MPI_IN_PLACE : r;
                   return MPI_Iscatter(from, n, kLong, to, n, kLong, root, world, q);
                 },
                 [=](auto s, auto r, int n, MPI_Op, auto q) {
                   const bool keeps = at_root && s == MPI_IN_PLACE;
                   const void* const from = keeps ? r : s;
                   void* const to = keeps ? MPI_IN_PLACE : r;
                   return MPI_Scatter_init(from, n, kLong, to, n, kLong, root, world, MPI_INFO_NULL,
                                           q);
                 }});
  return all;
}

void fill(long* at, long count, int salt) {
  for (long i = 0; i < count; ++i) at[i] = (i * 7 + rank * 13 + salt) % 1009 - 500;
}

// Buffers in the middle of an allocation, with a margin on both sides.
struct Buffers {
  static constexpr long kMargin = 11;

  Buffers(long count, bool shared) : count(count), memory(count + 2 * kMargin, shared) {}
  long* data() const { return memory.at(kMargin); }
  void fill_all(int salt) const { fill(memory.at(0), count + 2 * kMargin, salt); }
  std::vector<long> contents() const { return {memory.at(0), memory.at(0) + count + 2 * kMargin}; }

  long count;
  Memory memory;
};

// Returns the MPI library's result for the same input.
std::vector<long> expected(const Collective& collective, Buffers& send, Buffers& recv, int count,
                           bool in_place, MPI_Op op, int salt) {
  send.fill_all(salt);
  recv.fill_all(salt + 1);
  world = left_to_library;
  collective.call(in_place ? MPI_IN_PLACE : send.data(), recv.data(), count, op);
  world = MPI_COMM_WORLD;
  return recv.contents();
}

// Clears the part after the result, where a library may leave arbitrary parts of the input.
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
  // Weft attaches another rank's memory only after it was used several times, and seldom tries
  // again after failures.
  const int calls = !attached ? 3 : sharing == Sharing::all ? 40 : 8;
  for (int salt = 0; salt < calls; ++salt) {
    auto right = expected(collective, send, recv, count, in_place, op, salt);
    forget_input(collective, count, in_place, &right);
    const auto input = send.contents();
    recv.fill_all(salt + 1);
    collective.call(from, recv.data(), count, op);
    check(results() == right && send.contents() == input, name);
  }
  MPI_Request request;
  for (int salt = 3; salt < 3 + calls; ++salt) {
    auto right = expected(collective, send, recv, count, in_place, op, salt);
    forget_input(collective, count, in_place, &right);
    recv.fill_all(salt + 1);
    collective.start(from, recv.data(), count, op, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(results() == right, name + ", non-blocking");
  }
  collective.init(from, recv.data(), count, op, &request);
  for (int salt = 6; salt < 9; ++salt) {
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
  // Libraries take long to create windows, and memory is attached only after frequent use; so there
  // are fewer cases.
  const bool few = from_windows || attached;
  const std::vector<int> counts = few ? std::vector{8192} : std::vector{100, 4096, 33333};
  std::vector<Sharing> sharings{Sharing::all, Sharing::mixed, Sharing::none};
  if (is_private) sharings = {Sharing::none};
  if (!few && !is_private) sharings.push_back(Sharing::all);
  for (const Collective& collective : collectives()) {
    for (const int count : counts)
      for (const Sharing sharing : sharings)
        for (const bool in_place : {false, true}) {
          if (in_place && std::strcmp(collective.name, "bcast") == 0) continue;
          try_one(collective, count, sharing, in_place, MPI_SUM);
          if (collective.reduces && (few || count == 4096))
            try_one(collective, count, sharing, in_place, in_order);
        }
  }
  MPI_Op_free(&in_order);
}

// A collective that is in flight with others.
struct Started {
  Started(const Collective& of, int count, Sharing sharing, int salt)
      : collective(of),
        send(std::max(of.sends, of.receives) * count, shares(sharing)),
        recv(std::max(of.sends, of.receives) * count, shares(sharing)) {
    right = expected(of, send, recv, count, false, MPI_SUM, salt);
    recv.fill_all(salt + 1);
    of.start(send.data(), recv.data(), count, MPI_SUM, &request);
  }
  void check_result() const {
    check(recv.contents() == right, std::string(collective.name) + ", one of several");
  }

  const Collective& collective;
  Buffers send, recv;
  std::vector<long> right;
  MPI_Request request;
};

// The ranks complete the collectives in different orders, with other calls between. So they find
// out at different times which of them need no copy. (Expected results come from blocking calls, so
// no rank is ever far behind.)
void try_outstanding() {
  const auto all = collectives();
  const Sharing sharings[] = {Sharing::all, Sharing::all, Sharing::mixed, Sharing::none};
  std::list<Started> started;
  for (int i = 0; i < 60; ++i) {
    const int dice = (i * i * 31 + i * 17) % 1009;
    started.emplace_back(all[dice % all.size()], 5000 << dice % 3, sharings[dice / 8 % 4], dice);
    int done = 0;
    if (rank % 2) MPI_Test(&started.back().request, &done, MPI_STATUS_IGNORE);
    if (dice % 5 == 0) try_one(all[0], 20000, sharings[dice % 4], false, MPI_SUM);
    while (started.size() > static_cast<size_t>(dice % 7)) {
      Started& other = (rank + i) % 2 ? started.back() : started.front();
      MPI_Wait(&other.request, MPI_STATUS_IGNORE);
      MPI_Wait(&started.front().request, MPI_STATUS_IGNORE);
      started.front().check_result();
      started.pop_front();
    }
  }
  for (Started& last : started) {
    MPI_Wait(&last.request, MPI_STATUS_IGNORE);
    last.check_result();
  }
  while (!started.empty()) started.pop_front();
}

// A window of some ranks only. These can access it, but not the other ranks of a collective.
// Objects that refer to it may be freed after the window.
void try_window_of_some() {
  constexpr int kCount = 20000;
  MPI_Comm some;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0 ? 1 : 0, rank, &some);
  auto window = std::make_unique<Window>(some, 2 * kCount * 8);
  long* const send = static_cast<long*>(window->data);
  long* const recv = send + kCount;
  MPI_Request persistent, request;
  MPI_Allreduce_init(send, recv, kCount, MPI_LONG, MPI_SUM, some, MPI_INFO_NULL, &persistent);
  MPI_Comm some_by_library = for_library(some);
  for (const MPI_Comm comm : {some, MPI_COMM_WORLD, some})
    for (int turn = 0; turn < 4; ++turn) {
      fill(send, kCount, turn);
      MPI_Allreduce(send, recv, kCount, MPI_LONG, MPI_SUM,
                    comm == some ? some_by_library : left_to_library);
      const std::vector<long> right(recv, recv + kCount);
      fill(recv, kCount, turn + 1);
      const bool again = turn == 2 && comm == some;
      if (turn < 2)
        MPI_Allreduce(send, recv, kCount, MPI_LONG, MPI_SUM, comm);
      else if (again)
        MPI_Start(&persistent);
      else
        MPI_Iallreduce(send, recv, kCount, MPI_LONG, MPI_SUM, comm, &request);
      if (turn >= 2) MPI_Wait(again ? &persistent : &request, MPI_STATUS_IGNORE);
      check(std::equal(right.begin(), right.end(), recv), "a window of some ranks");
    }
  window.reset();
  MPI_Request_free(&persistent);
  MPI_Comm_free(&some_by_library);
  MPI_Comm_free(&some);
}

// A forked child must have its own copy of memory, even of shared memory.
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

// Memory is freed and allocated again, so that blocks lie at addresses where others lay before.
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
  const std::string memory = argc == 3 && std::strcmp(argv[1], "--memory") == 0 ? argv[2] : "";
  from_heap = memory == "heap";
  from_windows = memory == "window";
  attached = memory == "attached";
  is_private = memory == "private";
  if (argc != 1 && !from_heap && !from_windows && !attached && !is_private) {
    std::fprintf(stderr, "usage: shared_buffers [--memory heap|window|attached|private]\n");
    return 2;
  }
  alarm(600);  // four ranks on two busy cores take minutes
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  left_to_library = for_library(MPI_COMM_WORLD);
  try_all();
  try_outstanding();
  if (from_windows)
    try_window_of_some();
  else if (!attached)
    try_fork();  // a forked child would share this memory, too
  try_changes();
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_free(&left_to_library);
  if (rank == 0 && all) std::printf("shared buffers: %d differ\n", all);
  if (rank == 0 && !all) std::printf("shared buffers: %d cases equal\n", cases);
  MPI_Finalize();
  return all ? 1 : 0;
}
