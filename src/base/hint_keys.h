// Lists the info keys by which a program requests Weft's settings for a communicator.
// runtime/comm/hints.cc reads them.
#pragma once

#include <array>

namespace weft {

struct HintKey {
  const char* key;
  const char* option;  // the option of `weft run` that takes the same values
  const char* text;
};

inline constexpr HintKey kEngineHint = {"weft_engine", "--engine",
                                        "The engine that carries out the communicator's "
                                        "collectives."};
inline constexpr HintKey kPlacementHint = {"weft_placement", "--placement",
                                           "The core of the communicator's thread of engine tcc."};
inline constexpr HintKey kAlgorithmHint = {"weft_algorithm", "--algorithm",
                                           "The algorithms of the communicator's collectives, "
                                           "several of them separated by commas."};
inline constexpr std::array<HintKey, 3> kHintKeys = {kEngineHint, kPlacementHint, kAlgorithmHint};

}  // namespace weft
