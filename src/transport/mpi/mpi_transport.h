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

// The communicator and the rank numbers that messages use.
struct Route {
  MPI_Comm comm{};                 // an internal communicator of Weft
  const RankMap* ranks = nullptr;  // the peers' ranks in `comm`; nullptr if they equal the
                                   // schedule's
};

class MpiTransport final : public Transport {
 public:
  // All arguments must outlive the transport.
  MpiTransport(const Call& call, const Schedule& schedule, const Operands& operands,
               const Route& route, int tag);
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int tag() const { return tag_; }

  // Reserves the operation's place among those that make collectives between leaders, which follow
  // the order in which the application starts operations. Must precede the first step if the
  // schedule has such collectives.
  void lead(Leaders& leaders);
  // Notes that the operation has failed. It will not make its collectives between leaders, so that
  // later operations that need these leaders fail, too.
  void give_up_leading();

  // Makes `later` carry out the operation's only step, a collective of the MPI library.
  void leave_to(DeferredStep& later) {
    deferred_step_ = &later;
    tests_otherwise_ = true;
  }

  Result<bool> start(const Step& step) override;
  Result<bool> test() override;

  // Returns the exception that the application's reduction operator has thrown, and forgets it; an
  // empty one if there was none. An exception means that the operation has failed.
  Exception take_exception() { return std::exchange(exception_, {}); }

 private:
  template <class Code>
  int without_exception(Code code);  // returns an MPI error code
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
  int post_large(const Step& step, MPI_Request* request);  // posts a message with more elements
                                                           // than an int can count
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
  const bool runs_operator_;  // the schedule's steps call an operator, which may be a function of
                              // the application
  bool tests_otherwise_;
  std::array<MPI_Request, 4> few_;         // enough for the requests of a round in most schedules
  std::vector<MPI_Request> many_;          // used if a round posts more requests
  MPI_Request* const requests_;            // the round's requests: few_ or many_
  int posted_ = 0;                         // number of requests posted since the round began
  int tested_ = 0;                         // number of posted requests that have completed
  DeferredStep* deferred_step_ = nullptr;  // nullptr if the operation's steps are carried out here
  Leaders* leaders_ = nullptr;             // set if the schedule has collectives between leaders
  std::uint32_t turn_ = 0;
  std::uint32_t calls_left_ = 0;
  Exception exception_;
};

}  // namespace weft
