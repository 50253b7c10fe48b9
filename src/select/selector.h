// Selector: chooses engine and algorithm for each call. It uses only facts that are equal on all
// ranks, so that all come to the same answer without communication.
#pragma once

#include "base/config.h"
#include "base/processor.h"
#include "coll/algorithm.h"

namespace weft {

// The bytes of a whole call from which engine auto uses the progress thread without a measurement.
inline constexpr std::int64_t kWorthAThread_bytes = 128 * 1024;

enum class Library : std::uint8_t { mpich, openmpi, intelmpi, other };

struct Choice {
  Engine engine = Engine::native;
  const Algorithm* algorithm = nullptr;  // used by engines function, thread and agent only
  // Number of a tree's levels, counted from its leaves, that the application's thread carries out.
  // Config::kByModel: as set by the option --split or by the model.
  int split_levels = Config::kByModel;
  // Bytes of a chunk in shared memory; 0 for the one in default_tuning().
  std::int64_t chunk_bytes = 0;
};

// Checks the algorithms that the user has named. Returns an error that lists the existing ones if
// one of them does not exist.
Result<bool> check_algorithms(const Config& config);
// Returns the configuration from the environment and the site file. Returns an error if a setting
// is wrong, including names of algorithms.
Result<Config> checked_config();

// may_keep_level() returns whether engine auto may leave the thread level as the application
// requested it, if all ranks are on one node. MPI_THREAD_MULTIPLE makes the MPI libraries' own
// calls up to several times slower. keeps_level() returns whether it does: the application must
// also not have requested the highest level. Two settings need the highest one: all blocking
// collectives by Weft, and a thread that polls for accesses to windows.
bool may_keep_level(const Config& config);
bool keeps_level(const Config& config, bool one_node, bool highest_level_asked);

// Returns whether application threads alone can carry out a call in shared memory, even if only one
// of them may call MPI: the call completes before it returns, or needs nothing of this rank after
// its first steps.
bool needs_no_later_help(const Schedule& schedule, bool blocking);

// Returns whether a thread can handle the data of such a call without the MPI library. In
// reductions with a kernel (a loop of Weft's), datatypes are predefined on all ranks. If data are
// only moved, and with a single count, other datatypes are packed (runtime/call/packed_data.h).
bool needs_no_library(Kind kind, bool has_kernel);

// Returns whether Weft's schedule in shared memory is used for this non-blocking call because it
// was faster than the MPI library's collective. That cannot be measured while the program runs,
// since such a call must not wait for other ranks. So the answer rests on measurements between two
// ranks (docs/inside/choices.md); something else may be learnt later. ranks_share_cores: whether
// some core runs two ranks.
bool wins_as_request(Library library, const Shape& shape, bool ranks_share_cores);

// Returns the engine that `auto` uses for a call without a measurement in the program. This static
// rule rests on measurements in docs/performance.md and docs/inside/choices.md. Calls whose total
// size no rank knows use the thread; each rank then decides by its own bytes whether to wake the
// thread. replayed: whether the call starts a persistent request.
Engine static_rule(Library library, const Shape& shape, bool replayed = false);

// Returns Weft's algorithm for a call for which the user has named none.
const Algorithm& default_algorithm(const Shape& shape);

// Returns the algorithm in which the first rank of each node sends for all ranks of its node, for
// engine agent in place of `usual`; nullptr if there is none for this call. It takes the place of
// algorithms with several leaders on a node. Where there are none of these, it does so for calls
// that are long enough to be worth two more copies.
const Algorithm* one_leader_for(const Algorithm& usual, const Shape& shape);

// Returns the algorithm for a persistent collective. In a neighborhood collective, all blocks for
// one neighbour form one message, and the largest message is sent first. The neighbours need not
// agree on that, since both know how many blocks they share.
const Algorithm& replayed_algorithm(const Shape& shape);

// Returns the tuning for a call that was not measured. processor: the kind of processor that all
// ranks run on.
Tuning default_tuning(const Shape& shape, Processor processor);

// Returns the tuning for this engine and algorithm. Levels of a tree that only the model can set
// are left out.
Tuning tuning_of(const Choice& choice, const Shape& shape, Processor processor);

// Returns a key for caching schedules: an address that is different for each algorithm, number of
// tree levels and chunk size. The choice must have an algorithm.
const void* schedule_key(const Choice& choice);

// Returns the algorithm that uses other ranks' buffers in place, which is tried first if all ranks
// may access these; nullptr if there is none.
const Algorithm* direct_algorithm(const Shape& shape);

// Returns the algorithm that the communicator's hint names, otherwise the one that the
// configuration names, otherwise the default. A name is skipped if it is unknown or does not apply
// to the call. Reproducible reductions have their own algorithms.
const Algorithm& algorithm_for(const Config& config, const Shape& shape, bool replayed,
                               const std::string* hinted);

// Returns the reason why no other algorithm than the chosen one may be used; nullptr if others may.
const char* why_settled(const Config& config, const Shape& shape, const std::string* hinted);

// Chooses engine and algorithm for a call. `asked` must not be native. Reproducible reductions are
// never left to the MPI library, nor are whole neighborhood collectives, since the internal
// communicators have no topology.
Choice choose(const Config& config, Library library, Engine asked, const Shape& shape,
              bool replayed = false, const std::string* hinted = nullptr);

}  // namespace weft
