// Lists the variants (engine and algorithm) that are worth trying.
#include "select/variants.h"

#include <algorithm>
#include <utility>

#include "coll/algorithm_names.h"
#include "coll/split_tree.h"
#include "select/candidates.h"
#include "select/learner.h"
#include "select/split_model.h"

namespace weft {
namespace {

using namespace algorithm_names;

bool is_same(const Choice& one, const Choice& other) {
  return one.engine == other.engine && one.algorithm == other.algorithm &&
         one.split_levels == other.split_levels && one.chunk_bytes == other.chunk_bytes;
}

void add(std::vector<Choice>& variants, const Choice& variant) {
  const auto same = [&](const Choice& other) { return is_same(variant, other); };
  if (variants.size() < Learner::kMostVariants &&
      std::none_of(variants.begin(), variants.end(), same))
    variants.push_back(variant);
}

// The bytes of a call from which several algorithms are tried, since the better one depends on the
// network. Shorter data take the algorithm with the fewest messages. Algorithms with as many rounds
// as ranks are left out if there are many ranks.
constexpr std::int64_t kWorthOthers_bytes = 32 * 1024;
constexpr int kManyRanks = 32;
constexpr int kMostOthers = 2;

// Returns whether the algorithm is tried for this call. in_memory: whether only algorithms without
// messages are.
bool is_worth_trying(const Algorithm& algorithm, const Shape& shape, bool in_memory) {
  const bool long_chain = kLinear.names(algorithm) || kChain.names(algorithm);
  // An allreduce up and down a binomial tree is not worth trying, since it has twice the rounds of
  // recursive doubling.
  const bool up_and_down = &algorithm == kBinomial.of(Kind::allreduce);
  return algorithm.kind == shape.kind && !is_direct(algorithm) && !is_in_order(algorithm) &&
         !up_and_down && (!in_memory || needs_node(algorithm.needs)) &&
         algorithm.needs != Needs::nodes_leaders && !has_one_leader(algorithm) &&
         !(long_chain && shape.size > kManyRanks) && applies(algorithm, shape);
}

bool is_long(const Shape& shape) {
  return agreed_bytes(shape).value_or(0) >= kWorthOthers_bytes;
}

// Adds the variants with other algorithms than `known`, if the data are long enough.
void add_others(std::vector<Choice>& variants, Engine engine, const Shape& shape,
                const Algorithm* known, bool in_memory = false) {
  if (!is_long(shape)) return;
  int others = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (others == kMostOthers) break;
    if (&algorithm == known || !is_worth_trying(algorithm, shape, in_memory)) continue;
    add(variants, {engine, &algorithm});
    ++others;
  }
}

// Adds the variant with another chunk size, if ranks share memory and the data are longer than the
// default chunk. That is the first other size that makes a difference.
void add_chunks(std::vector<Choice>& variants, Engine engine, const Shape& shape,
                const Algorithm* algorithm, Processor processor) {
  if (!algorithm || !needs_memory(algorithm->needs) || is_direct(*algorithm)) return;
  if (agreed_bytes(shape).value_or(0) <= Tuning{}.chunk_bytes) return;
  const Tuning usual = default_tuning(shape, processor);
  for (const std::int64_t chunk_bytes : kChunkBytes) {
    Tuning other = usual;
    other.chunk_bytes = chunk_bytes;
    if (other == usual || !chunks_differ(shape, *algorithm, usual, other)) continue;
    return add(variants, {.engine = engine, .algorithm = algorithm, .chunk_bytes = chunk_bytes});
  }
}

// Returns whether a non-blocking call may be replaced by the MPI library's blocking one on another
// thread. Open MPI's allgathers hang if the ranks' datatypes differ (docs/correctness.md). Under
// Intel MPI two blocking collectives can hang in shared memory (runtime/job/whole_collectives.h),
// and with some datatypes they write beyond their buffers.
bool may_be_blocking(Library library, Kind kind) {
  if (is_neighborhood(kind)) return false;
  const bool is_allgather = kind == Kind::allgather || kind == Kind::allgatherv;
  return library == Library::mpich || (library == Library::openmpi && !is_allgather);
}

// Returns the tree algorithm whose levels may be split between application thread and progress
// thread: the algorithm in `by_thread` if it is a tree, otherwise a tree for short data; nullptr if
// there is none.
const Algorithm* tree_for(const Choice& by_thread, const Shape& shape) {
  const Algorithm* const own = by_thread.algorithm;
  if (own && (kBinomial.names(*own) || kKnomial.names(*own))) return own;
  const Algorithm* const other = own && !is_long(shape) ? kBinomial.of(shape.kind) : nullptr;
  return other && applies(*other, shape) ? other : nullptr;
}

// Adds the tree algorithm with S, S - 1 and S + 1 levels on the application's thread, where S is
// the model's choice. This includes an allreduce up and down a tree, which add_others() leaves out:
// only trees can be split. Although the tree releases some ranks late, this shows in the time from
// one call to the next, which is compared.
void add_splits(std::vector<Choice>& variants, const Choice& by_thread, const Shape& shape,
                const NodeCores& cores) {
  const Algorithm* const tree = cores.free > 0 ? tree_for(by_thread, shape) : nullptr;
  if (!tree) return;
  add(variants, {by_thread.engine, tree});
  const int arity = kKnomial.names(*tree) ? kKnomialRadix : 2;
  const int levels = best_split(cores, shape, arity);
  for (const int other : {levels - 1, levels + 1})
    if (other >= 0 && other <= tree_levels(shape.size, arity))
      add(variants, {by_thread.engine, tree, other});
}

// Adds the variant that joins the messages of a neighbourhood collective between nodes.
void add_joined(std::vector<Choice>& variants, Engine engine, const Shape& shape) {
  if (is_neighborhood(shape.kind) && shape.nodes) add(variants, {engine, kJoined.of(shape.kind)});
}

// Returns the index of the first variant for which is_it(variant) returns true; -1 if there is
// none.
template <class IsIt>
int place_of(const std::vector<Choice>& variants, IsIt is_it) {
  const auto found = std::find_if(variants.begin(), variants.end(), is_it);
  return found == variants.end() ? -1 : static_cast<int>(found - variants.begin());
}

int place_of(Engine engine, const std::vector<Choice>& variants) {
  return place_of(variants, [&](const Choice& variant) { return variant.engine == engine; });
}

}  // namespace

std::vector<Choice> variants_for(const Config& config, Library library, const Shape& shape,
                                 const Choice& rule, const JobResources& resources) {
  std::vector<Choice> variants = {rule};
  add(variants, {Engine::native, nullptr});
  const Choice by_thread = choose(config, library, Engine::thread, shape);
  add(variants, by_thread);
  add(variants, choose(config, library, Engine::function, shape));
  if (!is_neighborhood(shape.kind)) add(variants, {Engine::assist, nullptr});
  add_others(variants, Engine::thread, shape, by_thread.algorithm);
  add_chunks(variants, Engine::thread, shape, by_thread.algorithm, resources.processor);
  add_joined(variants, Engine::thread, shape);
  if (resources.agents && shape.on_one_node) add(variants, {Engine::agent, by_thread.algorithm});
  // Over several nodes the agents carry the whole collective out if one rank of each node sends.
  const Algorithm* const one_leader =
      by_thread.algorithm ? one_leader_for(*by_thread.algorithm, shape) : nullptr;
  if (resources.agents_lead && one_leader) add(variants, {Engine::agent, one_leader});
  add_splits(variants, by_thread, shape, resources.cores);
  // A worker thread is tried only for long data: passing a call to it takes longer than
  // transferring short data.
  if (is_long(shape) && may_be_blocking(library, shape.kind)) add(variants, {Engine::tcc, nullptr});
  return variants;
}

std::vector<Choice> variants_in_memory(const Config& config, Library library, const Shape& shape,
                                       const Choice& rule, bool spare_cores, Processor processor) {
  const Algorithm* const own = choose(config, library, Engine::function, shape).algorithm;
  std::vector<Choice> variants = {rule};
  add(variants, {Engine::native, nullptr});
  add(variants, {Engine::function, own});
  add(variants, {Engine::thread, own});
  const Engine engine = spare_cores ? Engine::thread : Engine::function;
  add_others(variants, engine, shape, own, true);
  add_chunks(variants, engine, shape, own, processor);
  return variants;
}

std::vector<Choice> variants_for_blocking(const Config& config, Library library, const Shape& shape,
                                          Processor processor, bool is_wefts) {
  const Choice by_callers = choose(config, library, Engine::function, shape);
  std::vector<Choice> variants = {{Engine::native, nullptr}, by_callers};
  if (is_wefts) std::swap(variants[0], variants[1]);
  add_others(variants, Engine::function, shape, by_callers.algorithm);
  add_chunks(variants, Engine::function, shape, by_callers.algorithm, processor);
  add_joined(variants, Engine::function, shape);
  return variants;
}

int native_among(const std::vector<Choice>& variants) {
  return place_of(Engine::native, variants);
}

int worker_among(const std::vector<Choice>& variants) {
  return place_of(Engine::tcc, variants);
}

int joined_among(const std::vector<Choice>& variants) {
  return place_of(variants, [](const Choice& variant) {
    return variant.algorithm && variant.algorithm->needs == Needs::nodes_edges;
  });
}

std::uint32_t variants_by_callers(const std::vector<Choice>& variants) {
  std::uint32_t bits = 0;
  for (std::size_t variant = 0; variant < variants.size(); ++variant)
    if (variants[variant].engine == Engine::native || variants[variant].engine == Engine::function)
      bits |= std::uint32_t{1} << variant;
  return bits;
}

std::string variant_words(const Choice& variant) {
  std::string words = engine_name(variant.engine);
  if (variant.algorithm) words += std::string(" ") + variant.algorithm->name;
  if (variant.split_levels != Config::kByModel)
    words += " split " + std::to_string(variant.split_levels);
  if (variant.chunk_bytes != 0)
    words += " parts " + std::to_string(variant.chunk_bytes / 1024) + " KiB";
  return words;
}

std::optional<int> find_variant(const std::vector<Choice>& variants, std::string_view words) {
  for (std::size_t i = 0; i < variants.size(); ++i)
    if (variant_words(variants[i]) == words) return static_cast<int>(i);
  return std::nullopt;
}

}  // namespace weft
