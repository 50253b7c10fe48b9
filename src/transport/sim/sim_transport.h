// SimTransport: carries out one rank's steps of one operation in the simulated network.
// Why it is a Transport like any other: the rounds' logic that runs over MPI is what is simulated.
#pragma once

#include "transport/sim/leaders.h"
#include "transport/sim/network.h"
#include "transport/transport.h"

namespace weft {

class SimTransport : public Transport {
 public:
  // All must outlive the transport.
  SimTransport(SimNetwork& network, SimLeaders& leaders, const SimModel& model, int operation,
               const Schedule& schedule, std::span<const SimRank> ranks, const SimOperator& op,
               const NodeTurn& turn);

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
  const std::span<const SimRank> ranks_;  // of all: a direct schedule uses others' buffers
  const SimRank& buffers_;
  const SimOperator& op_;
  std::vector<std::byte> temp_;
  Operands own_;                   // where this rank's buffers lie
  std::vector<std::byte> packed_;  // of the operands of the step at hand
  std::vector<std::byte> inout_packed_;
  std::vector<SimNetwork::Ticket> posted_;
  std::vector<const SimLeaders::Collective*> called_;  // of this round
};

}  // namespace weft
