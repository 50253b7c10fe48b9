// Machine: the words by which measurements of one kind of machine are told from those of another.
#pragma once

#include <string>

namespace weft {

// Processor, CPUs, NUMA nodes and caches, as the kernel tells them: "AMD EPYC 7B13, 8 CPUs, …".
// hwloc would know more, and takes milliseconds to find it out. Read once.
const std::string& machine_words();

// The kernel's list of them, such as "0-1".
std::string numa_nodes();

}  // namespace weft
