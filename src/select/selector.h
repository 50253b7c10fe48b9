// Selector: chooses engine and algorithm for each call. It uses only facts that are equal on all
// ranks, so that all come to the same answer without communication.
#pragma once

#include "base/config.h"
#include "base/processor.h"
#include "coll/algorithm.h"

namespace weft {

// The size of a whole call in bytes from which the rule of engine auto chooses the thread.
inline constexpr std::int64_t kWorthAThread_bytes = 128 * 1024;

enum class Library : std::uint8_t { mpich, openmpi, intelmpi, other };

struct Choice {
  Engine engine = Engine::native;
  const Algorithm* algorithm = nullptr;  // used by engines function, thread and agent only
  // Number of a tree's levels whose messages the caller carries out; Config::kByModel: as set by
  // --split or the model.
  int split_levels = Config::kByModel;
  // Bytes of a chunk in the node's memory; 0: as in default_tuning().
  std::int64_t chunk_bytes = 0;
};

// Checks the algorithms that the user requested. Returns true if all exist, otherwise an error that
// lists the existing ones.
Result<bool> check_algorithms(const Config& config);
// Returns the configuration from the environment and the site file, after its algorithms have been
// checked.
Result<Config> checked_config();

// Return whether engine `auto` keeps the thread level that the application requested, inside one
// node. MPI_THREAD_MULTIPLE makes the libraries' own calls up to several times slower. The level
// can be kept if the application did not request the highest one, not all blocking collectives are
// to be Weft's, and the thread is not to poll for accesses to windows.
bool may_keep_level(const Config& config);
bool keeps_level(const Config& config, bool one_node, bool highest_level_asked);

// Returns whether calling threads alone can carry out a call in the node's memory, if the
// application has not requested MPI_THREAD_MULTIPLE: the operation completes before the call
// returns, or needs nothing of this rank after its first steps.
bool needs_no_later_help(const Schedule& schedule, bool blocking);

// Returns whether a thread can handle the data of such a call without the MPI library. In
// reductions with a kernel, datatypes are predefined on all ranks. If data are only moved, with one
// count, the caller packs other datatypes (runtime/call/packed_data.h).
bool needs_no_library(Kind kind, bool has_kernel);

// Returns whether Weft's variant in the node's memory is to be used for this non-blocking call
// because it was faster than the library's. That cannot be measured while the program runs, since
// such a call must not wait for other ranks. The answer rests on measurements between two ranks
// (docs/inside/choices.md); another variant may be learnt. ranks_share_cores: some core runs two
// ranks.
bool wins_as_request(Library library, const Shape& shape, bool ranks_share_cores);

// Returns the engine that `auto` uses without a measurement in the program; the rule rests on
// measurements in docs/performance.md and docs/inside/choices.md. Calls whose total size no rank
// knows use the thread; each rank then decides by its own bytes whether to wake the thread.
// replayed: the call is a start of a persistent request.
Engine static_rule(Library library, const Shape& shape, bool replayed = false);

// Returns Weft's algorithm for a call for which none was requested.
const Algorithm& default_algorithm(const Shape& shape);

// Returns the algorithm for a call that is initialised once and started repeatedly: blocks for one
// neighbour form one message, and the largest message is sent first. Neighbours need no
// communication for that, since both know how many blocks they share.
const Algorithm& replayed_algorithm(const Shape& shape);

// Returns the tuning to use if nothing has been measured. processor: that of all ranks.
Tuning default_tuning(const Shape& shape, Processor processor);

// Returns the tuning for a choice of engine and algorithm, without the levels of a split tree that
// the model sets.
Tuning tuning_of(const Choice& choice, const Shape& shape, Processor processor);

// Returns a key for caching schedules: an address that is unique for each algorithm, number of
// levels and chunk size. The choice must have an algorithm.
const void* schedule_key(const Choice& choice);

// Returns the algorithm to try first if all ranks may access each other's buffers; nullptr if there
// is none.
const Algorithm* direct_algorithm(const Shape& shape);

// Returns the algorithm of the communicator's hint, otherwise that of the configuration, otherwise
// the default. A name that is unknown or does not apply is skipped. Reproducible reductions have
// their own algorithms.
const Algorithm& algorithm_for(const Config& config, const Shape& shape, bool replayed,
                               const std::string* hinted);

// Returns the reason why no algorithm other than the chosen one may be used; nullptr if others may.
const char* why_settled(const Config& config, const Shape& shape, const std::string* hinted);

// Chooses engine and algorithm. `asked` must not be native. Reproducible reductions and whole
// neighborhood collectives are never left to the library, since the internal communicators have no
// topology.
Choice choose(const Config& config, Library library, Engine asked, const Shape& shape,
              bool replayed = false, const std::string* hinted = nullptr);

}  // namespace weft
