// The input of a simulation: the network, datatypes, operators, and the ranks' buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/schedule.h"

namespace weft {

// The network of a simulation. A rank posts messages one after the other. Its link transmits them
// in that order, one at a time, and each arrives `latency_us` after it has left. The defaults
// describe a fast Ethernet.
struct SimModel {
  double latency_us = 20;
  double bandwidth_bytes_per_us = 1000;
  double message_overhead_us = 0.5;  // CPU time for each message posted
  double reduce_us_per_byte = 0.0005;
  double copy_us_per_byte = 0.0002;
};

// A contiguous piece of an element.
struct SimSegment {
  std::int64_t offset = 0;  // in bytes from the element's origin; may be negative
  std::int64_t bytes = 0;
};

// A datatype: its segments, in packing order, and its extent.
struct SimType {
  std::vector<SimSegment> segments;
  std::int64_t extent = 0;

  Layout layout(std::int64_t count) const;
};

// Computes inout = in op inout on the packed payload of whole elements.
using SimOperator =
    std::function<void(const std::byte* in, std::byte* inout, std::int64_t payload_bytes)>;

// A rank's buffers, given by their origins, and its datatypes.
struct SimRank {
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  const SimType* send_type = nullptr;
  const SimType* recv_type = nullptr;
  std::vector<const SimType*> types{};  // types to which units from Unit::first_of_many on refer
  const std::byte* input = nullptr;  // beginning of the rank's outgoing data; set by the simulation
};

}  // namespace weft
