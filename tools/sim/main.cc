// weft-sim: one collective over computation on a simulated machine, as JSON, for `weft sim` and
// `weft reproduce`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "../finite.h"
#include "base/whole_file.h"
#include "calibrate.h"
#include "machine_file.h"
#include "select/selector.h"
#include "select/split_model.h"
#include "sim/experiment.h"
#include "size.h"

namespace weft::sim {
namespace {

using nlohmann::ordered_json;

constexpr int kRefused = 2, kMostRanks = 1 << 20, kMostTraced = 4096;

struct Options {
  std::string machine;
  int nodes = 1;
  int ranks = 0;
  std::string collective, algorithm;
  std::string bytes = "1MiB";
  int root = 0;
  std::string engine = "thread", placement = "numa", backoff = "yield", transport = "auto";
  std::string callers = "help", order = "dataflow", split = "0";
  double compute_us = 0, noise = 0;
  int calls = 0;
  std::uint64_t seed = 1;
  int copies = 0;  // 0: the machine's value
  std::string trace, library = "other";
};

int refuse(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return kRefused;
}

std::string collective_names() {
  std::string names;
  for (int kind = 0; kind < kKinds; ++kind)
    if (is_simulated(static_cast<Kind>(kind)))
      names += (names.empty() ? "" : ", ") + std::string(kind_name(static_cast<Kind>(kind)));
  return names;
}

// Finds the collective of a name; iscan stands for scan.
Result<Kind> find_kind(const std::string& name) {
  for (const std::string& word : {name, name.substr(name.rfind('i', 0) == 0 ? 1 : 0)})
    for (int kind = 0; kind < kKinds; ++kind) {
      const Kind found = static_cast<Kind>(kind);
      if (word == kind_name(found) && is_simulated(found)) return found;
    }
  return Error{"no collective '" + name + "' is simulated; there are " + collective_names()};
}

Result<const Algorithm*> find_algorithm_of(const Options& options, const Shape& shape) {
  if (options.algorithm.empty()) return &default_algorithm(shape);
  if (const Algorithm* found = find_algorithm(shape.kind, options.algorithm)) return found;
  std::string names;
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.kind == shape.kind)
      names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
  return Error{"no algorithm '" + options.algorithm + "'; " + kind_name(shape.kind) + " has " +
               names};
}

// Returns the executor of an engine. `auto` follows the library's static rule; calls that it leaves
// to the MPI library are not simulated.
Result<Executor> executor_of(const Options& options, const Shape& shape) {
  std::string word = options.engine;
  if (word == "auto") {
    const Library library = options.library == "mpich"      ? Library::mpich
                            : options.library == "openmpi"  ? Library::openmpi
                            : options.library == "intelmpi" ? Library::intelmpi
                                                            : Library::other;
    const Engine engine = static_rule(library, shape);
    if (engine == Engine::native)
      return Error{
          "engine auto leaves this call to the MPI library, whose collectives are not "
          "simulated; name an engine"};
    word = engine == Engine::function ? "function" : "thread";
  }
  if (word == "blocking") return Executor::blocking;
  if (word == "function") return Executor::function;
  if (word == "agent") return Executor::agent;
  return word == "tcc" ? Executor::tcc : Executor::thread;
}

// Returns the model's split for this number of ranks on each node.
int model_split(const Setup& setup, Kind kind) {
  SplitModel model;
  model.cores = setup.machine.cores;
  model.grows = kind == Kind::gather || kind == Kind::scatter;
  const int here = (setup.ranks + setup.nodes - 1) / setup.nodes;
  return best_split(model, here);
}

Result<Shape> make_setup(const Options& options, Setup& setup) {
  auto machine = read_machine(options.machine);
  if (!machine) return machine.error();
  setup.machine = *machine;
  if (options.copies > 0) setup.machine.copies = options.copies;
  const auto kind = find_kind(options.collective);
  if (!kind) return kind.error();
  const auto bytes = parse_size_bytes(options.bytes);
  if (!bytes) return Error{"--bytes: " + bytes.error().message};
  const auto placement = parse_placement(options.placement);
  if (!placement) return placement.error();
  const auto backoff = parse_backoff(options.backoff);
  if (!backoff) return backoff.error();
  setup.nodes = options.nodes;
  setup.ranks = options.ranks > 0 ? options.ranks : options.nodes * setup.machine.cores;
  if (options.root < 0 || options.root >= setup.ranks)
    return Error{"--root must be 0 to " + std::to_string(setup.ranks - 1)};
  setup.bytes = *bytes;
  setup.root = options.root;
  setup.placement = *placement;
  setup.backoff = *backoff;
  setup.callers_help = options.callers == "help";
  setup.by_levels = options.order == "levels";
  setup.compute_us = options.compute_us;
  setup.calls = options.calls;
  setup.noise = options.noise;
  setup.seed = options.seed;
  const Shape shape = shape_of(*kind, setup.ranks, setup.nodes, setup.machine, *bytes, options.root,
                               options.transport == "auto");
  const auto executor = executor_of(options, shape);
  if (!executor) return executor.error();
  setup.executor = *executor;
  const auto algorithm = find_algorithm_of(options, shape);
  if (!algorithm) return algorithm.error();
  setup.algorithm = *algorithm;
  if (options.split == "model") {
    setup.split = model_split(setup, *kind);
    return shape;
  }
  const bool digits = !options.split.empty() && options.split.size() < 3 &&
                      options.split.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) return Error{"--split must be a number of levels, such as 2, or 'model'"};
  setup.split = std::stoi(options.split);
  return shape;
}

Result<bool> write_traces(const std::string& path, const Traces& traces, const std::string& host,
                          double end_us) {
  WholeFile file(path);
  file.add("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  const auto end_ns = static_cast<std::int64_t>(std::llround(end_us * 1e3));
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    if (rank > 0) file.add(",\n");
    file.add(traces[rank].events_json(static_cast<int>(rank), host, 0, end_ns));
  }
  file.add("\n]}\n");
  if (const int error = file.finish()) return Error{not_written("the trace", path, error)};
  return true;
}

ordered_json answer_of(const Options& options, const Setup& setup, const Outcome& outcome) {
  const auto rounded = [](double us) { return std::round(us * 1e3) / 1e3; };
  ordered_json found;
  found["total_us"] = rounded(outcome.total_us);
  found["communication_us"] = rounded(outcome.communication_us);
  found["ranks"] = setup.ranks;
  found["nodes"] = setup.nodes;
  found["events"] = outcome.events;
  found["switches"] = outcome.switches;
  found["messages"] = outcome.messages;
  found["message_bytes"] = outcome.bytes;
  found["machine"] = setup.machine.name;
  found["cores"] = setup.machine.cores;
  found["collective"] = kind_name(setup.algorithm->kind);
  found["algorithm"] = setup.algorithm->name;
  found["bytes"] = setup.bytes;
  found["engine"] = options.engine;
  found["placement"] = options.placement;
  found["split"] = setup.split;
  found["compute_us"] = setup.compute_us;
  if (setup.nodes == 1) {
    found["rank_cores"] = outcome.rank_cores;
    found["thread_cores"] = outcome.thread_cores;
  }
  if (!outcome.note.empty()) found["note"] = outcome.note;
  return found;
}

int run(const Options& options) {
  Setup setup;
  const auto shape = make_setup(options, setup);
  if (!shape) return refuse(shape.error().message);
  const bool traced = !options.trace.empty();
  if (traced && setup.ranks > kMostTraced)
    return refuse("--trace takes at most " + std::to_string(kMostTraced) + " ranks");
  Traces traces;
  const auto outcome = simulate(setup, *shape, traced ? &traces : nullptr);
  if (!outcome) return refuse(outcome.error().message);
  if (traced) {
    const auto written = write_traces(options.trace, traces, setup.machine.name, outcome->total_us);
    if (!written) return refuse(written.error().message);
  }
  std::printf("%s\n", answer_of(options, setup, *outcome).dump().c_str());
  return 0;
}

int measure() {
  Machine machine;
  machine.name = "this machine";
  if (const auto measured = calibrate(machine); !measured) return refuse(measured.error().message);
  const std::string here = "measured by weft sim --calibrate";
  const std::string assumed = "not measured here: a usual value";
  std::fputs(machine_text(machine, "Measured; message and network are usual values.",
                          {{"cores", here},
                           {"numa_nodes", here},
                           {"copy", here},
                           {"copy.remote_cost", assumed},
                           {"core", here},
                           {"core.poll_us", assumed},
                           {"core.call_us", assumed},
                           {"message", assumed},
                           {"network", assumed}})
                 .c_str(),
             stdout);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--machine", options.machine)->required();
  app.add_option("--nodes", options.nodes)->check(CLI::Range(1, kMostRanks));
  app.add_option("--ranks", options.ranks)->check(CLI::Range(1, kMostRanks));
  app.add_option("--collective", options.collective)->required();
  app.add_option("--algorithm", options.algorithm);
  app.add_option("--bytes", options.bytes);
  app.add_option("--root", options.root);
  app.add_option("--engine", options.engine)
      ->check(CLI::IsMember({"blocking", "function", "thread", "agent", "tcc", "auto"}));
  app.add_option("--library", options.library)
      ->check(CLI::IsMember({"mpich", "openmpi", "intelmpi", "other"}));
  app.add_option("--placement", options.placement);
  app.add_option("--backoff", options.backoff);
  app.add_option("--transport", options.transport)->check(CLI::IsMember({"auto", "mpi"}));
  app.add_option("--callers", options.callers)->check(CLI::IsMember({"help", "leave"}));
  app.add_option("--order", options.order)->check(CLI::IsMember({"dataflow", "levels"}));
  app.add_option("--split", options.split);
  app.add_option("--compute", options.compute_us)->check(finite_range(0, 1e9));
  app.add_option("--calls", options.calls)->check(CLI::Range(0, 1 << 20));
  app.add_option("--noise", options.noise)->check(finite_range(0, 100));
  app.add_option("--seed", options.seed);
  app.add_option("--copies", options.copies)->check(CLI::Range(1, 2));
  app.add_option("--trace", options.trace);
}

}  // namespace
}  // namespace weft::sim

int main(int argc, char** argv) {
  weft::sim::Options options;
  CLI::App app{"Simulates a collective over computation, as JSON.", "weft-sim"};
  app.require_subcommand(1);
  CLI::App* run = app.add_subcommand("run", "One experiment.");
  weft::sim::add_options(*run, options);
  app.add_subcommand("calibrate", "This machine's file, measured, to standard output.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return weft::sim::refuse(error.what());
  }
  return run->parsed() ? weft::sim::run(options) : weft::sim::measure();
}
