// A machine for the simulator as a JSON file. All fields are in one table, so that reading, writing
// and checking cannot differ.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "sim/machine.h"

namespace weft::sim {

// Reads a machine. An error names the file, the line, the field and its permitted values.
Result<Machine> read_machine(const std::string& path);

// Returns the file's text. sources: the origin of each field's value, by path, such as "copy.core".
std::string machine_text(const Machine& machine, const std::string& about,
                         const std::map<std::string, std::string>& sources);

}  // namespace weft::sim
