// Describes the kind of machine to which measurements apply.
#pragma once

#include <string>

namespace weft {

// Returns processor, CPUs, NUMA nodes and caches as the kernel reports them: "AMD EPYC 7B13, 8
// CPUs, …". The text is made at the first call only. hwloc would tell more, but takes milliseconds.
const std::string& machine_words();

// Returns the kernel's list of NUMA nodes, such as "0-1".
std::string numa_nodes();

}  // namespace weft
