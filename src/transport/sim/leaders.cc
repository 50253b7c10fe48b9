// Implements SimLeaders: carries out a collective when its last rank has called it, in the order of
// the nodes.
#include "transport/sim/leaders.h"

#include <algorithm>
#include <bit>

namespace weft {
namespace {

using Payload = std::vector<std::byte>;

Payload packed(const SimData& data) {
  Payload payload(static_cast<std::size_t>(data.payload_bytes()));
  data.pack(payload.data());
  return payload;
}

}  // namespace

const SimLeaders::Collective* SimLeaders::call(const Shape& shape, const Step& step,
                                               const SimData& gives, const SimData& gets,
                                               double now_us) {
  const auto nodes = static_cast<std::size_t>(shape.nodes->count());
  const auto node = static_cast<std::size_t>(node_of(shape));
  Collective& collective = collectives_[{node_rank_of(shape, shape.rank), called_[shape.rank]++}];
  collective.step = &step;
  collective.given.resize(nodes);
  collective.got.resize(nodes);
  collective.given[node] = gives;
  collective.got[node] = gets;
  ++collective.called;
  collective.done_us = std::max(collective.done_us, now_us);
  if (!collective.is_over()) return &collective;
  const double bytes = static_cast<double>(std::max(gives.payload_bytes(), gets.payload_bytes()));
  collective.done_us +=
      std::bit_width(nodes - 1) * (model_.latency_us + bytes / model_.bandwidth_bytes_per_us);
  carry_out(collective, shape.nodes->of(step.peer));
  return &collective;
}

void SimLeaders::carry_out(const Collective& collective, int root) {
  const Kind kind = collective.step->collective;
  if (kind == Kind::barrier) return;
  Payload result;
  if (kind == Kind::bcast) {
    result = packed(collective.given[static_cast<std::size_t>(root)]);
  } else if (kind == Kind::allgather) {
    for (const SimData& data : collective.given) {
      const Payload one = packed(data);
      result.insert(result.end(), one.begin(), one.end());
    }
  } else {
    result = packed(collective.given.back());
    for (std::size_t node = collective.given.size() - 1; node-- > 0;)
      op_(packed(collective.given[node]).data(), result.data(),
          static_cast<std::int64_t>(result.size()));
  }
  for (const SimData& data : collective.got)
    if (data.count > 0) data.unpack(result.data());
}

}  // namespace weft
