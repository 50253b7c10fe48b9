// Implements the experiment: tells the scheduler what the threads of the application and of Weft do
// next.
#include "sim/experiment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "coll/algorithm_names.h"
#include "engine/waiting.h"
#include "sim/endpoint.h"
#include "sim/ranks.h"
#include "sim/scheduler.h"
#include "transport/sim/sim_node.h"

namespace weft::sim {
namespace {

// If all ranks' schedules together have more steps than this, they are built in batches.
constexpr double kMostSteps = 4e6;
constexpr std::int32_t kIterationsAtATime = 16;

// While callers wait they poll and yield the core, as in MPICH's blocking collectives.
constexpr Rest kPoll{.kind = Rest::Kind::yield};

enum class Phase : std::uint8_t { call, start, submit, compute, wait, over };

struct Rank {
  Rank(const Setup& setup, Messages& messages, Levels* levels)
      : endpoint(setup.machine, messages, schedule, levels), waiting(setup.backoff) {}

  Schedule schedule;
  NodeBufferUse turn;
  Endpoint endpoint;
  std::optional<Execution> execution;
  // scheduler's numbers of the rank's application thread and progress thread; -1 if there is none.
  int application = -1, thread = -1;
  int busy = -1;     // thread that makes the copy for which the endpoint waits; -1 if there is none
  int watches = -1;  // rank for whose signal this one waits; -1 if there is none
  Waiting waiting;   // what the progress thread does while no operation progresses
  Phase phase = Phase::call;
  int looks = 0;  // number of polls by the caller during the computation so far
  bool is_over = false, is_submitted = false, is_helped = false, stage_is_over = false;
};

class Experiment final : public Threads, public Told {
 public:
  Experiment(const Setup& setup, const Shape& shape, Places places, Traces* traces);

  Result<Outcome> run(const Shape& shape);

  Demand next(int thread, double now_us) override;
  void seen(int thread, Doing doing, double now_us) override;
  void tell(int rank, double at_us) override;

 private:
  // The reason why an operation could not be advanced further: a copy must be made, it waits for
  // other ranks, another thread has the next steps, it is complete, or another thread is working on
  // it.
  enum class Came : std::uint8_t { to_a_job, to_a_wait, to_the_limit, to_the_end, to_nothing };

  Result<bool> build(const Shape& shape);
  Came drive(int rank, int thread, double now_us, Demand& demand);
  bool advance(Rank& r);
  void look_at_signals(int rank, std::uint32_t before, double now_us);
  void ended(int rank, double now_us);
  std::optional<Demand> application(int rank, double now_us);
  std::optional<Demand> starts(int rank, double now_us);
  std::optional<Demand> computes(int rank, double now_us);
  std::optional<Demand> waits(int rank, double now_us);
  Demand progress(int rank, double now_us);
  int agent_of(int rank) const;
  Demand agent(int rank, double now_us);
  std::optional<Demand> debt(int rank);
  Demand idle(int rank, int thread, Rest rest, double now_us);
  static Demand::Kind demand_for(Rest::Kind rest);
  const char* words(int thread, Doing doing);
  static Demand work(double us) { return {Demand::Kind::work, us}; }
  double noisy(double amount);
  double part_of_computation_us() { return noisy(setup_.compute_us / (setup_.calls + 1)); }
  bool has_thread() const { return setup_.executor >= Executor::thread; }
  bool helps() const {
    return setup_.executor != Executor::tcc &&
           (setup_.callers_help || setup_.executor < Executor::thread);
  }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  const Setup& setup_;
  const Kind kind_;
  const bool is_split_;
  Places places_;
  Events events_;
  Messages messages_;
  Scheduler scheduler_;
  std::unique_ptr<Levels> levels_;
  std::map<int, SimNode> nodes_;
  std::deque<Rank> ranks_;
  std::vector<int> rank_of_thread_;
  // The ranks whose collectives the thread of a rank progresses, indexed by that rank (executor
  // agent).
  std::vector<std::vector<int>> served_;
  // Ranks that wait for a rank's signal, indexed by that rank.
  std::vector<std::vector<int>> watchers_;
  std::vector<Trace::Track*> tracks_;  // trace of each thread; empty if nothing is traced
  std::mt19937_64 random_;
  std::optional<Error> error_;
  int unfinished_;
  double total_us_ = 0, communication_us_ = 0;
};

std::vector<int> domains_of(const Machine& machine, const Places& places) {
  std::vector<int> domains;
  for (const int core : places.core_of_rank)
    domains.push_back(
        static_cast<int>(static_cast<std::int64_t>(core) * machine.numa_nodes / machine.cores));
  return domains;
}

Experiment::Experiment(const Setup& setup, const Shape& shape, Places places, Traces* traces)
    : setup_(setup),
      kind_(shape.kind),
      is_split_(setup.split > 0),
      places_(std::move(places)),
      messages_(setup.machine, places_.node_of_rank, domains_of(setup.machine, places_),
                setup.nodes, *this),
      scheduler_(events_, setup.machine, setup.nodes, *this),
      watchers_(static_cast<std::size_t>(setup.ranks)),
      random_(setup.seed),
      unfinished_(setup.ranks) {
  if (setup.by_levels) levels_ = std::make_unique<Levels>(setup.ranks, shape.kind, *this);
  for (int rank = 0; rank < setup.ranks; ++rank) {
    Rank& r = ranks_.emplace_back(setup, messages_, levels_.get());
    const auto index = static_cast<std::size_t>(rank);
    r.application = scheduler_.add(places_.core_of_rank[index], false);
    rank_of_thread_.push_back(rank);
    const int agent = agent_of(rank);
    served_.emplace_back();
    served_[static_cast<std::size_t>(agent)].push_back(rank);
    if (has_thread() && agent == rank) {
      r.thread = scheduler_.add(places_.thread_core_of_rank[index], true);
      rank_of_thread_.push_back(rank);
    }
    if (has_thread()) r.thread = at(agent).thread;
    if (!traces) continue;
    Trace& trace = traces->emplace_back();
    tracks_.push_back(trace.add_track("application", false));
    if (has_thread() && agent == rank)
      tracks_.push_back(
          trace.add_track(setup.executor == Executor::tcc ? "tcc" : "progress", false));
  }
}

std::int64_t ns_of(double us) {
  return static_cast<std::int64_t>(std::llround(us * 1e3));
}

// Returns whether the schedules must be built in batches because they are long. Rank 0 has as many
// steps as any other rank.
bool has_too_many_steps(const Algorithm& algorithm, const Shape& of_first) {
  const Schedule first = weft::build(algorithm, of_first);
  return static_cast<double>(first.steps.size()) * of_first.size > kMostSteps;
}

Result<bool> Experiment::build(const Shape& of_first) {
  Shape shape = of_first;
  const Algorithm& algorithm = *setup_.algorithm;
  const std::int32_t iterations =
      has_too_many_steps(algorithm, shape) ? kIterationsAtATime : INT32_MAX;
  for (shape.rank = 0; shape.rank < shape.size; ++shape.rank) {
    Rank& r = at(shape.rank);
    r.schedule = build_in_batches(algorithm, shape, iterations);
    r.schedule.program = {};
    for (const Step& step : r.schedule.steps)
      if (step.kind == StepKind::leaders)
        return Error{"algorithm " + std::string(algorithm.name) +
                     " calls collectives of the MPI library's, which are not simulated"};
    if (is_split_) r.endpoint.end_stage_at(end_of_first_stage(r.schedule, setup_.split));
    if (is_split_ && !goes_up(kind_))
      r.stage_is_over = end_of_first_stage(r.schedule, setup_.split) == 0;
    r.turn = nodes_[weft::node_of(r.schedule.shape)].turn(r.schedule);
    r.execution.emplace(r.schedule, &r.endpoint, nullptr, &r.turn);
  }
  return true;
}

double Experiment::noisy(double amount) {
  if (setup_.noise <= 0) return amount;
  constexpr double kSteps = 9007199254740992.0;  // 2^53: a double has 53 bits of precision
  const double uniform = (static_cast<double>(random_() >> 11) + 0.5) / kSteps;
  return amount * (1 - setup_.noise * std::log(uniform));
}

void Experiment::tell(int rank, double at_us) {
  const Rank& r = at(rank);
  scheduler_.notify(r.application, at_us);
  if (r.thread >= 0) scheduler_.notify(r.thread, at_us);
}

// Advances a rank's collective as far as possible. Returns true once it is complete, including all
// batches of its schedule.
bool Experiment::advance(Rank& r) {
  for (;;) {
    auto done = r.execution->advance();
    if (!done) {
      if (!error_) error_ = done.error();
      return false;
    }
    if (!*done) return false;
    if (!r.schedule.next_batch) return true;
    r.schedule = r.schedule.next_batch(std::move(r.schedule));
    r.execution->continue_with(r.schedule);
  }
}

// Handles the signals and waits that a rank has carried out since step `before`. Each completed
// wait takes the time of a cache miss, since it has fetched a line that another core wrote. Ranks
// that wait for this rank's signal are told.
void Experiment::look_at_signals(int rank, std::uint32_t before, double now_us) {
  Rank& r = at(rank);
  const std::uint32_t after = r.execution->steps_done();
  bool signals = false;
  for (std::uint32_t i = before; i < after; ++i) {
    const Step& step = r.schedule.steps[i];
    if (step.kind == StepKind::wait) r.endpoint.owe(setup_.machine.cache_us);
    signals = signals || step.kind == StepKind::signal;
  }
  if (signals) {
    const double seen_us = now_us + r.endpoint.debt_us() + setup_.machine.cache_us;
    for (const int watcher : std::exchange(watchers_[static_cast<std::size_t>(rank)], {})) {
      at(watcher).watches = -1;
      tell(watcher, seen_us);
    }
  }
  if (r.is_over || after >= r.schedule.steps.size()) return;
  const Step& next = r.schedule.steps[after];
  if (next.kind != StepKind::wait || r.watches == next.peer) return;
  watchers_[static_cast<std::size_t>(next.peer)].push_back(rank);
  r.watches = next.peer;
}

Experiment::Came Experiment::drive(int rank, int thread, double now_us, Demand& demand) {
  Rank& r = at(rank);
  if (r.is_over) return Came::to_the_end;
  if (r.busy >= 0 && r.busy != thread) return Came::to_nothing;
  r.endpoint.at(now_us);
  if (std::exchange(r.busy, -1) == thread) r.endpoint.job_done(now_us);
  const std::uint32_t before = r.execution->steps_done();
  r.is_over = advance(r);
  if (r.schedule.node_bytes > 0) look_at_signals(rank, before, now_us);
  if (r.is_over) {
    ended(rank, now_us + r.endpoint.debt_us());
    return Came::to_the_end;
  }
  if (r.endpoint.job_bytes() > 0) {
    r.busy = thread;
    const double debt = r.endpoint.take_debt_us() * setup_.machine.core_copy;
    demand = {Demand::Kind::copy, noisy(r.endpoint.job_bytes()) + debt};
    return Came::to_a_job;
  }
  return r.endpoint.stage_is_over() ? Came::to_the_limit : Came::to_a_wait;
}

void Experiment::ended(int rank, double at_us) {
  Rank& r = at(rank);
  communication_us_ = std::max(communication_us_, at_us);
  tell(rank, at_us);
  if (r.thread >= 0) scheduler_.wake(r.application, at_us + setup_.machine.wake_us);
}

// Returns work for the time that the rank's core must still spend on past steps; nothing if there
// is none.
std::optional<Demand> Experiment::debt(int rank) {
  const double debt_us = at(rank).endpoint.take_debt_us();
  if (debt_us <= 0) return std::nullopt;
  return work(debt_us);
}

// Returns what a waiting thread does. `rest` says how it waits. If no other thread wants the core,
// it waits also while it spends the time for past steps; otherwise it spends that time first.
Demand Experiment::idle(int rank, int thread, Rest rest, double now_us) {
  Endpoint& endpoint = at(rank).endpoint;
  const bool can_wait = rest.kind == Rest::Kind::yield && scheduler_.is_alone(thread);
  if (endpoint.debt_us() > 0 && !can_wait) return *debt(rank);
  const double owed_us = endpoint.take_debt_us(), rest_us = static_cast<double>(rest.ns) / 1e3;
  // A thread that dozes needs an event for each doze, since the length of the next one depends on
  // when it wakes.
  const bool dozes = rest.kind == Rest::Kind::doze;
  return {demand_for(rest.kind), rest_us, dozes ? now_us : endpoint.look_at_us(), now_us + owed_us};
}

Demand::Kind Experiment::demand_for(Rest::Kind rest) {
  switch (rest) {
    case Rest::Kind::none:
      return Demand::Kind::spin;
    case Rest::Kind::yield:
      return Demand::Kind::poll;
    case Rest::Kind::sleep:
    case Rest::Kind::doze:
      return Demand::Kind::nap;
    case Rest::Kind::idle:
      break;
  }
  return Demand::Kind::sleep;
}

// Returns the rank whose thread progresses this rank's collective. With executor agent that is the
// first rank whose thread is on the same core.
int Experiment::agent_of(int rank) const {
  if (setup_.executor != Executor::agent) return rank;
  const auto& cores = places_.thread_core_of_rank;
  const auto own = cores.begin() + rank;
  return static_cast<int>(std::find(cores.begin(), own, *own) - cores.begin());
}

Demand Experiment::next(int thread, double now_us) {
  const int rank = rank_of_thread_[static_cast<std::size_t>(thread)];
  if (error_) return {};
  if (thread != at(rank).application) return progress(rank, now_us);
  for (;;)
    if (const auto demand = application(rank, now_us)) return *demand;
}

// Returns what the application's thread does next; nothing if its next phase has begun instead.
std::optional<Demand> Experiment::application(int rank, double now_us) {
  Rank& r = at(rank);
  switch (r.phase) {
    case Phase::call:
      r.phase = setup_.executor == Executor::blocking ? Phase::wait : Phase::start;
      return work(setup_.machine.call_us);
    case Phase::start:
      return starts(rank, now_us);
    case Phase::submit:
      r.phase = Phase::compute;
      if (has_thread() && !r.is_over && !r.stage_is_over) {
        r.is_submitted = true;
        r.waiting.begin(ns_of(now_us));
        scheduler_.wake(r.thread, now_us + setup_.machine.wake_us);
        if (setup_.executor == Executor::agent) scheduler_.notify(r.thread, now_us);
      }
      return work(part_of_computation_us());
    case Phase::compute:
      return computes(rank, now_us);
    case Phase::wait:
      return waits(rank, now_us);
    case Phase::over:
      break;
  }
  total_us_ = std::max(total_us_, now_us);
  --unfinished_;
  return Demand{};
}

// Returns what the application's thread does next in the call that starts the collective; nothing
// if its next phase has begun. The call progresses the collective as far as possible, or through
// the first stage of a split tree.
std::optional<Demand> Experiment::starts(int rank, double now_us) {
  Rank& r = at(rank);
  const bool has_stage = is_split_ && goes_up(kind_);
  Demand demand;
  if (helps() || has_stage) {
    const Came came = drive(rank, r.application, now_us, demand);
    if (came == Came::to_a_job) return demand;
    const bool waits = came == Came::to_a_wait || came == Came::to_nothing;
    if (has_stage && waits) return idle(rank, r.application, kPoll, now_us);
    if (const auto owed = debt(rank)) return owed;
  }
  if (has_stage) r.endpoint.no_more_stages();
  r.phase = Phase::submit;
  return std::nullopt;
}

// Returns what the application's thread does next in its computation; nothing if its next phase has
// begun. The computation has several parts of equal length, and the caller polls once between two
// of them.
std::optional<Demand> Experiment::computes(int rank, double now_us) {
  Rank& r = at(rank);
  if (r.looks == setup_.calls) {
    r.phase = setup_.executor == Executor::blocking ? Phase::over : Phase::wait;
    return std::nullopt;
  }
  Demand demand;
  if (drive(rank, r.application, now_us, demand) == Came::to_a_job) return demand;
  // If the collective is complete, no more polls are needed, so all remaining parts of the
  // computation follow at once.
  const int parts = r.is_over ? setup_.calls - r.looks : 1;
  r.looks += parts;
  const double look_us = setup_.machine.poll_us + r.endpoint.take_debt_us();
  return work(look_us + parts * part_of_computation_us());
}

std::optional<Demand> Experiment::waits(int rank, double now_us) {
  Rank& r = at(rank);
  if (r.is_over) {
    r.phase = setup_.executor == Executor::blocking ? Phase::submit : Phase::over;
    return debt(rank);
  }
  const bool last_stage = is_split_ && !goes_up(kind_) && r.stage_is_over;
  if (!helps() && !last_stage) return Demand{Demand::Kind::sleep};
  if (last_stage) r.endpoint.no_more_stages();
  if (helps() && !std::exchange(r.is_helped, true) && r.thread >= 0)
    scheduler_.notify(r.thread, now_us);
  Demand demand;
  const Came came = drive(rank, r.application, now_us, demand);
  if (came == Came::to_a_job) return demand;
  if (came == Came::to_the_end) return std::nullopt;
  return idle(rank, r.application, kPoll, now_us);
}

// Returns what the thread of an agent does next. It advances the collectives of one rank after the
// other, starting with the one whose copy was just made, and sleeps if none can continue.
Demand Experiment::agent(int rank, double now_us) {
  auto& served = served_[static_cast<std::size_t>(rank)];
  std::stable_partition(served.begin(), served.end(),
                        [&](int of) { return at(of).busy == at(of).thread; });
  double owed_us = 0, look_at_us = kNever;
  bool waits = false;
  for (const int of : served) {
    Rank& r = at(of);
    if (!r.is_submitted || r.is_over || (r.is_helped && r.busy != r.thread)) continue;
    Demand demand;
    const Came came = drive(of, r.thread, now_us, demand);
    if (came == Came::to_a_job) {
      // The thread must also spend the time for the collectives before this one. It does so after
      // the copy.
      r.endpoint.owe(owed_us);
      return demand;
    }
    owed_us += r.endpoint.take_debt_us();
    if (r.is_helped) scheduler_.notify(r.application, now_us);
    if (came != Came::to_a_wait || r.is_helped) continue;
    waits = true;
    look_at_us = std::min(look_at_us, r.endpoint.look_at_us());
  }
  if (owed_us > 0) return work(owed_us);
  if (!waits) return Demand{Demand::Kind::sleep};
  return {Demand::Kind::nap, static_cast<double>(QuietPace::kLeast_ns) / 1e3, look_at_us};
}

Demand Experiment::progress(int rank, double now_us) {
  if (setup_.executor == Executor::agent) return agent(rank, now_us);
  Rank& r = at(rank);
  const Demand sleep{Demand::Kind::sleep};
  const bool stands_back = r.is_helped && r.busy != r.thread;
  if (!r.is_submitted || r.is_over || r.stage_is_over || stands_back) return sleep;
  Demand demand;
  const std::uint32_t before = r.execution->round();
  const Came came = drive(rank, r.thread, now_us, demand);
  if (r.execution->round() != before) r.waiting.progressed(ns_of(now_us));
  if (came == Came::to_a_job) return demand;
  if (r.is_helped) scheduler_.notify(r.application, now_us);
  if (came == Came::to_the_limit) {
    r.stage_is_over = true;
    scheduler_.wake(r.application, now_us + setup_.machine.wake_us);
  }
  const bool over = came == Came::to_the_end || came == Came::to_the_limit;
  if (over || r.is_helped) {
    const auto owed = debt(rank);
    return owed ? *owed : sleep;
  }
  const bool in_library = setup_.executor == Executor::tcc;
  const Rest rest = in_library ? kPoll : r.waiting.among_operations(ns_of(now_us));
  return idle(rank, r.thread, rest, now_us);
}

const char* Experiment::words(int thread, Doing doing) {
  const Rank& r = at(rank_of_thread_[static_cast<std::size_t>(thread)]);
  const bool is_application = thread == r.application;
  switch (doing) {
    case Doing::working:
      return is_application && r.phase == Phase::compute ? "computing" : "working";
    case Doing::polling:
      return "polling";
    case Doing::ready:
      return "ready";
    case Doing::asleep:
      break;
  }
  return is_application && r.phase == Phase::over ? "done" : "asleep";
}

void Experiment::seen(int thread, Doing doing, double now_us) {
  if (tracks_.empty()) return;
  const auto at_ns = static_cast<std::int64_t>(std::llround(now_us * 1e3));
  tracks_[static_cast<std::size_t>(thread)]->change(words(thread, doing), at_ns);
}

Result<Outcome> Experiment::run(const Shape& shape) {
  if (auto built = build(shape); !built) return built.error();
  scheduler_.begin();
  while (!events_.empty() && !error_) scheduler_.happens(events_.next());
  if (error_) return *error_;
  if (unfinished_ > 0)
    return Error{std::to_string(unfinished_) + " ranks wait for what nobody does"};
  Outcome outcome;
  outcome.total_us = total_us_;
  outcome.communication_us = communication_us_;
  outcome.events = events_.happened();
  outcome.switches = scheduler_.switches();
  outcome.messages = messages_.messages();
  outcome.bytes = messages_.bytes();
  outcome.rank_cores = places_.core_of_rank;
  if (has_thread()) {
    outcome.thread_cores = places_.thread_core_of_rank;
    outcome.note = places_.note;
  }
  return outcome;
}

Layout layout_of_bytes(Kind kind, std::int64_t bytes) {
  const std::int64_t element = reduces(kind) && bytes % 8 == 0 ? 8 : 1;
  return {.count = bytes / element,
          .size = element,
          .extent = element,
          .true_lb = 0,
          .true_extent = element,
          .plain = true};
}

Result<bool> check(const Setup& setup, const Shape& shape) {
  if (setup.nodes > setup.ranks)
    return Error{"there are more nodes than ranks; ask for fewer nodes or more ranks"};
  const bool levels = algorithm_names::kBinomial.names(*setup.algorithm) &&
                      setup.algorithm->kind != Kind::allreduce;
  if ((setup.split > 0 || setup.by_levels) && !levels)
    return Error{
        "only trees have levels: take algorithm binomial of bcast, reduce, gather or "
        "scatter"};
  if (setup.executor == Executor::agent && setup.nodes > 1)
    return Error{
        "in the simulator an agent serves the ranks of one node; between nodes take engine thread"};
  if (setup.calls > 0 && setup.executor != Executor::function)
    return Error{"only the caller of engine function looks while it computes: leave out --calls"};
  const bool leaves = setup.executor == Executor::thread && !setup.callers_help;
  if (setup.split > 0 && !leaves)
    return Error{"a split tree needs engine thread, and callers that leave the rest to it"};
  if (!applies(*setup.algorithm, shape))
    return Error{"algorithm " + std::string(setup.algorithm->name) + " does not apply to " +
                 std::to_string(setup.ranks) + " ranks on " + std::to_string(setup.nodes) +
                 (setup.nodes == 1 ? " node" : " nodes")};
  return true;
}

}  // namespace

bool is_simulated(Kind kind) {
  return has_one_count(kind);
}

Shape shape_of(Kind kind, int ranks, int nodes, const Machine& machine, std::int64_t bytes,
               int root, bool in_memory) {
  Shape shape;
  shape.kind = kind;
  shape.size = ranks;
  shape.root = root;
  shape.send = shape.recv = layout_of_bytes(kind, bytes);
  if (!in_memory || nodes > ranks) return shape;
  shape.on_one_node = nodes == 1;
  std::vector<int> node_of_rank, domain_of_rank;
  const auto places = place_ranks(machine, ranks, nodes, {});
  if (!places) return shape;
  const std::vector<int> domains = domains_of(machine, *places);
  if (nodes == 1 && machine.numa_nodes > 1)
    shape.domains = std::make_shared<const Domains>(domains);
  // As in the library, hierarchical algorithms are used only if some ranks share a node, so the
  // nodes are passed on only then.
  auto of_nodes = std::make_shared<const Nodes>(places->node_of_rank, domains);
  if (nodes > 1 && of_nodes->some_share()) shape.nodes = std::move(of_nodes);
  return shape;
}

Result<Outcome> simulate(const Setup& setup, const Shape& shape, Traces* traces) {
  if (auto checked = check(setup, shape); !checked) return checked.error();
  auto places = place_ranks(setup.machine, setup.ranks, setup.nodes, setup.placement);
  if (!places) return places.error();
  return Experiment(setup, shape, std::move(*places), traces).run(shape);
}

}  // namespace weft::sim
