#include "rule.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "example.h"
#include "select/selector.h"

namespace weft {
namespace {

// The placement of a call's ranks on nodes.
enum class Spread { one_node, node_each, several_nodes };

// Returns a call whose blocks have `block_bytes` bytes.
Shape call_of(Kind kind, int ranks, int ranks_per_node, Spread spread, std::int64_t block_bytes) {
  Shape shape;
  shape.kind = kind;
  shape.size = ranks;
  shape.send = shape.recv = Layout{
      .count = block_bytes, .size = 1, .extent = 1, .true_lb = 0, .true_extent = 1, .plain = true};
  shape.on_one_node = spread == Spread::one_node;
  if (spread == Spread::several_nodes) {
    std::vector<int> node_of_rank;
    for (int rank = 0; rank < ranks; ++rank) node_of_rank.push_back(rank / ranks_per_node);
    shape.nodes = std::make_shared<const Nodes>(node_of_rank);
  }
  return example_of(shape);
}

std::string size_words(std::int64_t bytes) {
  const char* unit = "B";
  for (const char* const larger : {"KiB", "MiB"}) {
    if (bytes % 1024 != 0 || bytes == 0) break;
    bytes /= 1024;
    unit = larger;
  }
  return std::to_string(bytes) + " " + unit;
}

using Answer = std::function<std::string(const Shape&)>;
using MakeCall = std::function<Shape(std::int64_t block_bytes)>;

// Returns a text such as "`function` up to 2 KiB, `native` below 128 KiB, `thread`", by the size of
// the whole call. Rules change at powers of two of that size, or of a block's.
std::string by_size(const MakeCall& make, const Answer& answer) {
  constexpr int kMostBits = 26;
  const Shape smallest = make(1);
  std::string before = answer(smallest);
  if (!agreed_bytes(smallest) || *agreed_bytes(smallest) == 0) return before;
  std::string words;
  const auto ends = [&](const char* how, std::int64_t block, const std::string& next) {
    words += before + how + size_words(*agreed_bytes(make(block))) + ", ";
    before = next;
  };
  for (int bits = 1; bits <= kMostBits; ++bits) {
    const std::int64_t block = std::int64_t{1} << bits;
    const std::string at = answer(make(block)), after = answer(make(block + 1));
    if (at != before) ends(" below ", block, at);
    if (after != before) ends(" up to ", block, after);
  }
  return words + before;
}

std::string code(const std::string& word) {
  return "`" + word + "`";
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

// Collects rows; collectives with equal cells share a row.
class Table {
 public:
  explicit Table(const std::vector<std::string>& columns) : columns_(columns) {}

  void add(Kind kind, const std::vector<std::string>& cells) {
    auto same = std::find_if(rows_.begin(), rows_.end(),
                             [&](const auto& row) { return row.second == cells; });
    if (same == rows_.end())
      rows_.push_back({kind_name(kind), cells});
    else
      same->first += std::string(", ") + kind_name(kind);
  }
  std::string text() const {
    std::string text = row(columns_);
    text += row(std::vector<std::string>(columns_.size(), "---"));
    for (const auto& [kinds, cells] : rows_) {
      std::vector<std::string> whole{kinds};
      whole.insert(whole.end(), cells.begin(), cells.end());
      text += row(whole);
    }
    return text;
  }

 private:
  std::vector<std::string> columns_;
  std::vector<std::pair<std::string, std::vector<std::string>>> rows_;
};

std::string engines(int ranks, int ranks_per_node) {
  constexpr std::pair<Library, const char*> kLibraries[] = {
      {Library::mpich, "MPICH"}, {Library::openmpi, "Open MPI"}, {Library::intelmpi, "Intel MPI"}};
  Table table({"collective", "MPICH", "MPICH, persistent", "Open MPI", "Open MPI, persistent",
               "Intel MPI", "Intel MPI, persistent"});
  for (int i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    const MakeCall make = [&](std::int64_t bytes) {
      return call_of(kind, ranks, ranks_per_node, Spread::several_nodes, bytes);
    };
    std::vector<std::string> cells;
    for (const auto& [library, name] : kLibraries)
      for (const bool replayed : {false, true})
        cells.push_back(by_size(make, [&](const Shape& shape) {
          return code(engine_name(static_rule(library, shape, replayed)));
        }));
    table.add(kind, cells);
  }
  return table.text();
}

std::string algorithms_by_size(int ranks, int ranks_per_node) {
  Table table({"collective", "one node", "one rank on each node",
               std::to_string(ranks_per_node) + " ranks on each node"});
  for (int i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    std::vector<std::string> cells;
    for (const Spread spread : {Spread::one_node, Spread::node_each, Spread::several_nodes})
      cells.push_back(by_size(
          [&](std::int64_t bytes) { return call_of(kind, ranks, ranks_per_node, spread, bytes); },
          [](const Shape& shape) { return code(default_algorithm(shape).name); }));
    table.add(kind, cells);
  }
  return table.text();
}

}  // namespace

std::string rule_tables(int ranks, int ranks_per_node) {
  return "Engine of a non-blocking or persistent call over several nodes, " +
         std::to_string(ranks) + " ranks:\n\n" + engines(ranks, ranks_per_node) +
         "\nAlgorithm of a call that Weft carries out, " + std::to_string(ranks) + " ranks:\n\n" +
         algorithms_by_size(ranks, ranks_per_node) +
         "\nSizes are those of the whole call, all blocks together. A collective without a size is "
         "one in\nwhich each rank knows its own part only, or which moves no data.\n";
}

}  // namespace weft
