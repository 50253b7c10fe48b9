// Makes a random program from its seed. Each step has its own random generator, so that leaving out
// one step changes no other.
#include "program.h"

#include <algorithm>

namespace random_programs {
namespace {

using conformance::Form;
using conformance::Kind;

constexpr const char* kCommNames[kComms] = {"world",        "duplicate", "reversed", "halves",
                                            "all but last", "ring",      "grid",     "graph",
                                            "uneven graph", "self",      "groups"};
constexpr const char* kTypeNames[conformance::kTypes] = {"int",    "double",   "complex", "struct",
                                                         "vector", "negative", "byte"};
constexpr int kDerived[] = {3, 4, 5};
constexpr int kNegative = 5;
constexpr int kBytes = 100 * 1024, kLargestExtent = 32;

int draw_count(Random& random) {
  const int size = random.below(100);
  if (size < 50) return random.below(9);
  if (size < 85) return random.below(100);
  if (size < 98) return random.below(1000);
  return random.below(kBytes / kLargestExtent / 2);
}

Kind draw_kind(Random& random, int comm) {
  constexpr Kind between[] = {Kind::allreduce, Kind::allgather, Kind::alltoall};
  constexpr int first_neighbor = static_cast<int>(Kind::neighbor_allgather);
  if (comm == groups) return between[random.below(3)];
  if (comm >= ring && comm <= uneven && random.below(3) > 0)
    return static_cast<Kind>(first_neighbor + random.below(conformance::kKinds - first_neighbor));
  return static_cast<Kind>(random.below(first_neighbor));
}

Action draw_action(Random& random) {
  const int drawn = random.below(100);
  if (drawn < 52) return Action::collective;
  if (drawn < 58) return Action::blocking;
  if (drawn < 66) return Action::message;
  if (drawn < 69) return Action::exchange;
  if (drawn < 87) return Action::complete;
  if (drawn < 96) return Action::restart;
  return Action::rest;
}

void draw_collective(Random& random, const Limits& limits, Step* step) {
  conformance::Spec& spec = step->spec;
  spec.kind = draw_kind(random, step->comm);
  spec.count = std::min(draw_count(random), limits.largest_count);
  spec.type = random.below(conformance::kTypes);
  spec.op = random.below(6);
  spec.root = random.below(64);
  spec.in_place = random.once_in(3);
  spec.layout = static_cast<unsigned>(random.next());
  spec.mixed =
      random.once_in(6) && !conformance::is_reduction(spec.kind) && !limits.without.count("mixed");
  for (int i = 0; i < conformance::kTypes; ++i) {
    if (!limits.without.count(kTypeNames[i])) spec.types.push_back(i);
  }
  step->large = random.once_in(3) && conformance::kLargeCounts;
  const bool persistent = random.once_in(3) && conformance::kPersistent && step->comm != groups;
  step->form = persistent ? Form::persistent : Form::nonblocking;
  if (step->action == Action::blocking) step->form = Form::blocking;
  step->starts = 1 + random.below(3);
  const bool may_free = !persistent || !limits.without.count("freed-persistent");
  step->frees_types = random.once_in(8) && may_free;
  step->frees_operator = random.once_in(8) && may_free;
  step->frees_comm = random.once_in(12) && !limits.without.count("comm-free") &&
                     step->form == Form::nonblocking && step->comm != groups;
}

bool left_out(const Step& step, const Limits& limits) {
  const auto has = [&limits](const std::string& word) { return limits.without.count(word) > 0; };
  if (step.comm == groups && has("groups")) return true;
  if (step.action != Action::collective && step.action != Action::blocking) return false;
  const auto& spec = step.spec;
  const bool reduces = conformance::is_reduction(spec.kind);
  const bool derived = std::count(std::begin(kDerived), std::end(kDerived), spec.type) > 0;
  const bool scatters =
      spec.kind == Kind::reduce_scatter || spec.kind == Kind::reduce_scatter_block;
  return has(kTypeNames[spec.type]) || has(call_name(spec.kind, step.form, false)) ||
         (reduces && derived && has("user-derived")) ||
         (spec.kind == Kind::alltoallv && spec.in_place && has("alltoallv-in-place")) ||
         (spec.kind == Kind::alltoallw && spec.in_place && has("alltoallw-in-place")) ||
         (spec.mixed && step.form == Form::blocking && has("blocking-mixed")) ||
         (scatters && derived && has("scattered-derived")) ||
         (reduces && spec.type == kNegative && has("reduced-negative")) ||
         (spec.kind == Kind::gather && spec.type == kNegative && has("gathered-negative"));
}

Step draw(std::uint64_t seed, int number, int threads, const Limits& limits) {
  Random random(seed * 1000003 + static_cast<std::uint64_t>(number) * 7919 + 1);
  Step step;
  step.number = number;
  step.action = draw_action(random);
  const int thread = random.below(threads);
  step.thread = limits.threads ? thread : 0;
  step.comm = random.below(kComms);
  step.salt = static_cast<unsigned>(random.next());
  const bool collective = step.action == Action::collective || step.action == Action::blocking;
  if (collective) draw_collective(random, limits, &step);
  if (step.action == Action::message && random.once_in(3)) {
    step.form = Form::persistent;
    step.starts = 1 + random.below(3);
  }
  if (!collective && step.comm == groups) step.comm = world;
  if (left_out(step, limits)) step.action = Action::rest;
  return step;
}

std::string text_of_collective(const Step& step) {
  const auto& spec = step.spec;
  std::string line = call_name(spec.kind, step.form, step.large);
  if (spec.kind != Kind::barrier) {
    line += " " + std::to_string(spec.count) + " × ";
    line += spec.mixed ? "vector or int" : kTypeNames[spec.type];
  }
  if (conformance::is_reduction(spec.kind)) line += ", operator " + std::to_string(spec.op);
  if (conformance::has_root(spec.kind)) line += ", root " + std::to_string(spec.root) + " mod size";
  if (spec.in_place && conformance::has_in_place(spec.kind)) line += ", in place";
  if (step.frees_types) line += ", types freed at once";
  if (step.frees_operator) line += ", operator freed at once";
  if (step.frees_comm) line += ", on a duplicate that is freed at once";
  if (step.form == Form::persistent) line += ", up to " + std::to_string(step.starts) + " starts";
  return line;
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::vector<Step> generate(std::uint64_t seed, const Limits& limits) {
  Random random(seed);
  const int threads = random.once_in(8) ? 2 + random.below(kThreads - 1) : 1;
  const int steps = 3 + random.below(random.once_in(4) ? 60 : 20);
  std::vector<Step> result;
  for (int number = 0; number < steps; ++number) {
    if (!limits.only.empty() && !limits.only.count(number)) continue;
    result.push_back(draw(seed, number, threads, limits));
  }
  return result;
}

std::string text(const Step& step) {
  std::string line = "step " + std::to_string(step.number);
  if (step.thread > 0) line += " (thread " + std::to_string(step.thread) + ")";
  line += ": ";
  const bool persistent = step.form == Form::persistent;
  switch (step.action) {
    case Action::collective:
    case Action::blocking:
      line += text_of_collective(step);
      break;
    case Action::message:
      line += persistent ? "MPI_Send_init and MPI_Recv_init" : "MPI_Isend and MPI_Irecv";
      break;
    case Action::exchange:
      line += "MPI_Recv from the rank below, MPI_Send to the one above";
      break;
    case Action::complete:
      return line + "completes some, each rank in its own way";
    case Action::restart:
      return line + "starts persistent operations again";
    case Action::rest:
      return line + "nothing";
  }
  return line + ", on \"" + kCommNames[step.comm] + "\"";
}

}  // namespace random_programs
