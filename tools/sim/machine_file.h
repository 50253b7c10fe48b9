// A machine for the simulator as a JSON file. Why every field is in one table: what is read, what
// is written and what is allowed cannot differ.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "sim/machine.h"

namespace weft::sim {

// An error names the file, the line, the field and what it may be.
Result<Machine> read_machine(const std::string& path);

// sources: where the value of each field comes from, by its path such as "copy.core".
std::string machine_text(const Machine& machine, const std::string& about,
                         const std::map<std::string, std::string>& sources);

}  // namespace weft::sim
