// The input of a simulation: the network, datatypes, operators, and the ranks' buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/schedule.h"

namespace weft {

// SimModel: the network of a simulation. A rank posts messages one after the other. Its link
// transmits them in that order, one at a time, and each arrives `latency_us` after it has left. The
// defaults describe a fast Ethernet.
struct SimModel {
  double latency_us = 20;
  double bandwidth_bytes_per_us = 1000;
  // Processor time in microseconds for each message that a rank posts.
  double message_overhead_us = 0.5;
  double reduce_us_per_byte = 0.0005;
  double copy_us_per_byte = 0.0002;
};

// SimSegment: a contiguous piece of an element of a datatype.
struct SimSegment {
  std::int64_t offset = 0;  // bytes from the beginning of the element; may be negative
  std::int64_t bytes = 0;
};

// SimType: a datatype, as its contiguous pieces in packing order and its extent.
struct SimType {
  std::vector<SimSegment> segments;
  std::int64_t extent = 0;

  Layout layout(std::int64_t count) const;
};

// A reduction operator: computes inout = in op inout on whole elements that are packed.
using SimOperator =
    std::function<void(const std::byte* in, std::byte* inout, std::int64_t payload_bytes)>;

// SimRank: a rank's buffers, each given by the address from which offsets count, and its datatypes.
struct SimRank {
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  const SimType* send_type = nullptr;
  const SimType* recv_type = nullptr;
  // Datatypes of an alltoallw, numbered from Unit::first_of_many on.
  std::vector<const SimType*> types{};
  // Address from which other ranks count offsets in this rank's input; the simulation sets it.
  const std::byte* input = nullptr;
};

}  // namespace weft
