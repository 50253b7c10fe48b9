// Defines the rules by which engine and algorithm are chosen without a measurement. All sizes are
// bytes of data, equal on all ranks.
#include "select/selector.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <vector>

#include "coll/algorithm_names.h"
#include "select/own_site.h"

namespace weft {
namespace {

using namespace algorithm_names;

constexpr std::int64_t kLong = 64 * 1024;
// Bytes of all ranks together, up to which flat algorithms are used.
constexpr std::int64_t kFlatInAll_bytes = 4 * 1024;
// Most ranks for which each pair has shared memory of its own.
constexpr int kMostWithMailboxes = 32;

bool is_long(const Shape& shape) {
  return agreed_bytes(shape).value_or(0) > kLong;
}

// Returns whether the data are long enough for an algorithm with this many rounds, one per rank or
// node. For short blocks of many ranks the rounds would cost more than the bytes.
bool is_worth_rounds(const Shape& shape, int rounds) {
  constexpr std::int64_t kWorthARound_bytes = 4 * 1024;
  return is_long(shape) && *agreed_bytes(shape) >= rounds * kWorthARound_bytes;
}
bool is_worth_rounds(const Shape& shape) {
  return is_worth_rounds(shape, shape.size);
}

bool power_of_two(int value) {
  return (value & (value - 1)) == 0;
}

const AlgorithmName& bcast_name(const Shape& shape) {
  return is_worth_rounds(shape) && shape.size > 3 ? kScatterAllgather : kBinomial;
}

const AlgorithmName& rooted_blocks_name(const Shape& shape) {
  return shape.size >= 8 && !is_worth_rounds(shape) ? kBinomial : kLinear;
}

const AlgorithmName& allgather_name(const Shape& shape) {
  if (is_worth_rounds(shape)) return kRing;
  return shape.kind == Kind::allgather && power_of_two(shape.size) ? kRecursiveDoubling : kBruck;
}

const AlgorithmName& alltoall_name(const Shape& shape) {
  const bool short_blocks = shape.kind == Kind::alltoall && shape.recv.bytes() <= 256;
  if (shape.size >= 8 && short_blocks) return kBruck;
  return shape.size <= 32 ? kLinear : kPairwise;
}

const AlgorithmName& reduce_name(const Shape& shape) {
  const bool divisible = shape.commutative && shape.recv.count >= shape.size;
  return is_long(shape) && divisible && shape.size > 3 ? kRabenseifner : kBinomial;
}

const AlgorithmName& allreduce_name(const Shape& shape) {
  if (!is_long(shape) || shape.size == 2 || !shape.commutative || shape.recv.count < shape.size)
    return kRecursiveDoubling;
  return is_worth_rounds(shape) && !power_of_two(shape.size) ? kRing : kRabenseifner;
}

const AlgorithmName& reduce_scatter_name(const Shape& shape) {
  if (!shape.commutative || shape.size <= 3) return kLinear;
  return is_worth_rounds(shape) ? kPairwise : kRecursiveHalving;
}

// Returns the name of the scan algorithm that uses messages. In the chain each rank transfers and
// reduces the data only once, but the result takes p - 1 hops for p ranks.
const AlgorithmName& scan_name(const Shape& shape) {
  constexpr int kFewRanks = 16;
  return is_long(shape) && shape.size <= kFewRanks ? kChain : kRecursiveDoubling;
}

// Returns the name of the scan algorithm that uses the node's shared memory. In the flat one each
// rank reads the data of all lower ranks, and none waits for another's sum.
const AlgorithmName& node_scan_name(const Shape& shape) {
  constexpr std::int64_t kShort_bytes = 32 * 1024;
  return shape.size == 2 || shape.recv.bytes() <= kShort_bytes ? kNodeFlat : kNodeChain;
}

// Returns the name of the reduction algorithm that uses the node's shared memory. If each rank adds
// its operand in place, the data are moved once per rank, but there are as many steps as ranks. The
// flat algorithm has one step, in which each rank reads all data. For two ranks, which swap their
// memory, the flat one is faster up to some length.
const AlgorithmName& node_reduction_name(const Shape& shape) {
  constexpr std::int64_t kShort_bytes = 32 * 1024;
  const std::int64_t bytes = shape.recv.bytes();
  const bool by_two = shape.kind == Kind::allreduce && shape.size == 2;
  if (by_two && bytes <= kShort_bytes) return kNodeFlat;
  if (bytes * shape.size <= kFlatInAll_bytes) return kNodeFlat;
  const bool tree = shape.kind == Kind::allreduce && shape.size > 4;
  if (!shape.commutative) return tree ? kNodeTree : kNodeFlat;
  return tree && bytes <= 8 * 1024 ? kNodeTree : kNodeRing;
}

// Returns the name of the algorithm that uses the node's shared memory and ignores NUMA domains;
// nullptr if messages are needed.
const AlgorithmName* one_level_name(const Shape& shape) {
  if (!shape.on_one_node || (reduces(shape.kind) && !shape.recv.plain)) return nullptr;
  switch (shape.kind) {
    case Kind::barrier:
    case Kind::bcast:
    case Kind::gather:
    case Kind::scatter:
    case Kind::allgather:
    case Kind::allgatherv:
    case Kind::alltoall:
    case Kind::gatherv:
    case Kind::scatterv:
      return &kNodeFlat;
    // With more ranks, there would be too little shared memory for each pair.
    case Kind::alltoallv:
    case Kind::alltoallw:
      return shape.size <= kMostWithMailboxes ? &kNodeFlat : nullptr;
    case Kind::scan:
    case Kind::exscan:
      return &node_scan_name(shape);
    case Kind::reduce:
    case Kind::allreduce:
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_block:
      return &node_reduction_name(shape);
    default:
      return nullptr;
  }
}

// Returns the form of the algorithm `name` that works first within NUMA domains and then between
// them; nullptr if the plain form is better. The two-level form sends least over domain borders, in
// one or two more steps. That pays for long data, and for short data of many ranks, which would
// otherwise read as many remote cache lines. It does not pay for domains with hardly more than one
// rank each.
const AlgorithmName* two_level_name(const Shape& shape, const AlgorithmName& name) {
  constexpr int kFewRanks = 16;
  constexpr std::int64_t kLongBlock_bytes = 4 * 1024;
  if (shape.size < 2 * shape.domains->count()) return nullptr;
  const bool is_flat = name == kNodeFlat, is_crowded = shape.size > kFewRanks;
  switch (shape.kind) {
    case Kind::barrier:
      return is_crowded ? &kDomainTree : nullptr;
    case Kind::bcast:
      return *agreed_bytes(shape) > kLongBlock_bytes ? &kDomainFlat : nullptr;
    case Kind::allgather:
    case Kind::allgatherv:
      return *agreed_bytes(shape) > shape.size * kLongBlock_bytes ? &kDomainFlat : nullptr;
    case Kind::allreduce:
      if (is_flat) return is_crowded ? &kDomainTree : nullptr;
      return name == kNodeTree ? &kDomainTree : &kDomainRing;
    case Kind::reduce:
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_block:
      return is_flat ? nullptr : &kDomainRing;
    default:
      return nullptr;
  }
}

// Returns the name of the algorithm that uses the node's shared memory; nullptr if messages are
// needed.
const AlgorithmName* node_name(const Shape& shape) {
  const AlgorithmName* name = one_level_name(shape);
  if (!name || !shape.domains) return name;
  const AlgorithmName* two_levels = two_level_name(shape, *name);
  const bool applies_here = two_levels && applies(*two_levels->of(shape.kind), shape);
  return applies_here ? two_levels : name;
}

// Returns whether a reduction along the chain of nodes pays. It sends fewer bytes between nodes
// than others in rank order, but one node works after the other, so vectors must be long enough to
// keep all of them busy.
bool saves_bytes_in_order(const Shape& shape) {
  constexpr std::int64_t kLongPerNode_bytes = 128 * 1024;
  const Algorithm* algorithm = kHierarchicalInOrder.of(shape.kind);
  return shape.nodes && applies(*algorithm, shape) &&
         shape.recv.bytes() >= shape.nodes->count() * kLongPerNode_bytes;
}

// Returns the name of the algorithm for reproducible results, which combines x0 op (x1 op (… op
// xp-1)) or, in scans, ((x0 op x1) op x2) op …. It uses shared memory if possible, otherwise
// messages.
const AlgorithmName& in_order_name(const Shape& shape) {
  const bool in_memory = node_name(shape) != nullptr;
  switch (shape.kind) {
    case Kind::reduce:
      if (in_memory) return kNodeFlat;
      return saves_bytes_in_order(shape) ? kHierarchicalInOrder : kInOrder;
    case Kind::allreduce:
      if (!in_memory) return saves_bytes_in_order(shape) ? kHierarchicalInOrder : kInOrder;
      return shape.recv.bytes() * shape.size <= kFlatInAll_bytes ? kNodeFlat : kNodeInOrder;
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_block:
      return in_memory ? kNodeFlat : kLinear;
    default:  // scan and exscan, the only other reductions
      return in_memory ? kNodeChain : kChain;
  }
}

// Returns whether the hierarchical algorithm saves messages or bytes between nodes compared with
// the flat one. It saves bytes if the flat one sends the same bytes twice to a node. In an
// allgather blocks pass through all nodes, and in a reduce_scatter each node sends to each rank:
// for short blocks of many nodes these are more messages than by doubling or halving. In an
// alltoall the bytes are equal, and blocks are copied once more. Short allgathervs and
// reduce_scatters took longer hierarchically on nodes whose ranks share cores, since each exchange
// in shared memory needs another process to run.
bool saves_messages(const Shape& shape) {
  constexpr std::int64_t kLongBlock_bytes = 2 * 1024;
  const int nodes = shape.nodes->count();
  switch (shape.kind) {
    case Kind::alltoall:
      return shape.recv.bytes() <= kLongBlock_bytes;
    case Kind::allgather:
      return nodes <= 3 || is_long(shape);
    case Kind::allgatherv:
      return is_long(shape);
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_block:
      return is_worth_rounds(shape, nodes);
    default:
      return true;
  }
}

// Returns the name of the hierarchical algorithm if there are several nodes and some of them have
// several ranks; otherwise nullptr.
const AlgorithmName* hierarchical_name(const Shape& shape) {
  if (!shape.nodes) return nullptr;
  const Algorithm* algorithm = kHierarchical.of(shape.kind);
  const bool takes_it = algorithm && applies(*algorithm, shape) && saves_messages(shape);
  return takes_it ? &kHierarchical : nullptr;
}

const AlgorithmName& default_name(const Shape& shape) {
  if (const AlgorithmName* name = node_name(shape)) return *name;
  if (const AlgorithmName* name = hierarchical_name(shape)) return *name;
  switch (shape.kind) {
    case Kind::barrier:
      return kDissemination;
    case Kind::bcast:
      return bcast_name(shape);
    case Kind::gather:
    case Kind::scatter:
      return rooted_blocks_name(shape);
    case Kind::allgather:
    case Kind::allgatherv:
      return allgather_name(shape);
    case Kind::alltoall:
    case Kind::alltoallv:
    case Kind::alltoallw:
      return alltoall_name(shape);
    case Kind::reduce:
      return reduce_name(shape);
    case Kind::allreduce:
      return allreduce_name(shape);
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_block:
      return reduce_scatter_name(shape);
    case Kind::scan:
    case Kind::exscan:
      return scan_name(shape);
    default:
      return kLinear;
  }
}

bool names_one_twice(std::vector<int> peers) {
  std::sort(peers.begin(), peers.end());
  // Entries without a peer are -1 and come first, so they are dropped.
  peers.erase(peers.begin(), std::lower_bound(peers.begin(), peers.end(), 0));
  return std::adjacent_find(peers.begin(), peers.end()) != peers.end();
}

// Returns whether Weft's schedule, progressed by application threads, is faster than the MPI
// library's own collective. It is asked for data that are too short to wake a thread. replayed:
// whether the call starts a persistent request.
bool callers_are_cheaper(Library library, const Shape& shape, std::int64_t bytes, bool replayed) {
  constexpr std::int64_t kShort = 2 * 1024, kMiddling = 8 * 1024;
  if (replayed && shape.on_one_node) return true;
  switch (library) {
    case Library::mpich:
      return replayed || bytes <= kShort;
    case Library::intelmpi:
      return replayed;
    case Library::openmpi:
      return replayed && bytes >= kMiddling;
    default:
      return false;
  }
}

// Returns whether the user has asked for the MPI library's collective between the leaders of nodes,
// and each rank is alone on its node. The collective between leaders is then the whole collective.
// It is left to the library on the application's communicator, where the library may be able to
// offload it.
bool is_the_librarys(const Config& config, const Shape& shape, const std::string* hinted) {
  const std::string& asked = config.algorithm[static_cast<std::size_t>(shape.kind)];
  const std::string& name = hinted && !hinted->empty() ? *hinted : asked;
  return name == kHierarchicalLibrary.text() && !shape.nodes && !shape.on_one_node;
}

bool runs_schedules(Engine engine) {
  return engine == Engine::function || has_progress_thread(engine);
}

// Returns the algorithm with this name; nullptr if there is none or it does not apply to this call.
const Algorithm* named(const std::string* name, const Shape& shape) {
  if (!name || name->empty()) return nullptr;
  const Algorithm* algorithm = find_algorithm(shape.kind, *name);
  // Algorithms that use other ranks' buffers in place cannot be chosen by name. They are tried
  // first anyway.
  if (!algorithm || is_direct(*algorithm)) return nullptr;
  return applies(*algorithm, shape) ? algorithm : nullptr;
}

// Returns whether the worker of engine tcc runs Weft's schedule, as it does if the user has named
// an algorithm, instead of the MPI library's blocking collective. It cannot run schedules with
// collectives between leaders, since these wait for other operations.
bool runs_in_worker(const Config& config, Engine asked, const Shape& shape,
                    const std::string* hinted) {
  if (asked != Engine::tcc || !why_settled(config, shape, hinted)) return false;
  return algorithm_for(config, shape, false, hinted).needs != Needs::nodes_leaders;
}

}  // namespace

Result<bool> check_algorithms(const Config& config) {
  for (int i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    const std::string& asked = config.algorithm[static_cast<std::size_t>(i)];
    if (asked.empty()) continue;
    if (config.leaves(kind) || find_algorithm(kind, asked)) continue;
    std::string choices;
    for (const Algorithm& algorithm : algorithms())
      if (algorithm.kind == kind)
        choices += (choices.empty() ? "" : ", ") + std::string(algorithm.name);
    return Error{"unknown algorithm '" + asked + "' for " + kind_name(kind) + "; choose one of " +
                 choices + kOrLibrarys};
  }
  return true;
}

Result<Config> checked_config() {
  const auto value_of = [](const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : own_site().find(name);
  };
  auto config = Config::from(value_of);
  if (!config) return Error{config.error().message + own_site().share_in_mistake(value_of)};
  if (const auto algorithms = check_algorithms(*config); !algorithms) return algorithms.error();
  return config;
}

bool may_keep_level(const Config& config) {
  return config.engine == Engine::automatic && config.blocking != Config::Blocking::always &&
         !config.passive_windows;
}

bool keeps_level(const Config& config, bool one_node, bool highest_level_asked) {
  return may_keep_level(config) && one_node && !highest_level_asked;
}

bool needs_no_later_help(const Schedule& schedule, bool blocking) {
  return schedule.node_bytes > 0 &&
         (blocking || (schedule.synchronizing && schedule.exchanges_once));
}

bool needs_no_library(Kind kind, bool has_kernel) {
  return reduces(kind) ? has_kernel : !is_neighborhood(kind);
}

bool wins_as_request(Library library, const Shape& shape, bool ranks_share_cores) {
  constexpr std::int64_t kShort = 8 * 1024;  // bytes of all ranks together
  if (is_neighborhood(shape.kind)) return false;
  const auto bytes = agreed_bytes(shape);  // nothing if the ranks do not know the call's size
  if (library == Library::mpich) return true;
  // If ranks share cores, an exchange in shared memory needs another process to run on the core,
  // whereas a rank that only sends a message can continue at once.
  if (bytes.value_or(0) <= kShort && ranks_share_cores && !waits_for_all(shape.kind)) return false;
  if (library == Library::openmpi) return true;
  const bool is_short = bytes && *bytes <= kShort;
  return library == Library::intelmpi && (is_short || reduces(shape.kind));
}

Engine static_rule(Library library, const Shape& shape, bool replayed) {
  const std::optional<std::int64_t> bytes = agreed_bytes(shape);
  if (!bytes) return Engine::thread;
  if (*bytes < kWorthAThread_bytes)
    return callers_are_cheaper(library, shape, *bytes, replayed) ? Engine::function
                                                                 : Engine::native;
  // An alltoall between two ranks needs no further progress once it is posted, except in Open MPI.
  const bool one_exchange = shape.kind == Kind::alltoall && shape.size == 2;
  if (library != Library::openmpi && one_exchange) return Engine::native;
  return Engine::thread;
}

const Algorithm& default_algorithm(const Shape& shape) {
  return *default_name(shape).of(shape.kind);
}

const Algorithm* one_leader_for(const Algorithm& usual, const Shape& shape) {
  const Algorithm* const algorithm = kHierarchicalOneLeader.of(shape.kind);
  if (!algorithm || !applies(*algorithm, shape)) return nullptr;
  const bool is_alone = !kHierarchical.of(shape.kind);
  const bool is_worth_copies = agreed_bytes(shape).value_or(0) >= kWorthAThread_bytes;
  return kHierarchical.names(usual) || (is_alone && is_worth_copies) ? algorithm : nullptr;
}

// Returns the tuning for a call that was not measured. On AMD processors a core reads another
// core's data faster once they have left that core's private cache for the shared one, and reads
// long runs faster than short ones (docs/decisions.md); so chunks are longer there.
Tuning default_tuning(const Shape& shape, Processor processor) {
  Tuning tuning;
  const bool is_cut = agreed_bytes(shape).value_or(INT64_MAX) > tuning.chunk_bytes;
  if (is_cut && shape.on_one_node && processor == Processor::amd)
    tuning.chunk_bytes = kNodeBytesPerRank / 2;
  return tuning;
}

Tuning tuning_of(const Choice& choice, const Shape& shape, Processor processor) {
  Tuning tuning = default_tuning(shape, processor);
  if (choice.chunk_bytes != 0) tuning.chunk_bytes = choice.chunk_bytes;
  if (choice.split_levels != Config::kByModel) tuning.split_levels = choice.split_levels;
  return tuning;
}

const void* schedule_key(const Choice& choice) {
  constexpr std::size_t kMostLevels = 32, kMostBits = 64;
  constexpr std::size_t kEach = kMostLevels + kMostBits;
  static const std::vector<char> addresses(kEach * algorithms().size());
  const auto place = static_cast<std::size_t>(choice.algorithm - algorithms().data());
  const char* const first = &addresses[place * kEach];
  if (choice.split_levels != Config::kByModel) return first + choice.split_levels;
  if (choice.chunk_bytes == 0) return choice.algorithm;
  return first + kMostLevels + std::countr_zero(static_cast<std::uint64_t>(choice.chunk_bytes));
}

const Algorithm* direct_algorithm(const Shape& shape) {
  const Algorithm* algorithm = kNodeDirect.of(shape.kind);
  const bool long_enough = agreed_bytes(shape).value_or(0) >= kLeastDirect_bytes;
  return algorithm && long_enough && applies(*algorithm, shape) ? algorithm : nullptr;
}

const Algorithm& replayed_algorithm(const Shape& shape) {
  if (shape.kind != Kind::neighbor_alltoallv && shape.kind != Kind::neighbor_alltoallw)
    return default_algorithm(shape);
  const bool repeated = names_one_twice(shape.sources) || names_one_twice(shape.destinations);
  return *(repeated ? kCombined : kBySize).of(shape.kind);
}

const Algorithm& algorithm_for(const Config& config, const Shape& shape, bool replayed,
                               const std::string* hinted) {
  if (config.reproducible && reduces(shape.kind)) return *in_order_name(shape).of(shape.kind);
  if (const Algorithm* algorithm = named(hinted, shape)) return *algorithm;
  const std::string& asked = config.algorithm[static_cast<std::size_t>(shape.kind)];
  if (const Algorithm* algorithm = named(&asked, shape)) return *algorithm;
  return replayed ? replayed_algorithm(shape) : default_algorithm(shape);
}

const char* why_settled(const Config& config, const Shape& shape, const std::string* hinted) {
  if (config.reproducible && reduces(shape.kind)) return "it is to be reproducible";
  const std::string& asked = config.algorithm[static_cast<std::size_t>(shape.kind)];
  return named(hinted, shape) || named(&asked, shape) ? "the algorithm is named" : nullptr;
}

Choice choose(const Config& config, Library library, Engine asked, const Shape& shape,
              bool replayed, const std::string* hinted) {
  Engine engine = asked == Engine::automatic ? static_rule(library, shape, replayed) : asked;
  const bool whole_collective = engine == Engine::tcc || engine == Engine::assist;
  if (whole_collective && is_neighborhood(shape.kind)) engine = Engine::thread;
  const bool in_order = config.reproducible && reduces(shape.kind);
  if (in_order && !runs_schedules(engine)) engine = Engine::function;
  if (!runs_schedules(engine) && !runs_in_worker(config, asked, shape, hinted))
    return {engine, nullptr};
  if (!in_order && is_the_librarys(config, shape, hinted)) return {Engine::native, nullptr};
  return {engine, &algorithm_for(config, shape, replayed, hinted)};
}

}  // namespace weft
