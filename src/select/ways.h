// Ways: the choices of engine and algorithm among which the calls of one site may be learnt
// (select/learner.h). A further way is one more entry here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "select/selector.h"
#include "select/split_rule.h"

namespace weft {

// What there is beside threads and callers; the same on all ranks.
struct Beside {
  bool agents = false;  // threads of several ranks share a core, somewhere
  NodeCores cores{};    // of all nodes, where they are alike and the user leaves the split open
  Processor processor = Processor::other;  // of all ranks of the communicator, as it has it
};

// All that apply, the rule's choice first, and no two that are the same. The same on all ranks.
std::vector<Choice> ways_for(const Config& config, Library library, const Shape& shape,
                             const Choice& rule, const Beside& beside);

// The same inside one node, where Weft's thread calls no MPI: the library's own call, and what
// needs nothing but the node's memory, by callers and by the thread. rule: one of these.
// spare_cores: all ranks have a core for their thread.
std::vector<Choice> ways_in_memory(const Config& config, Library library, const Shape& shape,
                                   const Choice& rule, bool spare_cores, Processor processor);

// The same of a blocking collective over several nodes: the library's own call first, and Weft's
// rounds, which its callers carry out.
std::vector<Choice> ways_for_blocking(const Config& config, Library library, const Shape& shape,
                                      Processor processor);

// The place of the one that leaves the call to the library; -1: there is none.
int native_among(const std::vector<Choice>& ways);

// The place of the one for which each rank needs a worker, which the system may refuse; -1: none.
int worker_among(const std::vector<Choice>& ways);

// Those for which nothing but the calls themselves is needed: a bit for each.
std::uint32_t ways_by_callers(const std::vector<Choice>& ways);

// "thread ring", "native", "thread binomial split 2", "function node-ring parts 256 KiB"; how it is
// kept, and what users see.
std::string way_words(const Choice& way);
// Its place; none: there is no such.
std::optional<int> find_way(const std::vector<Choice>& ways, std::string_view words);

}  // namespace weft
