// Variants: the choices of engine and algorithm among which a call class may learn
// (select/learner.h). A further variant is one more entry here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "select/selector.h"
#include "select/split_rule.h"

namespace weft {

// Facts for the rules, equal on all ranks: the executors that are available beside threads and
// callers, the cores and the processor.
struct JobResources {
  bool agents = false;       // some core runs the progress threads of several ranks
  bool agents_lead = false;  // the first rank of each node with several ranks has an agent
  // The ranks and free cores of every node; set only if all nodes are alike and the user did not
  // set the split.
  NodeCores cores{};
  Processor processor = Processor::other;  // processor of all ranks of the communicator
};

// Returns all variants that apply, the rule's choice first and without duplicates. The result is
// the same on all ranks.
std::vector<Choice> variants_for(const Config& config, Library library, const Shape& shape,
                                 const Choice& rule, const JobResources& resources);

// Returns the variants inside one node, where Weft's thread calls no MPI: the library's own call,
// and those that need only the node's memory, progressed by callers and by the thread. rule: one of
// these. spare_cores: all ranks have a core for their thread.
std::vector<Choice> variants_in_memory(const Config& config, Library library, const Shape& shape,
                                       const Choice& rule, bool spare_cores, Processor processor);

// Returns the variants of a blocking collective: the library's own call first, then Weft's rounds,
// which its callers progress; in the other order if by rule it is Weft's.
std::vector<Choice> variants_for_blocking(const Config& config, Library library, const Shape& shape,
                                          Processor processor, bool is_wefts = false);

// Returns the index of the variant that leaves the call to the library; -1 if there is none.
int native_among(const std::vector<Choice>& variants);

// Returns the index of the variant for which each rank needs a worker, which the system may refuse;
// -1 if there is none.
int worker_among(const std::vector<Choice>& variants);

// Returns a bit mask of the variants that need nothing but the calls themselves for progress.
std::uint32_t variants_by_callers(const std::vector<Choice>& variants);

// Returns the name under which the variant is stored and shown to users, such as "thread ring",
// "native", "thread binomial split 2" or "function node-ring parts 256 KiB".
std::string variant_words(const Choice& variant);
// Returns the index of the variant with this name; nothing if there is none.
std::optional<int> find_variant(const std::vector<Choice>& variants, std::string_view words);

}  // namespace weft
