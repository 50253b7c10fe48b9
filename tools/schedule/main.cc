// weft-schedule: prints the schedule that an algorithm builds, after verifying those of all ranks.
// It is the quickest way to see what an algorithm does, and to try out a new one.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "example.h"
#include "rule.h"
#include "schedule/node_edges.h"
#include "schedule/verify.h"
#include "size.h"

namespace weft {
namespace {

constexpr int kRefused = 2;

struct Options {
  std::string collective;
  std::string algorithm;
  std::string bytes = "1MiB";
  int element_bytes = 1;
  int ranks = 4;
  int ranks_per_node = 2;
  int ranks_per_domain = 2;
  int rank = -1;  // -1: all ranks
  int root = 0;
  int split = 0;
  bool in_place = false;
  bool list = false;
  bool rule = false;
};

int refuse(const std::string& message) {
  std::fprintf(stderr, "weft schedule: %s\n", message.c_str());
  return kRefused;
}

std::string collective_names() {
  std::string names;
  for (int kind = 0; kind < kKinds; ++kind)
    names += (kind > 0 ? ", " : "") + std::string(kind_name(static_cast<Kind>(kind)));
  return names;
}

std::string algorithm_names(Kind kind) {
  std::string names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != kind) continue;
    names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  return names;
}

Result<Kind> find_kind(const std::string& name) {
  for (int kind = 0; kind < kKinds; ++kind) {
    if (name == kind_name(static_cast<Kind>(kind))) return static_cast<Kind>(kind);
  }
  return Error{"no collective '" + name + "'; there are " + collective_names()};
}

int list_algorithms() {
  constexpr const char* needs[] = {"",
                                   "commutative operators only",
                                   "powers of two only",
                                   "one node only",
                                   "one node and commutative operators only",
                                   "one node and shared buffers only",
                                   "several NUMA domains of one node",
                                   "several NUMA domains and commutative operators only",
                                   "several nodes with several ranks",
                                   "several nodes with consecutive ranks",
                                   "several nodes with as many ranks each",
                                   "several nodes with several ranks, persistent only"};
  static_assert(std::size(needs) == static_cast<std::size_t>(Needs::nodes_edges) + 1);
  for (const Algorithm& algorithm : algorithms()) {
    std::printf("%-20s %-19s %s%s%s\n", kind_name(algorithm.kind), algorithm.name, algorithm.source,
                algorithm.needs == Needs::nothing ? "" : "; ",
                needs[static_cast<int>(algorithm.needs)]);
  }
  return 0;
}

Result<bool> check_ranks(const Options& options) {
  if (options.ranks < 1) return Error{"--ranks must be 1 or more"};
  const std::string range = "must be 0 to " + std::to_string(options.ranks - 1);
  if (options.rank < -1 || options.rank >= options.ranks) return Error{"--rank " + range};
  if (options.root < 0 || options.root >= options.ranks) return Error{"--root " + range};
  if (options.split < 0) return Error{"--split must be 0 or more"};
  if (options.element_bytes < 1) return Error{"--element-bytes must be 1 or more"};
  return true;
}

Shape make_shape(const Options& options, Kind kind, std::int64_t bytes) {
  const std::int64_t element = options.element_bytes;
  const Layout layout{.count = bytes / element,
                      .size = element,
                      .extent = element,
                      .true_lb = 0,
                      .true_extent = element,
                      .plain = true};
  Shape shape;
  shape.kind = kind;
  shape.size = options.ranks;
  shape.root = options.root;
  shape.in_place = options.in_place;
  shape.send = shape.recv = layout;
  return shape;
}

std::shared_ptr<const Nodes> nodes_of(int ranks, int ranks_per_node) {
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < ranks; ++rank) node_of_rank.push_back(rank / ranks_per_node);
  return std::make_shared<const Nodes>(node_of_rank);
}

bool only_the_root_is_in_place(Kind kind) {
  return kind == Kind::reduce || (kind >= Kind::gather && kind <= Kind::scatterv);
}

std::vector<Shape> shapes_of_all(Shape shape, bool in_place) {
  std::vector<Shape> shapes;
  for (shape.rank = 0; shape.rank < shape.size; ++shape.rank) {
    const bool can_be = !only_the_root_is_in_place(shape.kind) || shape.rank == shape.root;
    shape.in_place = in_place && can_be && !is_neighborhood(shape.kind);
    shapes.push_back(example_of(shape));
  }
  if (shape.nodes && is_neighborhood(shape.kind)) tell_edges(shapes);
  return shapes;
}

std::vector<Schedule> build_all(const Algorithm& algorithm, const std::vector<Shape>& shapes,
                                int split) {
  std::vector<Schedule> schedules;
  for (const Shape& shape : shapes)
    schedules.push_back(build(algorithm, shape, {.split_levels = split}));
  return schedules;
}

int print_schedules(const std::vector<Schedule>& schedules, int rank) {
  bool first = true;
  for (const Schedule& schedule : schedules) {
    if (rank >= 0 && rank != schedule.shape.rank) continue;
    std::printf("%s%s", first ? "" : "\n", print(schedule).c_str());
    first = false;
  }
  if (auto verified = verify(schedules); !verified) {
    std::fprintf(stderr, "weft schedule: this schedule is wrong: %s\n",
                 verified.error().message.c_str());
    return 1;
  }
  return 0;
}

// Prints the rule for calls over several nodes with several ranks each.
int print_rule(const Options& options) {
  if (options.ranks_per_node < 2 || options.ranks_per_node >= options.ranks)
    return refuse("--ranks-per-node must be 2 or more, and less than --ranks");
  std::printf("%s", rule_tables(options.ranks, options.ranks_per_node).c_str());
  return 0;
}

int run(const Options& options) {
  if (options.list) return list_algorithms();
  if (options.rule) return print_rule(options);
  if (options.collective.empty())
    return refuse("which collective? There are " + collective_names());
  auto kind = find_kind(options.collective);
  if (!kind) return refuse(kind.error().message);
  const std::string choices = std::string(kind_name(*kind)) + " has " + algorithm_names(*kind);
  if (options.algorithm.empty()) return refuse("which --algorithm? " + choices);
  const Algorithm* algorithm = find_algorithm(*kind, options.algorithm);
  if (algorithm == nullptr) return refuse("no algorithm '" + options.algorithm + "'; " + choices);
  auto bytes = parse_size_bytes(options.bytes);
  if (!bytes) return refuse("--bytes: " + bytes.error().message);
  if (auto checked = check_ranks(options); !checked) return refuse(checked.error().message);
  if (*bytes % options.element_bytes != 0)
    return refuse("--bytes must be a multiple of --element-bytes");
  Shape shape = make_shape(options, *kind, *bytes);
  shape.on_one_node = needs_node(algorithm->needs);
  const bool over_nodes =
      algorithm->needs == Needs::nodes || algorithm->needs == Needs::nodes_edges;
  if (over_nodes && (options.ranks_per_node < 2 || options.ranks_per_node >= options.ranks))
    return refuse("--ranks-per-node must be 2 or more, and less than --ranks");
  if (over_nodes) shape.nodes = nodes_of(options.ranks, options.ranks_per_node);
  if (needs_domains(algorithm->needs) &&
      (options.ranks_per_domain < 1 || options.ranks_per_domain >= options.ranks))
    return refuse("--ranks-per-domain must be 1 or more, and less than --ranks");
  if (needs_domains(algorithm->needs))
    shape.domains = nodes_of(options.ranks, options.ranks_per_domain);
  const std::vector<Shape> shapes = shapes_of_all(shape, options.in_place);
  if (algorithm->needs == Needs::nodes_edges && !shapes.front().edges)
    return refuse(options.algorithm + " needs shorter blocks, which fit the memory of a node");
  if (!applies(*algorithm, shapes.front()))
    return refuse(options.algorithm + " needs a power of two as --ranks");
  return print_schedules(build_all(*algorithm, shapes, options.split), options.rank);
}

}  // namespace
}  // namespace weft

namespace {

void add_options(CLI::App& app, weft::Options& options) {
  app.add_option("COLLECTIVE", options.collective,
                 "The collective: " + weft::collective_names() + ".")
      ->type_name("");
  app.add_option("--algorithm", options.algorithm, "The algorithm; --list shows all.")
      ->type_name("NAME");
  app.add_option("--ranks", options.ranks, "Number of ranks.")->type_name("N");
  app.add_option("--ranks-per-node", options.ranks_per_node,
                 "Ranks on each node, for hierarchical algorithms; the last node may have fewer.")
      ->type_name("N");
  app.add_option("--ranks-per-domain", options.ranks_per_domain,
                 "Ranks in each NUMA domain, for algorithms by domains; the last domain may have "
                 "fewer.")
      ->type_name("N");
  app.add_option("--bytes", options.bytes,
                 "Size of the data, such as 64KiB or 2MB; of a block where there are several.")
      ->type_name("SIZE");
  app.add_option("--element-bytes", options.element_bytes, "Size of an element.")->type_name("N");
  app.add_option("--rank", options.rank, "Prints the schedule of this rank only.")
      ->type_name("RANK")
      ->default_str("all ranks");
  app.add_option("--root", options.root, "Root of bcast, reduce, gather and scatter.")
      ->type_name("RANK");
  app.add_option("--split", options.split,
                 "Levels of a tree of messages that the program's own calls carry out.")
      ->type_name("S");
  app.add_flag("--in-place", options.in_place, "As with MPI_IN_PLACE (not for neighborhoods).");
  app.add_flag("--list", options.list,
               "Lists all algorithms, with what they need and their source.");
  app.add_flag("--rule", options.rule,
               "Prints the sizes from which engine auto's rule takes which engine and algorithm.");
}

// Returns the options for tools/generate_reference, in the format of `weft run --help=json`.
std::string help_json(const CLI::App& app) {
  std::string json;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden option
    const bool takes_value = option->get_items_expected_max() > 0;
    json += std::string(json.empty() ? "" : ",\n") + R"(  {"name": ")" + option->get_name() +
            R"(", "argument": ")" + (takes_value ? option->get_type_name() : "") +
            R"(", "default": ")" + option->get_default_str() + R"(", "text": ")" +
            option->get_description() + R"("})";
  }
  return R"({"about": ")" + app.get_description() + "\",\n \"options\": [\n" + json + "\n]}\n";
}

}  // namespace

int main(int argc, char** argv) {
  weft::Options options;
  CLI::App app{"Prints the schedule of a collective: who sends what to whom in which round.",
               "weft schedule"};
  app.option_defaults()->always_capture_default();
  app.set_help_flag("--help,-h", "Shows this help.");
  add_options(app, options);
  bool json = false;
  app.add_flag("--help-json", json)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : weft::kRefused;
  }
  if (json) {
    std::fputs(help_json(app).c_str(), stdout);
    return 0;
  }
  return weft::run(options);
}
