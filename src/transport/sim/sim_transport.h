// SimTransport: carries out a rank's steps of an operation in the simulated network. Since it is a
// Transport like any other, the simulation runs the same logic of rounds as MPI.
#pragma once

#include "transport/sim/leaders.h"
#include "transport/sim/network.h"
#include "transport/transport.h"

namespace weft {

class SimTransport : public Transport {
 public:
  // All arguments must outlive the transport.
  SimTransport(SimNetwork& network, SimLeaders& leaders, const SimModel& model, int operation,
               const Schedule& schedule, std::span<const SimRank> ranks, const SimOperator& op,
               const NodeBufferUse& turn);

  Result<bool> start(const Step& step) override;
  Result<bool> test() override;

 private:
  std::byte* address(const Location& at) const;
  SimData data(const Operand& operand);
  const SimType* type(Unit unit) const;
  void reduce(const Step& step);
  void copy(const Step& step);

  SimNetwork& network_;
  SimLeaders& leaders_;
  const SimModel& model_;
  int operation_;
  const Shape& shape_;
  // Buffers of all ranks, which a schedule that uses other ranks' buffers in place needs.
  const std::span<const SimRank> ranks_;
  const SimRank& buffers_;
  const SimOperator& op_;
  std::vector<std::byte> temp_;
  Operands own_;                   // addresses of this rank's own buffers
  std::vector<std::byte> packed_;  // packed data of the current step
  std::vector<std::byte> inout_packed_;
  std::vector<SimNetwork::Ticket> posted_;
  // Collectives between leaders that this rank has called in this round.
  std::vector<const SimLeaders::Collective*> called_;
};

}  // namespace weft
