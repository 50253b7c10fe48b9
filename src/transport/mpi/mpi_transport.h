// MpiTransport: carries out an operation's steps by MPI point-to-point calls on an internal
// communicator, with a tag per operation. It also carries out whole collectives as single steps.
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

// Route: the communicator for an operation's messages, and the numbers of the ranks there.
struct Route {
  MPI_Comm comm{};  // internal communicator of Weft, on which the messages travel
  // Ranks in `comm`, indexed by rank of the schedule; nullptr if they are equal.
  const RankMap* ranks = nullptr;
};

class MpiTransport final : public Transport {
 public:
  // All arguments must outlive the transport. tag: the tag of all messages of this operation.
  MpiTransport(const Call& call, const Schedule& schedule, const Operands& operands,
               const Route& route, int tag);
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int tag() const { return tag_; }

  // Reserves this operation's place in the order in which operations call collectives between
  // leaders. Must precede the first step if the schedule has such collectives.
  void lead(Leaders& leaders);
  // Notes that the operation has failed and will not call its collectives between leaders. Later
  // operations that need these leaders then fail, too.
  void give_up_leading();

  // Leaves the operation's only step, a collective of the MPI library, to `later`.
  void leave_to(DeferredStep& later) {
    deferred_step_ = &later;
    tests_otherwise_ = true;
  }

  Result<bool> start(const Step& step) override;
  Result<bool> test() override;

  // Returns the exception that the application's reduction operator has thrown, and forgets it; an
  // empty one if there was none. An operation whose operator has thrown has failed.
  Exception take_exception() { return std::exchange(exception_, {}); }

 private:
  template <class Code>
  // Calls code(), which returns an MPI error code, and keeps any exception.
  int without_exception(Code code);
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
  // Posts a message with more elements than an int can count; returns an MPI error code.
  int post_large(const Step& step, MPI_Request* request);
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
  // True if the schedule's steps call an operator, which may be a function of the application.
  const bool runs_operator_;
  bool tests_otherwise_;
  // Requests of a round if there are at most four, as in most schedules.
  std::array<MPI_Request, 4> few_;
  std::vector<MPI_Request> many_;  // requests of a round if there are more than four
  MPI_Request* const requests_;    // the requests of the current round, in few_ or many_
  int posted_ = 0;                 // number of requests posted in the current round
  // Number of requests of the current round that have completed.
  int tested_ = 0;
  // Carries out the operation's only step; nullptr if this object does it.
  DeferredStep* deferred_step_ = nullptr;
  // The leaders' communicator; nullptr if the schedule has no collectives between leaders.
  Leaders* leaders_ = nullptr;
  std::uint32_t turn_ = 0;
  std::uint32_t calls_left_ = 0;
  Exception exception_;
};

}  // namespace weft
