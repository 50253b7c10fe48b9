// Implements MpiTransport: carries out the steps of a schedule by calls of the MPI library.
#include "transport/mpi/mpi_transport.h"

#include <climits>
#include <cstring>

#include "base/buffer_pool.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "shm/copy.h"
#include "transport/mpi/library_step.h"
#include "transport/mpi/packing.h"

namespace weft {

MpiTransport::MpiTransport(const Call& call, const Schedule& schedule, const Operands& operands,
                           const Route& route, int tag)
    : call_(call),
      schedule_(schedule),
      operands_(operands),
      route_(route),
      tag_(tag),
      runs_operator_(!operands.reduce && reduces(schedule.shape.kind)),
      tests_otherwise_(runs_operator_),
      many_(schedule.most_posted > few_.size() ? schedule.most_posted : 0),
      requests_(many_.empty() ? few_.data() : many_.data()) {}

[[gnu::noinline]] int MpiTransport::peer_there(int rank) const {
  return route_.ranks->at(rank);
}

MPI_Datatype MpiTransport::other_type(Unit unit) const {
  if (unit == Unit::byte) return handles.byte;
  const auto index = static_cast<std::size_t>(unit) - static_cast<std::size_t>(Unit::first_of_many);
  const std::size_t sends = schedule_.shape.send_blocks.size();
  return index < sends ? call_.sendtypes[index] : call_.recvtypes[index - sends];
}

bool MpiTransport::plain(Unit unit) const {
  return layout_of(schedule_.shape, unit).plain;
}

std::int64_t MpiTransport::element_bytes(Unit unit) const {
  return layout_of(schedule_.shape, unit).size;
}

template <class Code>
[[gnu::noinline]] int MpiTransport::without_exception(Code code) {
  if (!runs_operator_) return code();
  int result = MPI_SUCCESS;
  const auto into_result = [&] { result = code(); };
  exception_ = exception_of(into_result);
  return exception_ ? MPI_ERR_OTHER : result;
}

Result<bool> MpiTransport::start(const Step& step) {
  int code = MPI_SUCCESS;
  switch (step.kind) {
    case StepKind::send:
    case StepKind::recv:
      code = post_message(step);
      break;
    case StepKind::reduce:
      code = without_exception([&] { return reduce(step); });
      break;
    case StepKind::copy:
      code = copy(step.first, step.second);
      break;
    case StepKind::library_blocking:
      code = without_exception([&] { return library_blocking(call_, route_.comm); });
      break;
    case StepKind::library_nonblocking:
      if (deferred_step_) return deferred_step_->begin();
      code = without_exception([&] {
        return library_nonblocking(call_, route_.comm,
                                   &requests_[static_cast<std::size_t>(posted_++)]);
      });
      break;
    case StepKind::leaders:
      return call_leaders(step);
    case StepKind::signal:
    case StepKind::wait:
    case StepKind::tell:
    case StepKind::check:
    case StepKind::show:
    case StepKind::find:
    case StepKind::agree:
      break;  // Execution carries out these steps itself
  }
  if (code == MPI_SUCCESS) return true;
  return Error{"", code};
}

int MpiTransport::post_message(const Step& step) {
  const Operand& at = step.first;
  MPI_Request* request = &requests_[static_cast<std::size_t>(posted_++)];
  if (at.count > INT_MAX) return post_large(step, request);
  const auto count = static_cast<int>(at.count);
  const int to = peer(step);
  const MPI_Comm comm = route_.comm;
  return step.kind == StepKind::send
             ? library_calls.Isend(address(at.at), count, type(at.unit), to, tag_, comm, request)
             : library_calls.Irecv(address(at.at), count, type(at.unit), to, tag_, comm, request);
}

void MpiTransport::lead(Leaders& leaders) {
  leaders_ = &leaders;
  turn_ = leaders.turns.take();
  calls_left_ = schedule_.leader_calls;
}

void MpiTransport::give_up_leading() {
  if (calls_left_ > 0) leaders_->turns.stop();
}

// Calls a collective of the MPI library between the nodes' leaders, and returns true. Returns false
// if an earlier operation has not made all its calls yet. The order of operations is equal on all
// leaders.
Result<bool> MpiTransport::call_leaders(const Step& step) {
  if (leaders_->turns.stopped()) return Error{"", MPI_ERR_OTHER};
  if (!leaders_->turns.has_come(turn_)) return false;
  const int code = without_exception(
      [&] { return call_leaders(step, &requests_[static_cast<std::size_t>(posted_++)]); });
  if (code != MPI_SUCCESS) return Error{"", code};
  if (--calls_left_ == 0) leaders_->turns.end(turn_);
  return true;
}

int MpiTransport::call_leaders(const Step& step, MPI_Request* request) {
  const MPI_Comm comm = leaders_->comm;
  const Operand &gives = step.first, &gets = step.second;
  const bool in_place = gives.count > 0 && gets.count > 0 && gives.at == gets.at;
  const void* from = in_place ? MPI_IN_PLACE : address(gives.at);
  void* to = address(gets.at);
  const auto given = static_cast<int>(gives.count), got = static_cast<int>(gets.count);
  const int root = schedule_.shape.nodes->of(step.peer);
  switch (step.collective) {
    case Kind::barrier:
      return library_calls.Ibarrier(comm, request);
    case Kind::bcast:
      if (given > 0)
        return library_calls.Ibcast(address(gives.at), given, type(gives.unit), root, comm,
                                    request);
      return library_calls.Ibcast(to, got, type(gets.unit), root, comm, request);
    case Kind::reduce:
      return library_calls.Ireduce(from, to, given, type(gives.unit), call_.op, root, comm,
                                   request);
    case Kind::allreduce:
      return library_calls.Iallreduce(from, to, given, type(gives.unit), call_.op, comm, request);
    case Kind::allgather:
      return library_calls.Iallgather(from, given, type(gives.unit), to, given, type(gets.unit),
                                      comm, request);
    default:
      *request = handles.request_null;
      return MPI_ERR_OTHER;
  }
}

int MpiTransport::post_large(const Step& step, MPI_Request* request) {
#if !defined(WEFT_FAMILY_OPENMPI)
  const Operand& at = step.first;
  if (step.kind == StepKind::send && library_calls.Isend_c)
    return library_calls.Isend_c(address(at.at), at.count, type(at.unit), peer(step), tag_,
                                 route_.comm, request);
  if (step.kind == StepKind::recv && library_calls.Irecv_c)
    return library_calls.Irecv_c(address(at.at), at.count, type(at.unit), peer(step), tag_,
                                 route_.comm, request);
#endif
  static_cast<void>(step);
  *request = handles.request_null;
  return MPI_ERR_COUNT;
}

Result<bool> MpiTransport::test() {
  if (tests_otherwise_) [[unlikely]]
    return test_otherwise();
  return test_posted();
}

[[gnu::noinline]] Result<bool> MpiTransport::test_otherwise() {
  if (deferred_step_) return deferred_step_->over();
  Result<bool> result = false;
  const int code = without_exception([&] {
    result = test_posted();
    return MPI_SUCCESS;
  });
  return code == MPI_SUCCESS ? result : Error{"", code};
}

// Tests the posted requests; returns true once all have completed. It tests them one by one,
// because errors of MPI_Testall would not reach the error handler of the internal communicator.
inline Result<bool> MpiTransport::test_posted() {
  for (; tested_ < posted_; ++tested_) {
    int done = 0;
    MPI_Request* request = &requests_[static_cast<std::size_t>(tested_)];
    const int code = library_calls.Test(request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
      return Error{"", code};
    }
    if (!done) return false;
  }
  posted_ = tested_ = 0;
  return true;
}

int MpiTransport::reduce(const Step& step) {
  const Operand into = result_of(step);
  if (into.at == step.first.at) return reduce_to_lower(step);
  if (into.at != step.second.at) {
    const int code = copy(step.second, into);
    if (code != MPI_SUCCESS) return code;
  }
  return library_calls.Reduce_local(address(step.first.at), address(into.at),
                                    static_cast<int>(step.first.count), call_.recvtype, call_.op);
}

// Reduces into the lower operand. MPI_Reduce_local puts its result into the higher operand, so a
// copy of that is used. Returns an MPI error code.
int MpiTransport::reduce_to_lower(const Step& step) {
  const std::int64_t bytes = step.bytes;
  std::byte* between = BufferPool::instance().take(bytes);
  if (!between) return MPI_ERR_NO_MEM;
  void* const lower = address(step.first.at);
  std::memcpy(between, address(step.second.at), static_cast<std::size_t>(bytes));
  const int code = library_calls.Reduce_local(lower, between, static_cast<int>(step.first.count),
                                              call_.recvtype, call_.op);
  if (code == MPI_SUCCESS) std::memcpy(lower, between, static_cast<std::size_t>(bytes));
  BufferPool::instance().give_back(between, bytes);
  return code;
}

int MpiTransport::copy(const Operand& from, const Operand& to) {
  const std::int64_t bytes = from.count * element_bytes(from.unit);
  if (bytes == 0) return MPI_SUCCESS;
  if (plain(from.unit) && plain(to.unit)) {
    copy_bytes(address(to.at), address(from.at), bytes);
    return MPI_SUCCESS;
  }
  if (to.unit == Unit::byte) return pack(from, address(to.at), bytes);
  if (from.unit == Unit::byte) return unpack(address(from.at), bytes, to);
  std::byte* between = BufferPool::instance().take(bytes);
  if (!between) return MPI_ERR_NO_MEM;
  int code = pack(from, between, bytes);
  if (code == MPI_SUCCESS) code = unpack(between, bytes, to);
  BufferPool::instance().give_back(between, bytes);
  return code;
}

int MpiTransport::pack(const Operand& from, void* to, std::int64_t bytes) {
  return pack_elements({address(from.at), from.count, type(from.unit)}, to, bytes, route_.comm);
}

int MpiTransport::unpack(const void* from, std::int64_t bytes, const Operand& to) {
  return unpack_elements(from, bytes, {address(to.at), to.count, type(to.unit)}, route_.comm);
}

}  // namespace weft
