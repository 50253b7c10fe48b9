// Reads and writes fields by their path, which has at most one dot. Every field has a source.
#include "machine_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <variant>
#include <vector>

namespace weft::sim {
namespace {

using nlohmann::ordered_json;

using Value = std::variant<int*, std::int64_t*, double*, Fabric*>;

struct Field {
  std::string path;
  Value value;
  double least = 0, most = 0;
  bool optional = false;  // if left out, it keeps the value of a plain machine
};

constexpr const char* kFabrics[] = {"flat", "fat-tree", "dragonfly"};
constexpr double kMost_bytes = 1LL << 40, kMost_us = 1e6, kMostRate = 1e9, kLeastRate = 1e-3;

std::vector<Field> fields_of(Machine& m) {
  Network& n = m.network;
  return {{"cores", &m.cores, 1, 65536},
          {"numa_nodes", &m.numa_nodes, 1, 1024},
          {"copy.core", &m.core_copy, kLeastRate, kMostRate},
          {"copy.numa_node", &m.numa_copy, kLeastRate, kMostRate},
          {"copy.reduce", &m.core_reduce, kLeastRate, kMostRate},
          {"copy.reduce_copy", &m.core_reduce_copy, 0, kMostRate, true},
          {"copy.remote_cost", &m.remote_cost, 1, 100},
          {"copy.cache_bytes", &m.cache_bytes, 0, kMost_bytes, true},
          {"copy.cache_core", &m.cache_copy, kLeastRate, kMostRate, true},
          {"copy.cache_reduce", &m.cache_reduce, kLeastRate, kMostRate, true},
          {"core.cache_us", &m.cache_us, 0, kMost_us},
          {"core.poll_us", &m.poll_us, 0, kMost_us},
          {"core.switch_us", &m.switch_us, 0, kMost_us},
          {"core.slice_us", &m.slice_us, 1, kMost_us},
          {"core.wake_us", &m.wake_us, 0, kMost_us},
          {"core.call_us", &m.call_us, 0, kMost_us},
          {"message.overhead_us", &m.message_us, 0, kMost_us},
          {"message.eager_bytes", &m.eager_bytes, 0, kMost_bytes},
          {"message.copies", &m.copies, 1, 2},
          {"message.cell_bytes", &m.cell_bytes, 64, kMost_bytes},
          {"message.cells", &m.cells, 1, 65536},
          {"network.latency_us", &n.latency_us, 0, kMost_us},
          {"network.overhead_us", &n.overhead_us, 0, kMost_us},
          {"network.gap_us", &n.gap_us, 0, kMost_us},
          {"network.bytes_per_us", &n.bytes_per_us, kLeastRate, kMostRate},
          {"network.eager_bytes", &n.eager_bytes, 0, kMost_bytes},
          {"network.burst_bytes", &n.burst_bytes, 0, kMost_bytes, true},
          {"network.burst_bytes_per_us", &n.burst_bytes_per_us, 0, kMostRate, true},
          {"network.send_us_per_kib", &n.send_us_per_kib, 0, kMost_us, true},
          {"network.recv_us_per_kib", &n.recv_us_per_kib, 0, kMost_us, true},
          {"network.window_bytes", &n.window_bytes, 0, kMost_bytes, true},
          {"network.fabric", &n.fabric},
          {"network.nodes_per_switch", &n.nodes_per_switch, 1, 65536},
          {"network.taper", &n.taper, 1, 1000},
          {"network.links_per_pair", &n.links_per_pair, 1, 65536}};
}

std::string group_of(const std::string& path) {
  const auto dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}
std::string name_of(const std::string& path) {
  const auto dot = path.find('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

std::string number(double value) {
  std::ostringstream text;
  text << std::setprecision(15) << value;
  return text.str();
}

std::string allowed(const Field& field) {
  if (std::holds_alternative<Fabric*>(field.value)) return "flat, fat-tree or dragonfly";
  const bool whole = !std::holds_alternative<double*>(field.value);
  return (whole ? "a whole number from " : "a number from ") + number(field.least) + " to " +
         number(field.most);
}

// Sizes that are meaningless without their rates.
const std::map<const char*, std::vector<const char*>> kNeeds = {
    {"copy.cache_bytes", {"copy.cache_core", "copy.cache_reduce"}},
    {"network.burst_bytes", {"network.burst_bytes_per_us"}}};

class Reader {
 public:
  Reader(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  Result<Machine> read() {
    ordered_json file;
    try {
      file = ordered_json::parse(text_);
    } catch (const nlohmann::json::parse_error& error) {
      const std::string what = error.what();
      return Error{path_ + ": " + what.substr(std::min(what.find("parse error"), what.size()))};
    }
    if (!file.is_object()) return Error{path_ + ": a machine is an object with fields"};
    Machine machine;
    const auto fields = fields_of(machine);
    if (auto known = only_known(file, fields); !known) return known.error();
    for (const Field& field : fields)
      if (auto taken = take(file, field); !taken) return taken.error();
    if (auto cited = sources(file, fields); !cited) return cited.error();
    if (file.contains("name") && file["name"].is_string()) machine.name = file["name"];
    if (machine.numa_nodes > machine.cores)
      return wrong("numa_nodes", "must be at most the number of cores");
    constexpr std::int64_t kLeastWindow = 4096;  // messages are sent in quarters of the window
    if (const auto window = machine.network.window_bytes; window > 0 && window < kLeastWindow)
      return wrong("network.window_bytes", "is " + std::to_string(window) +
                                               ", and must be 0 or at least " +
                                               std::to_string(kLeastWindow));
    for (const auto& [limit, rates] : kNeeds)
      for (const char* rate : rates)
        if (is_there(file, limit) && !is_there(file, rate))
          return wrong(limit, std::string("needs ") + rate + " beside it");
    return machine;
  }

 private:
  // Returns the line of the field if it exists, otherwise of its group.
  std::string line(const std::string& path) const {
    std::size_t at = 0;
    if (const auto group = group_of(path); !group.empty()) at = text_.find('"' + group + '"');
    if (at == std::string::npos) at = 0;
    const auto found = text_.find('"' + name_of(path) + '"', at);
    if (found != std::string::npos) at = found;
    const auto lines =
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return path_ + ", line " + std::to_string(lines + 1) + ": ";
  }
  Error wrong(const std::string& path, const std::string& what) const {
    return Error{line(path) + path + " " + what};
  }

  Result<bool> only_known(const ordered_json& file, const std::vector<Field>& fields) const {
    const auto is_field = [&](const std::string& path) {
      return std::any_of(fields.begin(), fields.end(),
                         [&](const Field& field) { return field.path == path; });
    };
    const auto is_group = [&](const std::string& name) {
      return std::any_of(fields.begin(), fields.end(),
                         [&](const Field& field) { return group_of(field.path) == name; });
    };
    for (const auto& [name, value] : file.items()) {
      if (name == "name" || name == "about" || name == "sources" || is_field(name)) continue;
      if (!is_group(name)) return wrong(name, "is no field of a machine; " + names(fields, ""));
      if (!value.is_object()) return wrong(name, "must be an object; " + names(fields, name));
      for (const auto& [inner, unused] : value.items())
        if (!is_field(name + "." + inner))
          return wrong(name + "." + inner, "is no field of a machine; " + names(fields, name));
    }
    return true;
  }

  static std::string names(const std::vector<Field>& fields, const std::string& group) {
    std::string text;
    std::string last;
    for (const Field& field : fields) {
      const std::string own = group_of(field.path);
      if (!group.empty() && own != group) continue;
      const std::string name = group.empty() && !own.empty() ? own : name_of(field.path);
      if (name == last) continue;
      text += (text.empty() ? "" : ", ") + name;
      last = name;
    }
    return (group.empty() ? "there are " : group + " has ") + text;
  }

  static bool is_there(const ordered_json& file, const std::string& path) {
    const auto group = group_of(path), name = name_of(path);
    return group.empty() ? file.contains(name) : file.contains(group) && file[group].contains(name);
  }

  Result<bool> take(const ordered_json& file, const Field& field) const {
    const auto group = group_of(field.path), name = name_of(field.path);
    const bool there = is_there(file, field.path);
    if (!there && field.optional) return true;
    if (!there) return wrong(field.path, "is missing; it is " + allowed(field));
    const ordered_json& value = group.empty() ? file[name] : file[group][name];
    const Error error = wrong(field.path, "is " + value.dump() + ", and must be " + allowed(field));
    if (auto* const* fabric = std::get_if<Fabric*>(&field.value)) {
      const auto found = std::find_if(std::begin(kFabrics), std::end(kFabrics),
                                      [&](const char* word) { return value == word; });
      if (found == std::end(kFabrics)) return error;
      **fabric = static_cast<Fabric>(found - std::begin(kFabrics));
      return true;
    }
    if (!value.is_number()) return error;
    const double given = value.get<double>();
    const bool whole = !std::holds_alternative<double*>(field.value);
    if (!(given >= field.least && given <= field.most) || (whole && given != std::floor(given)))
      return error;
    if (auto* const* target = std::get_if<double*>(&field.value)) **target = given;
    if (auto* const* target = std::get_if<int*>(&field.value)) **target = static_cast<int>(given);
    if (auto* const* target = std::get_if<std::int64_t*>(&field.value))
      **target = static_cast<std::int64_t>(given);
    return true;
  }

  // Checks that each field, or its group, has a source.
  Result<bool> sources(const ordered_json& file, const std::vector<Field>& fields) const {
    if (!file.contains("sources") || !file["sources"].is_object())
      return wrong("sources",
                   "is missing; it says of each field or group where its values are from");
    const ordered_json& sources = file["sources"];
    for (const Field& field : fields) {
      if (field.optional && !is_there(file, field.path)) continue;
      const std::string group = group_of(field.path);
      const bool has = sources.contains(field.path) || (!group.empty() && sources.contains(group));
      if (!has)
        return wrong("sources", "says nothing of " + field.path +
                                    "; name a measurement or a publication for it");
    }
    return true;
  }

  std::string path_, text_;
};

}  // namespace

Result<Machine> read_machine(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    return Error{path + " cannot be read; --machine names a file or a machine that is there"};
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return Reader(path, text).read();
}

std::string machine_text(const Machine& machine, const std::string& about,
                         const std::map<std::string, std::string>& sources) {
  Machine copy = machine;
  ordered_json file;
  file["name"] = machine.name;
  file["about"] = about;
  for (const Field& field : fields_of(copy)) {
    const std::string group = group_of(field.path);
    ordered_json& place =
        group.empty() ? file[name_of(field.path)] : file[group][name_of(field.path)];
    std::visit(
        [&](auto* value) {
          if constexpr (std::is_same_v<decltype(value), Fabric*>)
            place = kFabrics[static_cast<int>(*value)];
          else
            place = *value;
        },
        field.value);
  }
  for (const auto& [path, source] : sources) file["sources"][path] = source;
  return file.dump(2) + "\n";
}

}  // namespace weft::sim
