// Selector: engine and algorithm for each call, from rank-invariant facts only.
// Why only those: all ranks must come to the same answer without asking each other.
#pragma once

#include "base/config.h"
#include "base/processor.h"
#include "coll/algorithm.h"

namespace weft {

enum class Library : std::uint8_t { mpich, openmpi, intelmpi, other };

struct Choice {
  Engine engine = Engine::native;
  const Algorithm* algorithm = nullptr;  // engines function, thread and agent only
  // Of a tree: how many levels are the caller's part; kByModel: as --split says, or the model.
  int split_levels = Config::kByModel;
  // In memory: parts of so much; 0: as default_tuning() says.
  std::int64_t part_bytes = 0;
};

// An error names the algorithms of a collective for which one was asked that does not exist.
Result<bool> check_algorithms(const Config& config);
// What the environment asks for, its algorithms checked.
Result<Config> checked_config();

// Inside one node engine `auto` leaves the level of threads as the application asks for it, since
// with MPI_THREAD_MULTIPLE the libraries' own calls take up to several times as long: where the
// application can do without that level, and not all blocking collectives are to be Weft's.
bool may_keep_level(const Config& config);
bool keeps_level(const Config& config, bool one_node, bool highest_level_asked);

// Of a call in the node's memory, below MPI_THREAD_MULTIPLE: what is over before the call returns,
// or needs nothing of this rank once its first steps are done, so that callers do for it.
bool needs_no_later_help(const Schedule& schedule, bool blocking);

// No rank's thread needs the MPI library for what the call does to data: where there is a kernel,
// the types are predefined ones, on all ranks; where data are merely moved, by one count, a caller
// packs what has another type (runtime/call/packed_data.h).
bool needs_no_library(Kind kind, bool has_kernel);

// Of a non-blocking call: whether Weft's way in the node's memory was faster than the library's
// own, which nobody can measure while the program runs, since such a call must not wait for other
// ranks. From measurements between two ranks (docs/inside/choices.md); another way may be learnt.
// ranks_share_cores: some rank's core is another's, too.
bool wins_as_request(Library library, const Shape& shape, bool ranks_share_cores);

// The static rule of engine `auto`, from measurements (docs/performance.md); documented in
// docs/ARCHITECTURE.md. Calls whose size no rank knows as a whole get the thread; each rank may
// then decide by its own bytes whether it is worth waking. replayed: by a persistent request.
Engine static_rule(Library library, const Shape& shape, bool replayed = false);

// The algorithm that Weft takes when none is asked for.
const Algorithm& default_algorithm(const Shape& shape);

// The same for a call that is arranged once and replayed: blocks for one neighbor in one message,
// the largest message first. Neighbors agree without asking: both know how many blocks they share.
const Algorithm& replayed_algorithm(const Shape& shape);

// How it is tuned where nothing has been measured. processor: of all ranks.
Tuning default_tuning(const Shape& shape, Processor processor);

// The same of a choice; a split that is the model's is none here.
Tuning tuning_of(const Choice& choice, const Shape& shape, Processor processor);

// By what its schedules are found again: each algorithm, number of levels and size of part has an
// address of its own. The choice has an algorithm.
const void* schedule_key(const Choice& choice);

// What to try first where all ranks may see each other's buffers; nullptr: nothing.
const Algorithm* direct_algorithm(const Shape& shape);

// That of the communicator's hint, else of the configuration, else the default; a name that is
// unknown or does not apply is passed over. Reproducible reductions have theirs.
const Algorithm& algorithm_for(const Config& config, const Shape& shape, bool replayed,
                               const std::string* hinted);

// Why no other algorithm than that may be taken; nullptr: another one would do as well.
const char* why_settled(const Config& config, const Shape& shape, const std::string* hinted);

// `asked` is never native. Reproducible reductions are never left to the library, nor are
// neighborhoods as a whole: Weft's own communicators, on which it would run, have no topology.
Choice choose(const Config& config, Library library, Engine asked, const Shape& shape,
              bool replayed = false, const std::string* hinted = nullptr);

}  // namespace weft
