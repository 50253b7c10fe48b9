// Variants: the engines and algorithms from which the learner chooses for calls of one kind
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

// JobResources: facts that decide which variants exist, equal on all ranks.
struct JobResources {
  bool agents = false;       // some core runs the progress threads of several ranks
  bool agents_lead = false;  // the first rank of each node with several ranks has an agent
  // The ranks and free cores of every node; set only if all nodes are alike and the user did not
  // set the split.
  NodeCores cores{};
  // Kind of processor that all ranks of the communicator run on.
  Processor processor = Processor::other;
};

// Returns all variants for the call, without duplicates, beginning with `rule`, the static rule's
// choice. All ranks get the same ones.
std::vector<Choice> variants_for(const Config& config, Library library, const Shape& shape,
                                 const Choice& rule, const JobResources& resources);

// Returns the variants for a call inside one node, where Weft's thread calls no MPI function: the
// MPI library's own call, and schedules in shared memory that are progressed by application threads
// or by the progress thread. rule: the static rule's choice among these. spare_cores: whether all
// ranks have a core for their thread.
std::vector<Choice> variants_in_memory(const Config& config, Library library, const Shape& shape,
                                       const Choice& rule, bool spare_cores, Processor processor);

// Returns the variants of a blocking collective: the MPI library's own call, then Weft's schedules,
// which the calling threads progress. With is_wefts, Weft's come first, because they are the static
// rule's choice.
std::vector<Choice> variants_for_blocking(const Config& config, Library library, const Shape& shape,
                                          Processor processor, bool is_wefts = false);

// Returns the index of the variant that leaves the call to the MPI library; -1 if there is none.
int native_among(const std::vector<Choice>& variants);

// Returns the index of the variant for which each rank needs a worker thread, which the system may
// refuse; -1 if there is none.
int worker_among(const std::vector<Choice>& variants);

// Returns the index of the variant that joins the messages of a neighbourhood between nodes, for
// which the ranks of each node must have told each other their edges; -1 if there is none.
int joined_among(const std::vector<Choice>& variants);

// Returns a bit mask of the variants that need no thread of Weft: the MPI library's, and those that
// calls progress.
std::uint32_t variants_by_callers(const std::vector<Choice>& variants);

// Returns the name under which the variant is stored and shown to users, such as "thread ring",
// "native", "thread binomial split 2" or "function node-ring parts 256 KiB".
std::string variant_words(const Choice& variant);
// Returns the index of the variant with this name; nothing if there is none.
std::optional<int> find_variant(const std::vector<Choice>& variants, std::string_view words);

}  // namespace weft
