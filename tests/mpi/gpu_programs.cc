// Random programs of collectives in streams: `gpu_programs DRIVER [PROGRAMS [FIRST]]`, DRIVER being
// the stand-in of tests/device. Kinds, types, operators, lengths, places in memory, communicators,
// streams and forms are random; nothing waits until a program ends, and some ranks are late. What
// must come out is what the MPI library makes of the same data in ordinary memory.
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "gpu_streams.h"

namespace streams {
namespace {

enum Kind { kAllreduce, kScan, kBcast, kAllgather, kAlltoall, kScatterBlock, kKinds };
enum Form { kEnqueued, kPersistent, kCaptured, kForms };

std::mt19937 common;  // the same on all ranks
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

// Small numbers, whose sums are exact.
std::vector<int> words(const Type& type, int count) {
  std::vector<int> made(static_cast<std::size_t>(count) * type.bytes / sizeof(int) + 2);
  auto* const bytes = reinterpret_cast<char*>(made.data());
  for (int i = 0; i < count; ++i) {
    type.put(bytes + static_cast<std::size_t>(i) * type.bytes, any(own, 3));
  }
  return made;
}

struct Step {
  Kind kind;
  Form form;
  Type type;
  MPI_Op op;
  int count, root, comm;
  bool in_place;
  std::vector<int> right;
  std::unique_ptr<Buffer> from, to;
  weft_gpu_request request = nullptr;
  void* exec = nullptr;
};

#define BY_KIND(before, after, ...)                                                            \
  switch (s.kind) {                                                                            \
    case kAllreduce:                                                                           \
      return before##allreduce##after(from, to, s.count, s.type.type, s.op, comm __VA_ARGS__); \
    case kScan:                                                                                \
      return before##scan##after(from, to, s.count, s.type.type, s.op, comm __VA_ARGS__);      \
    case kBcast:                                                                               \
      return before##bcast##after(to, s.count, s.type.type, s.root, comm __VA_ARGS__);         \
    case kAllgather:                                                                           \
      return before##allgather##after(from, s.count, s.type.type, to, s.count, s.type.type,    \
                                      comm __VA_ARGS__);                                       \
    case kAlltoall:                                                                            \
      return before##alltoall##after(from, s.count, s.type.type, to, s.count, s.type.type,     \
                                     comm __VA_ARGS__);                                        \
    default:                                                                                   \
      return before##reduce_scatter_block##after(from, to, s.count, s.type.type, s.op,         \
                                                 comm __VA_ARGS__);                            \
  }
#define COMMA ,

int MPI_allreduce_(const void* from, void* to, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  return MPI_Allreduce(from, to, n, t, op, c);
}
int MPI_scan_(const void* from, void* to, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  return MPI_Scan(from, to, n, t, op, c);
}
int MPI_bcast_(void* to, int n, MPI_Datatype t, int root, MPI_Comm c) {
  return MPI_Bcast(to, n, t, root, c);
}
int MPI_allgather_(const void* from, int n, MPI_Datatype t, void* to, int m, MPI_Datatype u,
                   MPI_Comm c) {
  return MPI_Allgather(from, n, t, to, m, u, c);
}
int MPI_alltoall_(const void* from, int n, MPI_Datatype t, void* to, int m, MPI_Datatype u,
                  MPI_Comm c) {
  return MPI_Alltoall(from, n, t, to, m, u, c);
}
int MPI_reduce_scatter_block_(const void* from, void* to, int n, MPI_Datatype t, MPI_Op op,
                              MPI_Comm c) {
  return MPI_Reduce_scatter_block(from, to, n, t, op, c);
}

int by_library(const Step& s, const void* from, void* to, MPI_Comm comm) {
  BY_KIND(MPI_, _)
}
int prepare(Step& s, const void* from, void* to, MPI_Comm comm) {
  BY_KIND(weft_, _init, COMMA & s.request)
}
int enqueue(Step& s, const void* from, void* to, MPI_Comm comm,
            Stream stream){BY_KIND(weft_i, _enqueue, COMMA stream COMMA& s.request)}

Step any_step(int comms) {
  static constexpr int kLengths[] = {1, 7, 100, 3000, 40'000, 300'000};
  static const MPI_Op kOps[] = {MPI_SUM, MPI_MIN, MPI_MAX};
  Step s{};
  s.kind = static_cast<Kind>(any(common, kKinds));
  s.form = static_cast<Form>(any(common, kForms));
  s.type = any_type();
  s.op = kOps[any(common, 3)];
  const int length = any(common, 12);
  s.count = 1 + any(common, kLengths[length < 6 ? length : length % 4]);
  s.root = any(common, ranks);
  s.comm = any(common, comms);
  s.in_place = s.kind == kAllreduce && any(common, 3) == 0;
  const std::vector<int> sent = words(s.type, s.count * ranks);
  s.right = words(s.type, s.count * ranks);
  s.from = std::make_unique<Buffer>(sent, any(own, 3) == 0 ? kProcessor : kDevice);
  s.to = std::make_unique<Buffer>(s.right, any(own, 3) == 0 ? kProcessor : kDevice);
  for (int i = 0; i < (s.form == kEnqueued ? 1 : 2); ++i) {
    good(by_library(s, s.in_place ? MPI_IN_PLACE : sent.data(), s.right.data(), world), "library");
  }
  return s;
}

void start(Step& s, MPI_Comm comm, Stream one) {
  const void* const from = s.in_place ? MPI_IN_PLACE : s.from->data();
  stream = one;
  if (any(own, 8) == 0) launch("test_late");
  if (s.form == kPersistent) {
    good(prepare(s, from, s.to->data(), comm), "prepare");
    good(weft_run_enqueue(s.request, one), "run");
    good(weft_start_enqueue(s.request, one), "start");
    good(weft_wait_enqueue(s.request, one), "wait");
  } else if (s.form == kEnqueued) {
    good(enqueue(s, from, s.to->data(), comm, one), "enqueue");
    good(weft_wait_enqueue(s.request, one), "wait");
  } else {
    void* graph = nullptr;
    good(cuStreamBeginCapture_v2(one, 0), "capture");
    good(enqueue(s, from, s.to->data(), comm, one), "enqueue");
    good(weft_wait_enqueue(s.request, one), "wait");
    good(cuStreamEndCapture(one, &graph), "end of capture");
    good(cuGraphInstantiateWithFlags(&s.exec, graph, 0), "instantiate");
    good(cuGraphDestroy(graph), "destroy");
    for (int i = 0; i < 2; ++i) good(cuGraphLaunch(s.exec, one), "graph");
  }
}

void run_program(unsigned seed, const std::vector<MPI_Comm>& comms,
                 const std::vector<Stream>& all_streams) {
  common.seed(seed);
  own.seed(seed * 1000 + static_cast<unsigned>(rank) + 1);
  std::vector<Step> steps;
  for (int i = 1 + any(common, 12); i > 0; --i) {
    steps.push_back(any_step(static_cast<int>(comms.size())));
  }
  for (Step& s : steps) {
    start(s, comms[static_cast<std::size_t>(s.comm)],
          all_streams[static_cast<std::size_t>(any(common, static_cast<int>(all_streams.size())))]);
  }
  for (Stream one : all_streams) good(cuStreamSynchronize(one), "synchronize");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& s = steps[i];
    good(weft_gpu_request_free(&s.request), "free");
    if (s.exec) good(cuGraphExecDestroy(s.exec), "destroy");
    expect(s.to->content() == s.right, "program " + std::to_string(seed) + ", step " +
                                           std::to_string(i) + ": kind " + std::to_string(s.kind) +
                                           ", form " + std::to_string(s.form) + ", count " +
                                           std::to_string(s.count));
  }
}

}  // namespace
}  // namespace streams

int main(int argc, char** argv) {
  using namespace streams;
  if (argc < 2 || !standin::load_driver(argv[1]) || !standin::add_kernel) {
    std::fprintf(stderr, "usage: gpu_programs STAND-IN [PROGRAMS [FIRST]]\n");
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
  std::vector<MPI_Comm> comms(2);
  for (MPI_Comm& one : comms) MPI_Comm_dup(world, &one);
  const int programs = argc > 2 ? std::atoi(argv[2]) : 20;
  const int first = argc > 3 ? std::atoi(argv[3]) : 1;
  for (int i = 0; i < programs; ++i) {
    run_program(static_cast<unsigned>(first + i), comms, all_streams);
  }
  for (MPI_Comm& one : comms) MPI_Comm_free(&one);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, world);
  if (rank == 0 && all == 0) std::printf("%d cases equal\n", cases);
  MPI_Finalize();
  return all > 0;
}
