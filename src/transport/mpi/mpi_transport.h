// MpiTransport: carries out one operation's steps by MPI point-to-point calls on an internal
// communicator, with a tag per operation, and whole collectives as single steps.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "base/users_code.h"
#include "transport/mpi/call.h"
#include "transport/mpi/leaders.h"
#include "transport/rank_map.h"
#include "transport/transport.h"

namespace weft {

// Says where messages go.
struct Route {
  MPI_Comm comm{};                 // of Weft's own
  const RankMap* ranks = nullptr;  // the peers' numbers there; nullptr: as the schedule has them
};

class MpiTransport final : public Transport {
 public:
  // All arguments must outlive the transport.
  MpiTransport(const Call& call, const Schedule& schedule, const Operands& operands,
               const Route& route, int tag);
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int tag() const { return tag_; }

  // Takes the operation's turn among those with calls between leaders, in the order in which the
  // application starts them. Must precede the first step if the schedule has such calls.
  void lead(Leaders& leaders);
  // Notes that the operation has failed: its turn does not come or end, and neither do later ones.
  void give_up_leading();

  // Leaves its only step, a collective of the library's, to `later`.
  void leave_to(DeferredStep& later) {
    deferred_step_ = &later;
    tests_otherwise_ = true;
  }

  Result<bool> start(const Step& step) override;
  Result<bool> test() override;

  // Takes the exception that an operator of the application's has thrown: the operation has failed.
  Exception take_exception() { return std::exchange(exception_, {}); }

 private:
  template <class Code>
  int without_exception(Code code);  // MPI error code
  Result<bool> test_otherwise();
  Result<bool> test_posted();
  void* address(const Location& at) const { return operands_.address(at); }
  MPI_Datatype type(Unit unit) const {
    if (unit == Unit::send) return call_.sendtype;
    return unit == Unit::recv ? call_.recvtype : other_type(unit);
  }
  MPI_Datatype other_type(Unit unit) const;
  bool plain(Unit unit) const;
  std::int64_t element_bytes(Unit unit) const;

  int peer(const Step& step) const { return route_.ranks ? peer_there(step.peer) : step.peer; }
  int peer_there(int rank) const;
  int post_message(const Step& step);
  int post_large(const Step& step, MPI_Request* request);  // more elements than an int holds
  Result<bool> call_leaders(const Step& step);
  int call_leaders(const Step& step, MPI_Request* request);
  int reduce(const Step& step);
  int reduce_to_lower(const Step& step);
  int copy(const Operand& from, const Operand& to);
  int pack(const Operand& from, void* to, std::int64_t bytes);
  int unpack(const void* from, std::int64_t bytes, const Operand& to);

  const Call& call_;
  const Schedule& schedule_;
  const Operands& operands_;
  const Route& route_;
  const int tag_;
  const bool runs_operator_;  // perhaps one of the application's
  bool tests_otherwise_;
  std::array<MPI_Request, 4> few_;         // most schedules post no more in a round
  std::vector<MPI_Request> many_;          // else
  MPI_Request* const requests_;            // of the round, either here or there
  int posted_ = 0;                         // since the round began
  int tested_ = 0;                         // of those, complete
  DeferredStep* deferred_step_ = nullptr;  // nullptr: its steps are its own
  Leaders* leaders_ = nullptr;             // of schedules with calls of leaders
  std::uint32_t turn_ = 0;
  std::uint32_t calls_left_ = 0;
  Exception exception_;
};

}  // namespace weft
