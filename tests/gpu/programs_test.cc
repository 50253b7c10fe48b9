// Random programs of streams, compared with an oracle. They have computations, reductions and
// collectives on several streams of several ranks: plain, persistent, in one kernel, and captured
// into graphs that are launched repeatedly. Each rank has a thread and streams, and waits in an
// order of its own. All ranks start the same collectives. Some programs contain a planted failure
// of a driver call, a kernel or a collective. Such a job must end and report the reason.
// WEFT_GPU_PROGRAMS: number of programs for each way of notification (500 by default, and a fifth
// as many with a failure). WEFT_GPU_SEED: number of the first program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <list>
#include <thread>

#include "group.h"
#include "program.h"

namespace weft::gpu {
namespace {

// What the ranks keep for all programs, so that later programs use channels, memory and spots
// again.
struct World {
  explicit World(Notify notify) {
    for (int rank = 0; rank < kMostRanks; ++rank) {
      runtimes.push_back(
          std::make_unique<Runtime>(**driver(), Options{OneKernel::automatic, notify}));
    }
  }
  const Group& group(int ranks) {
    Group& group = groups[ranks - 1];
    if (!group.peers.empty()) return group;
    std::vector<Runtime*> all;
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(runtimes[static_cast<std::size_t>(rank)].get());
    }
    group = meet_all(all, {});
    EXPECT_EQ(group.why_not, "");
    return group;
  }

  std::vector<std::unique_ptr<Runtime>> runtimes;
  Group groups[kMostRanks];
};

// Returns the spot of each persistent collective; -1 if it is not in one kernel, or no spot is
// free.
std::vector<int> spots_of(const Program& program, World* world) {
  std::vector<int> spots;
  std::uint32_t taken = 0;
  for (const Step& step : program.persistent) {
    spots.push_back(-1);
    if (!step.in_kernel) continue;
    std::uint32_t free = ~taken;
    for (const auto& one : world->group(program.ranks).peers) free &= one->free_spots();
    if (free == 0) continue;
    spots.back() = __builtin_ctz(free);
    taken |= 1U << spots.back();
  }
  return spots;
}

// ---- Failures --------------------------------------------------------------------

struct Failure {
  enum class Of { nothing, call, kernel, collective } of = Of::nothing;
  const char* call = "";
  int code = 0;
  int rank = 0;  // for a kernel or collective: the rank on which it fails
  int nth = 0;   // number of the failing call of this name, step or collective on its rank
  bool at_start = false;
  std::atomic<bool> struck{false};
};

// Calls whose failure a program must notice. cuCtxGetCurrent is not among them, since the agent can
// do without it.
constexpr const char* kCalls[] = {
    "cuLaunchKernel",       "cuMemcpyAsync",        "cuEventRecord",
    "cuEventCreate",        "cuStreamWaitEvent",    "cuStreamGetCaptureInfo",
    "cuStreamBeginCapture", "cuUserObjectCreate",   "cuGraphRetainUserObject",
    "cuGraphInstantiate",   "cuGraphLaunch",        "cuMemAlloc",
    "cuMemHostAlloc",       "cuMemsetD8Async",      "cuMemHostGetDevicePointer",
    "cuStreamSynchronize",  "cuStreamWriteValue64", "cuStreamWaitValue64",
    "cuMemHostRegister"};
constexpr int kCodes[] = {1 /* invalid value */, 2 /* out of memory */, 719 /* launch failed */};

void plan_failure(const Program& program, Random* random, Failure* failure) {
  failure->of = static_cast<Failure::Of>(1 + below(random, 3));
  failure->call = kCalls[below(random, std::size(kCalls))];
  failure->code = kCodes[below(random, std::size(kCodes))];
  failure->rank = below(random, program.ranks);
  failure->nth = 1 + below(random, 1 + below(random, 30));
  failure->at_start = below(random, 2) == 0;
}

// What the ranks of one program share.
class Job {
 public:
  Job(const Program& program, World* world, Failure* failure)
      : program(program),
        library(program.ranks),
        spots(spots_of(program, world)),
        world(*world),
        failure(*failure) {}

  void fail(int rank, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = "rank " + std::to_string(rank) + ": " + why;
    failed_.store(true);
  }
  bool has_failed() const { return failed_.load(); }
  const std::string& why() const { return why_; }  // valid when all ranks have ended
  // Ends the job, so that nothing waits any more.
  void end() {
    for (const auto& one : world.runtimes) one->agent().stop();
  }

  const Program& program;
  Library library;
  const std::vector<int> spots;
  World& world;
  Failure& failure;

 private:
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // guards the members below
  std::string why_;
};

// ---- One rank --------------------------------------------------------------------

// Thrown when a call fails: a program that checks its calls ends there.
struct Stopped {
  std::string why;
};

void good(int code, const char* call) {
  if (code != kSuccess) throw Stopped{(*driver())->error(call, code).message};
}
template <class T>
T taken(const Result<T>& result) {
  if (!result) throw Stopped{result.error().message};
  return *result;
}

using Handle = std::unique_ptr<void, int (*)(void*)>;

// Captures a stream. The destructor ends the capture, even after a failure.
class Capturing {
 public:
  explicit Capturing(Stream stream) : stream_(stream) {
    good(cuStreamBeginCapture_v2(stream, 0), "cuStreamBeginCapture");
  }
  ~Capturing() {
    if (stream_) end();
  }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;

  Handle graph() {
    Handle made = end();
    good(code_, "cuStreamEndCapture");
    return made;
  }

 private:
  Handle end() {
    void* graph = nullptr;
    code_ = cuStreamEndCapture(std::exchange(stream_, nullptr), &graph);
    return Handle(graph, cuGraphDestroy);
  }

  Stream stream_;
  int code_ = kSuccess;
};

class Rank {
 public:
  Rank(Job* job, int rank, unsigned seed)
      : job_(*job),
        program_(job->program),
        rank_(rank),
        random_(seed),
        runtime_(*job->world.runtimes[static_cast<std::size_t>(rank)]) {
    for (int i = 0; i < program_.buffers; ++i) {
      const bool on_device = below(&random_, 4) > 0;
      buffers_.push_back(
          std::make_unique<Buffer>(program_.type, initial(program_, rank, i), on_device));
    }
    for (int i = 0; i < program_.streams; ++i) {
      Stream made = nullptr;
      EXPECT_EQ(cuStreamCreate(&made, 1), kSuccess);
      streams_.push_back(made);
    }
    EXPECT_EQ(cuModuleGetFunction(&fault_, nullptr, "standin_fault"), kSuccess);
    for (const Step& step : program_.persistent) persistent_.push_back(prepared(step));
  }
  ~Rank() {
    for (Stream one : streams_) cuStreamDestroy_v2(one);
    for (Event one : events_) cuEventDestroy_v2(one);
    while (!held_.empty()) release(held_.front());
  }

  // Runs the program on a thread of this rank.
  void run() {
    use_device();
    try {
      carry_out();
    } catch (const Stopped& stopped) {
      job_.fail(rank_, stopped.why);
    }
  }

  // Returns the contents of its buffers at the end.
  const std::vector<Bytes>& content() const { return content_; }

 private:
  // For each buffer an event after its last use, for which the next use waits.
  using Accesses = std::vector<Event>;
  struct Pending {
    Operation* operation;
    Step step;
    Event started;
  };

  void carry_out() {
    for (const Section& section : program_.sections) {
      if (section.launches > 0) {
        launch(section);
      } else {
        for (const Step& step : section.steps) perform(step);
      }
      if (below(&random_, 3) == 0) synchronise(any_stream());
    }
    while (!pending_.empty()) wait(pending_.begin());
    for (Stream one : streams_) synchronise(one);
    for (const auto& one : buffers_) content_.push_back(one->bytes());
    if (is_asked()) ask_all();
    while (!held_.empty()) release(held_.front());
  }

  // Returns whether the program must ask for failures that only the agent has noticed.
  bool is_asked() const {
    return job_.failure.of == Failure::Of::collective || job_.failure.of == Failure::Of::call;
  }

  void ask_all() {
    for (Operation* one : held_) taken(one->status());
  }

  // Waits for the stream while it also checks the job and its collectives: the stream may wait for
  // a collective that has failed.
  void synchronise(Stream stream) {
    const Event reached = recorded(stream);
    const OutsideCapture now(**driver());
    while (true) {
      const int code = (*driver())->query(reached);
      if (code == kSuccess) return;
      if (code != kNotReady) good(code, "cuEventQuery");
      check_job();
      if (is_asked()) ask_all();
      std::this_thread::yield();
    }
  }
  void check_job() const {
    if (job_.has_failed()) throw Stopped{"another rank has failed"};
  }

  void set_accesses(Event last) { accesses_.assign(buffers_.size(), last); }

  Operation* held(Operation* operation) {
    held_.push_back(operation);
    return operation;
  }
  void release(Operation* operation) {
    held_.remove(operation);
    runtime_.release(operation);
  }
  Operation* prepared(const Step& step) {
    const int spot = job_.spots[static_cast<std::size_t>(step.number)];
    if (spot < 0) return made(step);
    return held(sum_by_kernel(&runtime_, job_.world.group(program_.ranks), rank_, spot,
                              buffer(step.from), buffer(step.to)));
  }
  Operation* made(const Step& step) {
    const auto seed = static_cast<unsigned>(random_());
    // 0 means that the copies are made in the stream; each rank chooses for itself.
    const auto buffers = static_cast<std::size_t>(below(&random_, static_cast<int>(step.chunks)));
    const Made made = taken(try_collective(
        &runtime_, &job_.library, rank_, step.number, step.what, step.root, buffer(step.from),
        buffer(step.to), step.chunks, seed, step.number < 0 ? order_ : nullptr, buffers));
    if (strikes(Failure::Of::collective, &collectives_)) {
      made.collective->plant("a planted failure", job_.failure.at_start, &job_.failure.struck);
    }
    return held(made.operation);
  }
  // Counts this rank's calls of the kind. Returns whether this one must fail.
  bool strikes(Failure::Of of, int* number) const {
    const Failure& failure = job_.failure;
    return failure.of == of && failure.rank == rank_ && ++*number == failure.nth;
  }
  const Buffer& buffer(int which) const { return *buffers_[static_cast<std::size_t>(which)]; }
  Stream any_stream() {
    return streams_[static_cast<std::size_t>(below(&random_, program_.streams))];
  }
  Event& access(int which) { return accesses_[static_cast<std::size_t>(which)]; }

  Event recorded(Stream stream) {
    Event made = nullptr;
    good(cuEventCreate(&made, 2), "cuEventCreate");
    events_.push_back(made);
    good(cuEventRecord(made, stream), "cuEventRecord");
    return made;
  }
  static void wait_for(Event event, Stream stream) {
    if (event) good(cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
  }

  bool in_use(int which) const {
    for (const Pending& one : pending_) {
      if (one.step.from == which || one.step.to == which) return true;
    }
    return false;
  }

  void perform(const Step& step) {
    check_job();
    // Buffers of operations in flight may not be used.
    while (in_use(step.from) || in_use(step.to)) wait(pending_.begin());
    const Stream stream = any_stream();
    if (strikes(Failure::Of::kernel, &steps_)) {
      good(cuLaunchKernel(fault_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), "cuLaunchKernel");
      job_.failure.struck.store(true);
    }
    wait_for(access(step.from), stream);
    wait_for(access(step.to), stream);
    if (step.kind == Kind::collective) {
      start(step, stream);
    } else {
      compute(step, stream);
    }
    if (!pending_.empty() && below(&random_, 2) == 0) {
      wait(std::next(pending_.begin(), below(&random_, static_cast<int>(pending_.size()))));
    }
  }

  void compute(const Step& step, Stream stream) {
    if (step.kind == Kind::affine) {
      good(launch_affine(buffer(step.to), step.factor, step.addend, stream), "cuLaunchKernel");
      access(step.to) = recorded(stream);
      return;
    }
    Context* const context = taken(runtime_.context());
    taken(context->launch_reduction(reinterpret_cast<void*>(buffer(step.from).address()),
                                    reinterpret_cast<void*>(buffer(step.to).address()),
                                    program_.count, program_.type, WEFT_GPU_SUM, stream));
    access(step.from) = access(step.to) = recorded(stream);
  }

  void start(const Step& step, Stream stream) {
    Operation* const operation =
        step.number < 0 ? made(step) : persistent_[static_cast<std::size_t>(step.number)];
    if (step.number >= 0 && below(&random_, 3) == 0) {
      taken(operation->run(stream));
      access(step.from) = access(step.to) = recorded(stream);
      return;
    }
    taken(operation->start(stream));
    pending_.push_back({operation, step, recorded(stream)});
  }

  void wait(std::list<Pending>::iterator which) {
    const Pending one = *which;
    pending_.erase(which);
    const Stream stream = any_stream();
    wait_for(one.started, stream);
    taken(one.operation->wait(stream));
    if (one.step.number < 0 && !is_asked()) release(one.operation);
    access(one.step.from) = access(one.step.to) = recorded(stream);
  }

  void launch(const Section& section) {
    while (!pending_.empty()) wait(pending_.begin());
    const Stream first = streams_[0];
    for (Event one : accesses_) wait_for(one, first);
    const Handle graph = captured(section);
    void* made = nullptr;
    good(cuGraphInstantiateWithFlags(&made, graph.get(), 0), "cuGraphInstantiate");
    const Handle exec(made, cuGraphExecDestroy);
    for (int i = 0; i < section.launches; ++i) {
      good(cuGraphLaunch(exec.get(), first), "cuGraphLaunch");
    }
    set_accesses(recorded(first));
  }

  Handle captured(const Section& section) {
    const Stream first = streams_[0];
    Capturing capture(first);
    const Event forked = recorded(first);
    for (Stream one : streams_) {
      if (one != first) wait_for(forked, one);
    }
    set_accesses(nullptr);
    for (const Step& step : section.steps) perform(step);
    while (!pending_.empty()) wait(pending_.begin());
    for (Stream one : streams_) {
      if (one != first) wait_for(recorded(one), first);
    }
    return capture.graph();
  }

  Job& job_;
  const Program& program_;
  const int rank_;
  Random random_;
  Runtime& runtime_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  void* fault_ = nullptr;
  std::list<Operation*> held_;  // with a reference of this rank
  std::vector<Operation*> persistent_;
  std::list<Pending> pending_;
  int steps_ = 0, collectives_ = 0;  // numbers of steps and collectives so far
  std::vector<Bytes> content_;
  Accesses accesses_ = Accesses(static_cast<std::size_t>(program_.buffers), nullptr);
  std::shared_ptr<Order> order_ = std::make_shared<Order>();
};

// ---- Jobs ------------------------------------------------------------------------

// Ends the test with a message that names the program, if a program hangs.
class TimeLimit {
 public:
  explicit TimeLimit(unsigned seed) {
    constexpr unsigned kSeconds = 120;
    std::snprintf(said_, sizeof said_, "the program of seed %u does not end\n", seed);
    std::signal(SIGALRM, [](int) {
      if (write(STDERR_FILENO, said_, std::strlen(said_)) >= 0) std::abort();
    });
    alarm(kSeconds);
  }
  ~TimeLimit() { alarm(0); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  static inline char said_[80];
};

using Ranks = std::vector<std::unique_ptr<Rank>>;

Ranks ranks_of(Job* job, unsigned seed) {
  Ranks ranks;
  for (int rank = 0; rank < job->program.ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(job, rank, seed * 16 + static_cast<unsigned>(rank)));
  }
  return ranks;
}

void run_all(Ranks* ranks) {
  std::vector<std::thread> threads;
  for (auto& one : *ranks) threads.emplace_back([&one] { one->run(); });
  for (std::thread& one : threads) one.join();
}

void check_results(const Job& job, const Ranks& ranks) {
  const State right = expected(job.program);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<Bytes>& found = ranks[rank]->content();
    for (std::size_t buffer = 0; buffer < found.size(); ++buffer) {
      ASSERT_EQ(first_difference(job.program.type, found[buffer], right[rank][buffer]), "")
          << "rank " << rank << ", buffer " << buffer;
    }
  }
}

void check_program(unsigned seed, World* world) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const TimeLimit limit(seed);
  Random random(seed);
  const Program program = random_program(&random);
  Failure none;
  Job job(program, world, &none);
  Ranks ranks = ranks_of(&job, seed);
  run_all(&ranks);
  if (job.has_failed()) job.end();
  ASSERT_EQ(job.why(), "");
  check_results(job, ranks);
  ASSERT_EQ(job.library.problem(), "");
}

// Returns false if nothing in this world may be used again.
bool check_failure(unsigned seed, World* world, int* struck) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const TimeLimit limit(seed);
  Random random(seed);
  const Program program = random_program(&random);
  Failure failure;
  plan_failure(program, &random, &failure);
  Job job(program, world, &failure);
  Ranks ranks = ranks_of(&job, seed);
  const bool of_call = failure.of == Failure::Of::call;
  if (of_call) standin_fail(failure.call, failure.nth, failure.code);
  run_all(&ranks);
  if (of_call) failure.struck.store(standin_planted() == 0);
  *struck += failure.struck;
  EXPECT_EQ(job.has_failed(), failure.struck.load()) << "of " << failure.call << ": " << job.why();
  if (job.has_failed()) {
    job.end();
  } else {
    check_results(job, ranks);
  }
  ranks.clear();
  standin_forget_errors();
  return !job.has_failed();
}

int number_in(const char* variable, int otherwise) {
  const char* const given = std::getenv(variable);
  return given ? std::atoi(given) : otherwise;
}

class Programs : public ::testing::TestWithParam<Notify> {
 protected:
  const int first_ = number_in("WEFT_GPU_SEED", 1);
  const int count_ = number_in("WEFT_GPU_PROGRAMS", 500);
};

TEST_P(Programs, GiveTheOraclesResults) {
  use_device();
  World world(GetParam());
  for (int seed = first_; seed < first_ + count_ && !HasFailure(); ++seed) {
    check_program(static_cast<unsigned>(seed), &world);
  }
}

TEST_P(Programs, EndWithAnErrorWhereOneIsPlanted) {
  use_device();
  const int before = standin_allocated(), count = (count_ + 4) / 5;
  auto world = std::make_unique<World>(GetParam());
  int struck = 0;
  for (int seed = first_; seed < first_ + count && !HasFailure(); ++seed) {
    if (check_failure(static_cast<unsigned>(seed), world.get(), &struck)) continue;
    world.reset();
    standin_forget_errors();  // errors of the last copies in the world's own streams
    ASSERT_EQ(standin_allocated(), before) << "seed " << seed;
    world = std::make_unique<World>(GetParam());
  }
  std::printf("%d of %d planted failures have struck\n", struck, count);
  EXPECT_GE(struck, count / 3);
}

INSTANTIATE_TEST_SUITE_P(Programs, Programs, ::testing::Values(Notify::kernel, Notify::stream));

}  // namespace
}  // namespace weft::gpu
