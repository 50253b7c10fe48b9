// Machine: describes a kind of machine, to which measurements apply.
#pragma once

#include <string>

namespace weft {

// Returns processor, CPUs, NUMA nodes and caches as the kernel reports them: "AMD EPYC 7B13, 8
// CPUs, …". hwloc would know more, but takes milliseconds. Read once.
const std::string& machine_words();

// Returns the kernel's list of NUMA nodes, such as "0-1".
std::string numa_nodes();

}  // namespace weft
