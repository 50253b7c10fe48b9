// Random programs of streams against an oracle: computations, reductions and collectives on several
// streams of several ranks, plain, persistent, in one kernel, and captured into graphs that are
// launched again and again. Every rank has its own streams and its own order of waits; all start
// the same collectives. WEFT_GPU_PROGRAMS: how many (500 otherwise); WEFT_GPU_SEED: the first one's
// number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <list>

#include "group.h"

namespace weft::gpu {
namespace {

using Random = std::minstd_rand;

int below(Random* random, int bound) {
  return static_cast<int>((*random)() % static_cast<unsigned>(bound));
}

enum class Kind { affine, add, collective };

struct Step {
  Kind kind;
  int from, to;           // buffers
  Number factor, addend;  // of affine, on `to`
  What what;
  int root;
  std::size_t parts;
  int number;      // of a persistent collective; -1: it is none
  bool in_kernel;  // it is an allreduce in one kernel
};

// Steps that run once, or as a graph that is launched so many times.
struct Section {
  std::vector<Step> steps;
  int launches;  // 0: no graph
};

struct Program {
  int ranks, streams, buffers;
  std::size_t count;
  std::vector<Section> sections;
  std::vector<Step> persistent;
};

Step random_step(Random* random, const Program& program) {
  Step step{};
  step.kind = static_cast<Kind>(below(random, 3));
  step.from = below(random, program.buffers);
  step.to = (step.from + 1 + below(random, program.buffers - 1)) % program.buffers;
  step.factor = below(random, 7) - 3;
  step.addend = below(random, 100);
  step.what = static_cast<What>(below(random, 3));
  step.root = below(random, program.ranks);
  step.parts = 1 + static_cast<std::size_t>(below(random, 4));
  step.number = -1;
  step.in_kernel = step.what == What::sum && below(random, 2) == 0;
  return step;
}

Program random_program(Random* random) {
  Program program;
  program.ranks = 1 + below(random, 3);
  program.streams = 1 + below(random, 3);
  program.buffers = 2 + below(random, 4);
  program.count = 1 + static_cast<std::size_t>(below(random, 40));
  const auto persistent = [&](Step step) {
    step.number = static_cast<int>(program.persistent.size());
    program.persistent.push_back(step);
    return step;
  };
  const int sections = 1 + below(random, 4);
  for (int section = 0; section < sections; ++section) {
    Section made;
    made.launches = below(random, 2) * (1 + below(random, 4));
    const int steps = 1 + below(random, 8);
    for (int i = 0; i < steps; ++i) {
      Step step = random_step(random, program);
      const bool again = !program.persistent.empty() && below(random, 3) == 0;
      if (step.kind != Kind::collective) {
        made.steps.push_back(step);
      } else if (again) {
        made.steps.push_back(program.persistent[static_cast<std::size_t>(
            below(random, static_cast<int>(program.persistent.size())))]);
      } else if (made.launches > 0 || below(random, 3) == 0) {
        made.steps.push_back(persistent(step));
      } else {
        made.steps.push_back(step);
      }
    }
    program.sections.push_back(made);
  }
  return program;
}

Numbers initial(const Program& program, int rank, int buffer) {
  Numbers content(program.count);
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = rank * 1000 + buffer * 100 + static_cast<Number>(i);
  }
  return content;
}

// ---- The oracle
// -----------------------------------------------------------------------------------

using State = std::vector<std::vector<Numbers>>;  // by rank and buffer

void apply(const Step& step, State* state) {
  const auto from = static_cast<std::size_t>(step.from), to = static_cast<std::size_t>(step.to);
  std::vector<Numbers> given;
  for (const auto& buffers : *state) given.push_back(buffers[from]);
  for (std::size_t rank = 0; rank < state->size(); ++rank) {
    Numbers& target = (*state)[rank][to];
    if (step.kind == Kind::collective) {
      target = outcome(step.what, step.root, static_cast<int>(rank), given);
      continue;
    }
    for (std::size_t i = 0; i < target.size(); ++i) {
      target[i] = static_cast<Number>(
          step.kind == Kind::add
              ? static_cast<std::uint64_t>(target[i]) + static_cast<std::uint64_t>(given[rank][i])
              : static_cast<std::uint64_t>(target[i]) * static_cast<std::uint64_t>(step.factor) +
                    static_cast<std::uint64_t>(step.addend));
    }
  }
}

State expected(const Program& program) {
  State state;
  for (int rank = 0; rank < program.ranks; ++rank) {
    state.emplace_back();
    for (int buffer = 0; buffer < program.buffers; ++buffer) {
      state.back().push_back(initial(program, rank, buffer));
    }
  }
  for (const Section& section : program.sections) {
    for (int run = 0; run < std::max(1, section.launches); ++run) {
      for (const Step& step : section.steps) apply(step, &state);
    }
  }
  return state;
}

// What the ranks have from their first program on, so that channels, memory and spots are used
// again.
struct World {
  explicit World(Notify notify) {
    for (int rank = 0; rank < kMostRanks; ++rank) {
      runtimes.push_back(
          std::make_unique<Runtime>(**driver(), Options{OneKernel::automatic, notify}));
    }
  }
  // Of so many ranks.
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

  static constexpr int kMostRanks = 3;
  std::vector<std::unique_ptr<Runtime>> runtimes;
  Group groups[kMostRanks];
};

// For each persistent collective a spot; -1: it is none in one kernel, or spots are taken.
std::vector<int> spots_of(const Program& program, const Group& group) {
  std::vector<int> spots;
  std::uint32_t taken = 0;
  for (const Step& step : program.persistent) {
    std::uint32_t free = ~taken;
    for (const auto& one : group.peers) free &= one->free_spots();
    spots.push_back(step.in_kernel && free != 0 ? __builtin_ctz(free) : -1);
    if (spots.back() >= 0) taken |= 1U << spots.back();
  }
  return spots;
}

// ---- One rank
// -------------------------------------------------------------------------------------

class Rank {
 public:
  Rank(const Program& program, Library* library, World* world, const std::vector<int>& spots,
       int rank, unsigned seed)
      : program_(program),
        library_(*library),
        rank_(rank),
        random_(seed),
        runtime_(*world->runtimes[static_cast<std::size_t>(rank)]) {
    for (int i = 0; i < program.buffers; ++i) {
      const bool on_device = below(&random_, 4) > 0;
      buffers_.push_back(std::make_unique<Buffer>(initial(program, rank, i), on_device));
    }
    for (int i = 0; i < program.streams; ++i) {
      Stream made = nullptr;
      EXPECT_EQ(cuStreamCreate(&made, 1), kSuccess);
      streams_.push_back(made);
    }
    const Group& group = world->group(program.ranks);
    for (const Step& step : program.persistent) {
      const int spot = spots[static_cast<std::size_t>(step.number)];
      persistent_.push_back(spot < 0 ? made(step).operation
                                     : sum_by_kernel(&runtime_, group, rank, spot,
                                                     buffer(step.from), buffer(step.to)));
    }
  }
  ~Rank() {
    for (Stream one : streams_) cuStreamDestroy_v2(one);
    for (Event one : events_) cuEventDestroy_v2(one);
  }

  void run() {
    for (const Section& section : program_.sections) {
      if (section.launches > 0) {
        launch(section);
      } else {
        for (const Step& step : section.steps) perform(step);
      }
    }
    while (!pending_.empty()) wait(pending_.begin());
    for (Operation* one : persistent_) runtime_.release(one);
  }

  std::vector<Numbers> finish() {
    for (Stream one : streams_) EXPECT_EQ(cuStreamSynchronize(one), kSuccess);
    std::vector<Numbers> all;
    for (const auto& one : buffers_) all.push_back(one->content());
    return all;
  }

 private:
  // The last use of each buffer: an event, which the next use waits for.
  using Accesses = std::vector<Event>;
  struct Pending {
    Operation* operation;
    Step step;
    Event started;
  };

  void set_accesses(Event last) { accesses_.assign(buffers_.size(), last); }

  Made made(const Step& step) {
    return make_collective(&runtime_, &library_, rank_, step.number, step.what, step.root,
                           buffer(step.from), buffer(step.to), step.parts,
                           static_cast<unsigned>(random_()), step.number < 0 ? order_ : nullptr);
  }
  const Buffer& buffer(int which) const { return *buffers_[static_cast<std::size_t>(which)]; }
  Stream any_stream() {
    return streams_[static_cast<std::size_t>(below(&random_, program_.streams))];
  }
  Event& access(int which) { return accesses_[static_cast<std::size_t>(which)]; }

  Event recorded(Stream stream) {
    Event made = nullptr;
    EXPECT_EQ(cuEventCreate(&made, 2), kSuccess);
    EXPECT_EQ(cuEventRecord(made, stream), kSuccess);
    events_.push_back(made);
    return made;
  }
  void wait_for(Event event, Stream stream) {
    if (!event) return;
    EXPECT_EQ(cuStreamWaitEvent(stream, event, 0), kSuccess);
  }

  bool in_use(int which) const {
    for (const Pending& one : pending_) {
      if (one.step.from == which || one.step.to == which) return true;
    }
    return false;
  }

  void perform(const Step& step) {
    // What is under way keeps its buffers.
    while (in_use(step.from) || in_use(step.to)) wait(pending_.begin());
    const Stream stream = any_stream();
    wait_for(access(step.from), stream);
    wait_for(access(step.to), stream);
    if (step.kind == Kind::collective) {
      start(step, stream);
    } else if (step.kind == Kind::affine) {
      enqueue_affine(buffer(step.to), step.factor, step.addend, stream);
      access(step.to) = recorded(stream);
    } else {
      const auto context = runtime_.context();
      const auto done =
          (*context)->launch_reduction(reinterpret_cast<void*>(buffer(step.from).address()),
                                       reinterpret_cast<void*>(buffer(step.to).address()),
                                       program_.count, WEFT_GPU_INT64, WEFT_GPU_SUM, stream);
      EXPECT_TRUE(done);
      access(step.from) = access(step.to) = recorded(stream);
    }
    if (!pending_.empty() && below(&random_, 2) == 0) {
      wait(std::next(pending_.begin(), below(&random_, static_cast<int>(pending_.size()))));
    }
  }

  void start(const Step& step, Stream stream) {
    Operation* const operation =
        step.number < 0 ? made(step).operation : persistent_[static_cast<std::size_t>(step.number)];
    if (step.number >= 0 && below(&random_, 3) == 0) {
      const auto run = operation->run(stream);
      EXPECT_TRUE(run) << run.error().message;
      access(step.from) = access(step.to) = recorded(stream);
      return;
    }
    const auto started = operation->start(stream);
    EXPECT_TRUE(started) << started.error().message;
    pending_.push_back({operation, step, recorded(stream)});
  }

  void wait(std::list<Pending>::iterator which) {
    const Pending one = *which;
    pending_.erase(which);
    const Stream stream = any_stream();
    wait_for(one.started, stream);
    const auto waited = one.operation->wait(stream);
    EXPECT_TRUE(waited) << waited.error().message;
    if (one.step.number < 0) runtime_.release(one.operation);
    access(one.step.from) = access(one.step.to) = recorded(stream);
  }

  void launch(const Section& section) {
    while (!pending_.empty()) wait(pending_.begin());
    const Stream first = streams_[0];
    for (Event one : accesses_) wait_for(one, first);
    EXPECT_EQ(cuStreamBeginCapture_v2(first, 0), kSuccess);
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
    void *graph = nullptr, *exec = nullptr;
    EXPECT_EQ(cuStreamEndCapture(first, &graph), kSuccess);
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), kSuccess);
    cuGraphDestroy(graph);
    for (int i = 0; i < section.launches; ++i) EXPECT_EQ(cuGraphLaunch(exec, first), kSuccess);
    cuGraphExecDestroy(exec);
    set_accesses(recorded(first));
  }

  const Program& program_;
  Library& library_;
  const int rank_;
  Random random_;
  Runtime& runtime_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<Operation*> persistent_;
  std::list<Pending> pending_;
  Accesses accesses_ = Accesses(static_cast<std::size_t>(program_.buffers), nullptr);
  std::shared_ptr<Order> order_ = std::make_shared<Order>();
};

void check_program(unsigned seed, World* world) {
  Random random(seed);
  const Program program = random_program(&random);
  Library library(program.ranks);
  const std::vector<int> spots = spots_of(program, world->group(program.ranks));
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < program.ranks; ++rank) {
    const auto own = seed * 16 + static_cast<unsigned>(rank);
    ranks.push_back(std::make_unique<Rank>(program, &library, world, spots, rank, own));
  }
  for (auto& one : ranks) one->run();
  const State right = expected(program);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ASSERT_EQ(ranks[rank]->finish(), right[rank]) << "seed " << seed << ", rank " << rank;
  }
  ASSERT_EQ(library.problem(), "") << "seed " << seed;
}

int number_in(const char* variable, int otherwise) {
  const char* const given = std::getenv(variable);
  return given ? std::atoi(given) : otherwise;
}

class Programs : public ::testing::TestWithParam<Notify> {};

TEST_P(Programs, GiveTheOraclesResults) {
  use_device();
  World world(GetParam());
  const int first = number_in("WEFT_GPU_SEED", 1), count = number_in("WEFT_GPU_PROGRAMS", 500);
  for (int seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
    check_program(static_cast<unsigned>(seed), &world);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Programs, ::testing::Values(Notify::kernel, Notify::stream));

}  // namespace
}  // namespace weft::gpu
