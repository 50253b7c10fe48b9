// Describes the machine that measurements were made on, so that they are used only on machines of
// its kind.
#pragma once

#include <string>

namespace weft {

// Returns processor, CPUs, NUMA nodes and caches as the kernel reports them: "AMD EPYC 7B13, 8
// CPUs, …". The first call makes the text, and later ones return it. hwloc would tell more, but
// takes milliseconds.
const std::string& machine_words();

// Returns the kernel's list of NUMA nodes, such as "0-1".
std::string numa_nodes();

}  // namespace weft
