// weft-cores: prints the library's decisions about cores as JSON, for `weft place` and `weft
// model`. It is a program, so that placements and the model of split trees are the library's own
// code, not a copy.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../finite.h"
#include "select/split_model.h"
#include "topo/placement.h"

namespace weft {
namespace {

using nlohmann::json;

constexpr int kRefused = 2;
constexpr int kMostCores = 1 << 16;
// The table has all numbers of ranks and all splits, so its size is bounded.
constexpr int kMostCoresOfModel = 4096;
constexpr int kMostCoresOfDataflow = 512;

struct Options {
  std::string policy = "bind";
  std::string machine;  // "": this machine
  int cores = 0;        // 0: the machine's number
  int ranks = 0;        // 0: one per core, or the best number
  std::string collective = "bcast";
  SplitModel model;
};

int refuse(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return kRefused;
}

int answer(const json& found) {
  std::printf("%s\n", found.dump().c_str());
  return 0;
}

// ---- Placement ----

Result<Topology> topology_of(const Options& options) {
  if (options.cores > 0) return plain_topology(options.cores);
  return options.machine.empty() ? read_topology() : read_topology(options.machine);
}

// Returns the core of each thread; `note` says why threads stay beside their ranks.
std::vector<int> thread_cores(const PlacementPolicy& policy, const Topology& topology,
                              const NodeRanks& ranks, std::string& note) {
  std::vector<int> threads;
  for (int rank = 0; rank < static_cast<int>(ranks.core_of_rank.size()); ++rank) {
    const int own = ranks.core_of_rank[static_cast<std::size_t>(rank)];
    const auto core = place(policy, topology, ranks, rank);
    if (!core) note = core.error().message + "; progress threads stay beside their ranks";
    threads.push_back(core && *core >= 0 ? *core : own);
  }
  return threads;
}

int show_placement(const Options& options) {
  const auto policy = parse_placement(options.policy);
  if (!policy) return refuse(policy.error().message);
  const auto topology = topology_of(options);
  if (!topology) return refuse(topology.error().message);
  const auto cores = topology->cores();
  const auto spread =
      rank_cores(*topology, options.ranks > 0 ? options.ranks : static_cast<int>(cores.size()));
  if (!spread) return refuse(spread.error().message);
  const NodeRanks ranks{*spread, {}};
  if (const auto fitting = fits(*policy, *topology, ranks); !fitting)
    return refuse(fitting.error().message + " (" + picture(*topology, ranks) + ")");
  json found;
  found["policy"] = options.policy;
  found["cores"] = cores;
  for (const int core : cores) found["numa_nodes"].push_back(topology->numa(core));
  found["ranks"] = *spread;
  std::string note;
  found["threads"] = thread_cores(*policy, *topology, ranks, note);
  if (!note.empty()) found["note"] = note;
  return answer(found);
}

// ---- Model ----

// Rounds to two decimals, the precision of the paper's figures.
double rounded(double units) {
  return std::round(units * 100) / 100;
}

json time_of(const SplitModel& model, int ranks, int split) {
  const SplitTime time = split_time(model, ranks, split);
  return {{"S", split},
          {"total", rounded(time.total)},
          {"application", rounded(time.application)},
          {"communication", rounded(time.communication)},
          {"computation", rounded(time.computation)}};
}

json by_split(const SplitModel& model, int ranks) {
  json found = json::array();
  const int levels = tree_levels(ranks, model.arity);
  for (int split = ranks < model.cores ? 0 : levels; split <= levels; ++split)
    found.push_back(time_of(model, ranks, split));
  return found;
}

// Returns all values for one number of ranks at its best S.
json best_of(const SplitModel& model, int ranks) {
  json found = time_of(model, ranks, best_split(model, ranks));
  found["ranks"] = ranks;
  found["blocking"] = rounded(blocking_time(model, ranks));
  found["blocking_total"] = rounded(blocking_time(model, ranks) + computation_time(model, ranks));
  return found;
}

int show_model(Options options) {
  SplitModel& model = options.model;
  const int most = model.dataflow ? kMostCoresOfDataflow : kMostCoresOfModel;
  if (options.cores < 2 || options.cores > most)
    return refuse("--cores must be 2 to " + std::to_string(most) +
                  (model.dataflow ? " with --dataflow" : ""));
  model.cores = options.cores;
  if (options.ranks != 0 && (options.ranks < 2 || options.ranks > options.cores))
    return refuse("--ranks must be 2 to " + std::to_string(options.cores) +
                  ", one on a core at most");
  model.grows = options.collective == "gather" || options.collective == "scatter";
  // An allreduce goes up the tree and down again.
  if (options.collective == "allreduce")
    for (double& cost : model.level_cost) cost *= 2;
  const int ranks = options.ranks > 0 ? options.ranks : best_ranks(model);
  json found = best_of(model, ranks);
  found["cores"] = options.cores;
  found["collective"] = options.collective;
  found["splits"] = by_split(model, ranks);
  for (int other = 2; other <= options.cores; ++other) {
    json row = best_of(model, other);
    row["splits"] = by_split(model, other);
    found["by_ranks"].push_back(row);
  }
  return answer(found);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Options options;
  CLI::App app{"What Weft decides about cores, as JSON.", "weft-cores"};
  app.require_subcommand(1);
  const CLI::Range cores(0, weft::kMostCores);

  CLI::App* place = app.add_subcommand("place", "Where the ranks' threads run.");
  place->add_option("--policy", options.policy);
  place->add_option("--ranks", options.ranks)->check(CLI::Range(1, weft::kMostCores));
  place->add_option("--cores", options.cores)->check(cores);
  place->add_option("--machine", options.machine);

  CLI::App* model = app.add_subcommand("model", "The model of split trees.");
  model->add_option("--cores", options.cores)->required()->check(cores);
  model->add_option("--ranks", options.ranks)->check(cores);
  model->add_option("--collective", options.collective)
      ->check(CLI::IsMember({"bcast", "reduce", "gather", "scatter", "allreduce"}));
  model->add_option("--arity", options.model.arity)->check(CLI::Range(2, 64));
  model->add_option("--computation", options.model.computation)->check(weft::finite_range(0, 1e12));
  model->add_option("--level-cost", options.model.level_cost)
      ->delimiter(',')
      ->check(weft::finite_range(1e-6, 1e6));
  model->add_flag("--dataflow", options.model.dataflow);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return weft::refuse(error.what());
  }
  return place->parsed() ? weft::show_placement(options) : weft::show_model(options);
}
