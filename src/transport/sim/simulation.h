// Simulation: all ranks of a collective in one process, in virtual time, with real data. It runs
// the same schedules and rounds as MPI does, for any number of ranks, in milliseconds, and reports
// a run that hangs as an error.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
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

struct SimOutcome {
  double time_us = 0;  // until the last rank is done
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

class Simulation {
 public:
  explicit Simulation(SimModel model) : model_(model) {}

  // Runs schedule i on rank i. The receive buffers hold the result afterwards. A send ends only
  // when its receive has been posted, so that whatever could hang with MPI hangs here, and is
  // reported.
  Result<SimOutcome> run(std::span<const Schedule> schedules, std::span<const SimRank> ranks,
                         const SimOperator& op) const;

 private:
  SimModel model_;
};

}  // namespace weft
