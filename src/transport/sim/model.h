// The input of the simulation: the network, datatypes, operators, and the ranks' buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/schedule.h"

namespace weft {

// A rank posts messages one after the other; its link transmits them in that order, one at a time,
// and each arrives a latency after it has left. The defaults are a fast Ethernet.
struct SimModel {
  double latency_us = 20;
  double bandwidth_bytes_per_us = 1000;
  double message_overhead_us = 0.5;  // of the CPU, for each message posted
  double reduce_us_per_byte = 0.0005;
  double copy_us_per_byte = 0.0002;
};

// A contiguous piece of an element.
struct SimSegment {
  std::int64_t offset = 0;  // from the element's origin; may be negative
  std::int64_t bytes = 0;
};

// A datatype: its segments, in packing order, and its extent.
struct SimType {
  std::vector<SimSegment> segments;
  std::int64_t extent = 0;

  Layout layout(std::int64_t count) const;
};

// Computes inout = in op inout, on the packed payload of whole elements.
using SimOperator =
    std::function<void(const std::byte* in, std::byte* inout, std::int64_t payload_bytes)>;

// A rank's buffers, by their origins, and datatypes.
struct SimRank {
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  const SimType* send_type = nullptr;
  const SimType* recv_type = nullptr;
  std::vector<const SimType*> types{};  // what units refer to from Unit::first_of_many on
  const std::byte* input = nullptr;  // where the rank's outgoing data begins; set by the simulation
};

}  // namespace weft
