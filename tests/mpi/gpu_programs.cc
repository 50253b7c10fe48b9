// Random programs of collectives in streams: `gpu_programs DRIVER [PROGRAMS [FIRST [FILE]]]`, where
// DRIVER is the stand-in of tests/device. Kinds, types, operators, lengths, memory, communicators,
// streams and forms are random, and so is whether counts are MPI_Count. Nothing is waited for
// before the end of a program, and some ranks are late. The result must be what the MPI library
// computes from the same data in ordinary memory. If FILE is given, a driver call fails on one rank
// in each program. A rank that gets an error ends the job. Messages are appended to FILE.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>

#include "gpu_streams.h"

namespace streams {
namespace {

enum Form { kEnqueued, kPersistent, kCaptured, kForms };

std::mt19937 common;  // has the same state on all ranks
std::mt19937 own;

int any(std::mt19937& source, int below) {
  return static_cast<int>(source() % static_cast<unsigned>(below));
}

struct Type {
  MPI_Datatype type;
  std::size_t bytes;
  void (*put)(void* at, int value);
};

template <class T>
void put(void* at, int value) {
  const T made = static_cast<T>(value);
  std::memcpy(at, &made, sizeof made);
}

const Type& any_type() {
  static const Type all[] = {{MPI_SIGNED_CHAR, 1, put<signed char>},
                             {MPI_SHORT, 2, put<short>},
                             {MPI_INT, 4, put<int>},
                             {MPI_FLOAT, 4, put<float>},
                             {MPI_DOUBLE, 8, put<double>},
                             {MPI_INT64_T, 8, put<std::int64_t>}};
  return all[any(common, 6)];
}

// Returns small numbers, whose floating-point sums are exact.
std::vector<int> words(const Type& type, int count) {
  std::vector<int> made(static_cast<std::size_t>(count) * type.bytes / sizeof(int) + 2);
  auto* const bytes = reinterpret_cast<char*>(made.data());
  for (int i = 0; i < count; ++i) {
    type.put(bytes + static_cast<std::size_t>(i) * type.bytes, any(own, 3));
  }
  return made;
}

// The blocks of one side: how many elements each has, and where it lies.
template <class Count, class Place>
struct BlocksOf {
  std::array<Count, kMost> counts{};
  std::array<Place, kMost> at{}, bytes_at{};
  std::array<MPI_Aint, kMost> far_at{};
};
using Blocks = BlocksOf<int, int>;

template <class Count, class Place>
struct AmountsOf {
  Count count = 0, mine = 0;  // mine: this rank's count, if the ranks' counts differ
  BlocksOf<Count, Place> sent, received;
  std::array<Count, kMost> uneven{};  // indexed by rank
};
using Amounts = AmountsOf<int, int>;
using LargeAmounts = AmountsOf<MPI_Count, MPI_Aint>;  // for the functions whose names end in _c

struct Kind;

struct Step {
  const Kind* kind;
  Form form;
  bool is_large;  // whether counts are MPI_Count
  Type type;
  MPI_Op op;
  int root;
  MPI_Comm comm, beside;  // beside: like `comm`, for the MPI library's own collectives
  bool in_place;
  Amounts amounts;
  std::array<MPI_Datatype, kMost> types{};
  std::vector<int> right;
  std::unique_ptr<Buffer> from, to;
  weft_gpu_request request = nullptr;
  void* exec = nullptr;
};

// The arguments of a call.
template <class These>
struct GivenOf {
  Step& s;
  const These& m;
  MPI_Comm comm;
  const void* from;
  void* to;
  Stream stream;
};
using Given = GivenOf<Amounts>;
using LargeGiven = GivenOf<LargeAmounts>;

enum class Shape { alike, reduces, uneven, pairs, uneven_beside, pairs_beside };

struct Kind {
  const char* name;
  Shape shape;
  int (*by_library)(const Given& g);
  int (*enqueue)(const Given& g);
  int (*prepare)(const Given& g);
  int (*enqueue_large)(const LargeGiven& g) = nullptr;  // none for a barrier, which has no count
  int (*prepare_large)(const LargeGiven& g) = nullptr;
};

bool is_beside(const Kind& kind) {
  return std::strncmp(kind.name, "Neighbor", 8) == 0;
}

#define MADE_BY(call, ...) [](const auto& g) { return call(__VA_ARGS__); }
#define WITH_INTS(Name, name, shape, ...)                                   \
#Name, Shape::shape, MADE_BY(MPI_##Name, __VA_ARGS__),                    \
      MADE_BY(weft_i##name##_enqueue, __VA_ARGS__, g.stream, &g.s.request), \
      MADE_BY(weft_##name##_init, __VA_ARGS__, &g.s.request)
#define KIND(Name, name, ...) \
  { WITH_INTS(Name, name, __VA_ARGS__), LARGE(name, __VA_ARGS__) }
#define LARGE(name, shape, ...)                                           \
  MADE_BY(weft_i##name##_enqueue_c, __VA_ARGS__, g.stream, &g.s.request), \
      MADE_BY(weft_##name##_init_c, __VA_ARGS__, &g.s.request)
#define ALL g.from, g.to, g.m.count, g.s.type.type, g.s.op
#define SENT g.from, g.m.count, g.s.type.type
#define RECEIVED g.to, g.m.count, g.s.type.type
#define MINE g.m.mine, g.s.type.type
#define BLOCKS_SENT g.from, g.m.sent.counts.data(), g.m.sent.at.data(), g.s.type.type
#define BLOCKS_RECEIVED g.to, g.m.received.counts.data(), g.m.received.at.data(), g.s.type.type

const Kind kKinds[] = {
    {WITH_INTS(Barrier, barrier, alike, g.comm)},
    KIND(Allreduce, allreduce, reduces, ALL, g.comm),
    KIND(Scan, scan, reduces, ALL, g.comm),
    KIND(Exscan, exscan, reduces, ALL, g.comm),
    KIND(Reduce, reduce, reduces, ALL, g.s.root, g.comm),
    KIND(Reduce_scatter_block, reduce_scatter_block, reduces, ALL, g.comm),
    KIND(Reduce_scatter, reduce_scatter, reduces, g.from, g.to, g.m.uneven.data(), g.s.type.type,
         g.s.op, g.comm),
    KIND(Bcast, bcast, alike, RECEIVED, g.s.root, g.comm),
    KIND(Allgather, allgather, alike, SENT, RECEIVED, g.comm),
    KIND(Gather, gather, alike, SENT, RECEIVED, g.s.root, g.comm),
    KIND(Scatter, scatter, alike, SENT, RECEIVED, g.s.root, g.comm),
    KIND(Alltoall, alltoall, alike, SENT, RECEIVED, g.comm),
    KIND(Allgatherv, allgatherv, uneven, g.from, MINE, BLOCKS_RECEIVED, g.comm),
    KIND(Gatherv, gatherv, uneven, g.from, MINE, BLOCKS_RECEIVED, g.s.root, g.comm),
    KIND(Scatterv, scatterv, uneven, BLOCKS_SENT, g.to, MINE, g.s.root, g.comm),
    KIND(Alltoallv, alltoallv, pairs, BLOCKS_SENT, BLOCKS_RECEIVED, g.comm),
    KIND(Alltoallw, alltoallw, pairs, g.from, g.m.sent.counts.data(), g.m.sent.bytes_at.data(),
         g.s.types.data(), g.to, g.m.received.counts.data(), g.m.received.bytes_at.data(),
         g.s.types.data(), g.comm),
    KIND(Neighbor_allgather, neighbor_allgather, alike, SENT, RECEIVED, g.comm),
    KIND(Neighbor_alltoall, neighbor_alltoall, alike, SENT, RECEIVED, g.comm),
    KIND(Neighbor_allgatherv, neighbor_allgatherv, uneven_beside, g.from, MINE, BLOCKS_RECEIVED,
         g.comm),
    KIND(Neighbor_alltoallv, neighbor_alltoallv, pairs_beside, BLOCKS_SENT, BLOCKS_RECEIVED,
         g.comm),
    KIND(Neighbor_alltoallw, neighbor_alltoallw, pairs_beside, g.from, g.m.sent.counts.data(),
         g.m.sent.far_at.data(), g.s.types.data(), g.to, g.m.received.counts.data(),
         g.m.received.far_at.data(), g.s.types.data(), g.comm),
};

template <class To, class From>
void convert(BlocksOf<To, MPI_Aint>* to, const From& from) {
  std::copy(from.counts.begin(), from.counts.end(), to->counts.begin());
  std::copy(from.at.begin(), from.at.end(), to->at.begin());
  std::copy(from.bytes_at.begin(), from.bytes_at.end(), to->bytes_at.begin());
  to->far_at = from.far_at;
}

LargeAmounts large(const Amounts& m) {
  LargeAmounts made;
  made.count = m.count, made.mine = m.mine;
  convert(&made.sent, m.sent);
  convert(&made.received, m.received);
  std::copy(m.uneven.begin(), m.uneven.end(), made.uneven.begin());
  return made;
}

int enqueue(Step& s, const void* from, Stream one) {
  void* const to = s.to->data();
  if (!s.is_large) return s.kind->enqueue({s, s.amounts, s.comm, from, to, one});
  return s.kind->enqueue_large({s, large(s.amounts), s.comm, from, to, one});
}

int prepare(Step& s, const void* from) {
  void* const to = s.to->data();
  if (!s.is_large) return s.kind->prepare({s, s.amounts, s.comm, from, to, nullptr});
  return s.kind->prepare_large({s, large(s.amounts), s.comm, from, to, nullptr});
}

// A communicator for the tests, and an equal one for the MPI library's own collectives.
struct Pair {
  MPI_Comm own, beside;
  std::vector<int> sources, targets;  // MPI_PROC_NULL if there is no neighbour
};

// Places blocks in an order of this rank's own. counts: elements in each block, at most `most`.
Blocks placed(const std::vector<int>& counts, int most, std::size_t type_bytes) {
  std::vector<int> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), own);
  Blocks made;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    made.counts[i] = counts[i];
    made.at[i] = order[i] * most;
    made.bytes_at[i] = made.at[i] * static_cast<int>(type_bytes);
    made.far_at[i] = made.bytes_at[i];
  }
  return made;
}

// Returns how many elements a rank sends to another one, the same on all ranks. It may be 0.
int elements(unsigned seed, int from, int to, int most) {
  std::minstd_rand made(seed + static_cast<unsigned>(from * 64 + to + 1));
  made.discard(3);
  const int chosen = static_cast<int>(made() % static_cast<unsigned>(most + most / 4 + 1));
  return chosen > most ? 0 : chosen;
}

void choose_blocks(Step& s, const Pair& comms) {
  const unsigned seed = common();
  const Shape shape = s.kind->shape;
  std::vector<int> sources(static_cast<std::size_t>(ranks));
  std::iota(sources.begin(), sources.end(), 0);
  std::vector<int> targets = sources;
  if (is_beside(*s.kind)) sources = comms.sources, targets = comms.targets;
  const bool in_pairs = shape == Shape::pairs || shape == Shape::pairs_beside;
  const auto count = [&](int from, int to) {
    const int most = s.amounts.count;
    return from < 0 || to < 0 ? most : elements(seed, from, in_pairs ? to : 0, most);
  };
  std::vector<int> sent, received;
  const bool scatters = std::strcmp(s.kind->name, "Scatterv") == 0;
  for (const int to : targets) sent.push_back(scatters ? count(to, 0) : count(rank, to));
  for (const int from : sources) received.push_back(count(from, rank));
  Amounts& m = s.amounts;
  m.sent = placed(sent, m.count, s.type.bytes);
  m.received = placed(received, m.count, s.type.bytes);
  m.mine = count(rank, 0);
  s.types.fill(s.type.type);
  for (int one = 0; one < ranks; ++one) {
    m.uneven[static_cast<std::size_t>(one)] = elements(seed, one, 0, m.count);
  }
}

bool is_defined(const Step& s) {
  if (std::strcmp(s.kind->name, "Exscan") == 0) return rank != 0;
  return std::strcmp(s.kind->name, "Reduce") != 0 || rank == s.root;
}

Step any_step(const std::vector<Pair>& comms, const std::vector<Pair>& topologies) {
  static constexpr int kLengths[] = {1, 7, 100, 3000, 40'000, 300'000};
  static const MPI_Op kOps[] = {MPI_SUM, MPI_MIN, MPI_MAX};
  Step s{};
  s.kind = &kKinds[any(common, static_cast<int>(std::size(kKinds)))];
  s.form = static_cast<Form>(any(common, kForms));
  s.is_large = s.kind->enqueue_large && any(common, 2) == 0;
  s.type = any_type();
  s.op = kOps[any(common, 3)];
  const int length = any(common, 12);
  s.amounts.count = 1 + any(common, kLengths[length < 6 ? length : length % 4]);
  s.root = any(common, ranks);
  const auto& among = is_beside(*s.kind) ? topologies : comms;
  const Pair& chosen = among[static_cast<std::size_t>(any(common, static_cast<int>(among.size())))];
  s.comm = chosen.own, s.beside = chosen.beside;
  s.in_place = std::strcmp(s.kind->name, "Allreduce") == 0 && any(common, 3) == 0;
  choose_blocks(s, chosen);
  const int most = s.amounts.count * std::max({ranks, static_cast<int>(chosen.sources.size()),
                                               static_cast<int>(chosen.targets.size())});
  const std::vector<int> sent = words(s.type, most);
  s.right = words(s.type, most);
  s.from = std::make_unique<Buffer>(sent, any(own, 3) == 0 ? kProcessor : kDevice);
  s.to = std::make_unique<Buffer>(s.right, any(own, 3) == 0 ? kProcessor : kDevice);
  for (int i = 0; i < (s.form == kEnqueued ? 1 : 2); ++i) {
    const void* const from = s.in_place ? MPI_IN_PLACE : sent.data();
    good(s.kind->by_library({s, s.amounts, s.beside, from, s.right.data(), nullptr}), "library");
  }
  return s;
}

void start(Step& s, Stream one) {
  const void* const from = s.in_place ? MPI_IN_PLACE : s.from->data();
  stream = one;
  if (any(own, 8) == 0) launch("test_late");
  if (s.form == kPersistent) {
    good(prepare(s, from), "prepare");
    good(weft_run_enqueue(s.request, one), "run");
    good(weft_start_enqueue(s.request, one), "start");
    good(weft_wait_enqueue(s.request, one), "wait");
  } else if (s.form == kEnqueued) {
    good(enqueue(s, from, one), "enqueue");
    good(weft_wait_enqueue(s.request, one), "wait");
  } else {
    void* graph = nullptr;
    good(cuStreamBeginCapture_v2(one, 0), "capture");
    good(enqueue(s, from, one), "enqueue");
    good(weft_wait_enqueue(s.request, one), "wait");
    good(cuStreamEndCapture(one, &graph), "end of capture");
    good(cuGraphInstantiateWithFlags(&s.exec, graph, 0), "instantiate");
    good(cuGraphDestroy(graph), "destroy");
    for (int i = 0; i < 2; ++i) good(cuGraphLaunch(s.exec, one), "graph");
  }
}

// Makes a driver call of Weft's fail on one rank.
void plant_failure() {
  static constexpr const char* kCalls[] = {
      "cuMemHostAlloc",     "cuMemHostRegister",  "cuEventCreate",
      "cuEventRecord",      "cuMemcpyAsync",      "cuMemcpy2DAsync",
      "cuLaunchKernel",     "cuUserObjectCreate", "cuGraphRetainUserObject",
      "cuIpcOpenMemHandle", "cuIpcGetMemHandle",  "cuStreamGetCaptureInfo"};
  constexpr int kOutOfMemory = 2;
  const char* const call = kCalls[any(common, static_cast<int>(std::size(kCalls)))];
  const int which = any(common, ranks), nth = 1 + any(common, 8);
  if (which == rank) standin::fail(call, nth, kOutOfMemory);
}

void run_program(unsigned seed, bool fails, const std::vector<Pair>& comms,
                 const std::vector<Pair>& topologies, const std::vector<Stream>& all_streams) {
  common.seed(seed);
  own.seed(seed * 1000 + static_cast<unsigned>(rank) + 1);
  std::vector<Step> steps;
  for (int i = 1 + any(common, 12); i > 0; --i) steps.push_back(any_step(comms, topologies));
  if (fails) plant_failure();
  for (Step& s : steps) {
    start(s,
          all_streams[static_cast<std::size_t>(any(common, static_cast<int>(all_streams.size())))]);
  }
  for (Stream one : all_streams) good(cuStreamSynchronize(one), "synchronize");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& s = steps[i];
    good(weft_gpu_request_free(&s.request), "free");
    if (s.exec) good(cuGraphExecDestroy(s.exec), "destroy");
    if (!is_defined(s)) continue;
    expect(s.to->content() == s.right,
           "program " + std::to_string(seed) + ", step " + std::to_string(i) + ": " + s.kind->name +
               (s.is_large ? "_c" : "") + ", form " + std::to_string(s.form) + ", count " +
               std::to_string(s.amounts.count));
  }
}

Pair like(MPI_Comm comm) {
  Pair made{};
  MPI_Comm_dup(comm, &made.own);
  MPI_Comm_dup(comm, &made.beside);
  return made;
}

// Returns a ring, a line, and a graph with random edges.
std::vector<Pair> all_topologies() {
  std::vector<Pair> all;
  for (const int around : {1, 0}) {
    MPI_Comm grid;
    MPI_Cart_create(world, 1, &ranks, &around, 0, &grid);
    Pair made = like(grid);
    int before = 0, after = 0;
    MPI_Cart_shift(grid, 0, 1, &before, &after);
    made.sources = made.targets = {before, after};
    for (int& one : made.sources) one = std::max(one, -1);
    all.push_back(made);
    MPI_Comm_free(&grid);
  }
  Pair made{};
  common.seed(7);
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (any(common, 2) == 0) continue;
      if (from == rank) made.targets.push_back(to);
      if (to == rank) made.sources.push_back(from);
    }
  }
  for (MPI_Comm* one : {&made.own, &made.beside}) {
    MPI_Dist_graph_create_adjacent(world, static_cast<int>(made.sources.size()),
                                   made.sources.data(), MPI_UNWEIGHTED,
                                   static_cast<int>(made.targets.size()), made.targets.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, one);
  }
  all.push_back(made);
  return all;
}

}  // namespace
}  // namespace streams

int main(int argc, char** argv) {
  using namespace streams;
  if (argc < 2 || !standin::load_driver(argv[1]) || !standin::add_kernel) {
    std::fprintf(stderr, "usage: gpu_programs STAND-IN [PROGRAMS [FIRST [FILE]]]\n");
    return 2;
  }
  standin::begin(&argc, &argv, &rank, &ranks);
  world = MPI_COMM_WORLD;
  standin::add_kernel("test_late", 0, nullptr, [](void* const*) {
    timespec while_late{0, 3'000'000};
    nanosleep(&while_late, nullptr);
  });
  std::vector<Stream> all_streams(3);
  for (Stream& one : all_streams) good(cuStreamCreate(&one, 1), "stream");
  std::vector<Pair> comms{like(world), like(world)}, topologies = all_topologies();
  const int programs = argc > 2 ? std::atoi(argv[2]) : 20;
  const int first = argc > 3 ? std::atoi(argv[3]) : 1;
  if (argc > 4 && !std::freopen(argv[4], "a", stdout)) return 2;
  if (argc > 4) patience_s = 20;
  for (int i = 0; i < programs; ++i) {
    run_program(static_cast<unsigned>(first + i), argc > 4, comms, topologies, all_streams);
  }
  for (std::vector<Pair>* const all : {&comms, &topologies}) {
    for (Pair& one : *all) {
      MPI_Comm_free(&one.own);
      MPI_Comm_free(&one.beside);
    }
  }
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, world);
  if (rank == 0 && all == 0) std::printf("%d cases equal\n", cases);
  MPI_Finalize();
  return all > 0;
}
