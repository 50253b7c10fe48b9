// Selector: engine and algorithm for each call, from rank-invariant facts only.
// Why only those: all ranks must come to the same answer without asking each other.
#pragma once

#include "base/config.h"
#include "coll/algorithm.h"

namespace weft {

enum class Library : std::uint8_t { mpich, openmpi, intelmpi, other };

struct Choice {
  Engine engine = Engine::native;
  const Algorithm* algorithm = nullptr;  // engines function and thread only
};

// An error names the algorithms of a collective for which one was asked that does not exist.
Result<bool> check_algorithms(const Config& config);

// The static rule of engine `auto`, from measurements in docs/results; documented in
// docs/ARCHITECTURE.md.
Engine static_rule(Library library, const Shape& shape);

// The algorithm that Weft takes when none is asked for.
const Algorithm& default_algorithm(const Shape& shape);

// `asked` is never native. An algorithm asked for, by the communicator's hint (nullptr: none) or
// the program's option, that does not apply falls back to the default.
Choice choose(const Config& config, Library library, Engine asked, const Shape& shape,
              const std::string* hint = nullptr);

}  // namespace weft
