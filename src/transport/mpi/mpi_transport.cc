// Steps as calls of the MPI library.
#include "transport/mpi/mpi_transport.h"

#include <cstring>

#include "base/buffer_pool.h"
#include "interpose/generated/library_calls.h"
#include "transport/mpi/handles.h"

namespace weft {

using interpose::library_calls;

namespace {

// What MPI_Pack and MPI_Unpack get. MPICH 4.0 takes MPI_BOTTOM for a forgotten buffer: in its place
// comes some address, and a type that lies as far before it.
class Elements {
 public:
  Elements(void* address, int count, MPI_Datatype type)
      : address_(address), count_(count), type_(type) {
    if (address) return;
    address_ = this;
    count_ = 1;
    const MPI_Aint back = -reinterpret_cast<MPI_Aint>(address_);
    library_calls.Type_create_hindexed(1, &count, &back, type, &type_);
    library_calls.Type_commit(&type_);
    made_ = true;
  }
  ~Elements() {
    if (made_) library_calls.Type_free(&type_);
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  void* address() const { return address_; }
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  void* address_;
  int count_;
  MPI_Datatype type_;
  bool made_ = false;
};

}  // namespace

MpiTransport::MpiTransport(const Call& call, const Schedule& schedule, MPI_Comm comm, int tag)
    : call_(call),
      schedule_(schedule),
      comm_(comm),
      tag_(tag),
      temp_(BufferPool::instance().take(schedule.temp_bytes)),
      requests_(schedule.most_posted + 1, handles.request_null),
      statuses_(schedule.most_posted + 1) {}

MpiTransport::~MpiTransport() {
  if (!failed_) BufferPool::instance().give_back(temp_, schedule_.temp_bytes);
}

void* MpiTransport::address(const Location& at) const {
  const void* base = at.buffer == Buffer::send   ? call_.sendbuf
                     : at.buffer == Buffer::recv ? call_.recvbuf
                                                 : temp_;
  // By integers: the base may be MPI_BOTTOM, and offsets may lead below it.
  return reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(base) + at.offset);
}

MPI_Datatype MpiTransport::type(Unit unit) const {
  return unit == Unit::send ? call_.sendtype : unit == Unit::recv ? call_.recvtype : handles.byte;
}

bool MpiTransport::plain(Unit unit) const {
  return unit == Unit::byte ||
         (unit == Unit::send ? schedule_.shape.send : schedule_.shape.recv).plain;
}

std::int64_t MpiTransport::element_bytes(Unit unit) const {
  if (unit == Unit::byte) return 1;
  return (unit == Unit::send ? schedule_.shape.send : schedule_.shape.recv).size;
}

Result<bool> MpiTransport::start(const Step& step) {
  int code = MPI_SUCCESS;
  switch (step.kind) {
    case StepKind::send:
    case StepKind::recv:
      code = post_message(step);
      break;
    case StepKind::reduce:
      code = reduce(step);
      break;
    case StepKind::copy:
      code = copy(step.first, step.second);
      break;
    case StepKind::library_blocking:
      code = library_blocking();
      break;
    case StepKind::library_nonblocking:
      code = library_nonblocking();
      break;
  }
  if (code == MPI_SUCCESS) return true;
  failed_ = true;
  return Error{"", code};
}

int MpiTransport::post_message(const Step& step) {
  const auto count = static_cast<int>(step.first.count);
  void* buffer = address(step.first.at);
  MPI_Request* request = &requests_[static_cast<std::size_t>(posted_++)];
  return step.kind == StepKind::send ? library_calls.Isend(buffer, count, type(step.first.unit),
                                                           step.peer, tag_, comm_, request)
                                     : library_calls.Irecv(buffer, count, type(step.first.unit),
                                                           step.peer, tag_, comm_, request);
}

Result<bool> MpiTransport::test() {
  if (posted_ == 0) return true;
  int done = 0;
  const int code = library_calls.Testall(posted_, requests_.data(), &done, statuses_.data());
  if (code == MPI_SUCCESS) {
    if (done) posted_ = 0;
    return done != 0;
  }
  failed_ = true;
  if (code == MPI_ERR_IN_STATUS)
    for (int i = 0; i < posted_; ++i) {
      const int of_one = statuses_[static_cast<std::size_t>(i)].MPI_ERROR;
      if (of_one != MPI_SUCCESS && of_one != MPI_ERR_PENDING) return Error{"", of_one};
    }
  return Error{"", code};
}

int MpiTransport::reduce(const Step& step) {
  return library_calls.Reduce_local(address(step.first.at), address(step.second.at),
                                    static_cast<int>(step.first.count), call_.recvtype, call_.op);
}

int MpiTransport::copy(const Operand& from, const Operand& to) {
  const std::int64_t bytes = from.count * element_bytes(from.unit);
  if (bytes == 0) return MPI_SUCCESS;
  if (plain(from.unit) && plain(to.unit)) {
    std::memmove(address(to.at), address(from.at), static_cast<std::size_t>(bytes));
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
  const Elements elements(address(from.at), static_cast<int>(from.count), type(from.unit));
  int position = 0;
  return library_calls.Pack(elements.address(), elements.count(), elements.type(), to,
                            static_cast<int>(bytes), &position, comm_);
}

int MpiTransport::unpack(const void* from, std::int64_t bytes, const Operand& to) {
  const Elements elements(address(to.at), static_cast<int>(to.count), type(to.unit));
  int position = 0;
  return library_calls.Unpack(from, static_cast<int>(bytes), &position, elements.address(),
                              elements.count(), elements.type(), comm_);
}

int MpiTransport::library_blocking() {
  const Call& c = call_;
  switch (c.kind) {
    case Kind::barrier:
      return library_calls.Barrier(comm_);
    case Kind::bcast:
      return library_calls.Bcast(c.recvbuf, c.recvcount, c.recvtype, c.root, comm_);
    case Kind::reduce:
      return library_calls.Reduce(c.sendbuf, c.recvbuf, c.recvcount, c.recvtype, c.op, c.root,
                                  comm_);
    case Kind::allreduce:
      return library_calls.Allreduce(c.sendbuf, c.recvbuf, c.recvcount, c.recvtype, c.op, comm_);
    case Kind::allgather:
      return library_calls.Allgather(c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount,
                                     c.recvtype, comm_);
    case Kind::alltoall:
      return library_calls.Alltoall(c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount,
                                    c.recvtype, comm_);
    case Kind::scan:
      return library_calls.Scan(c.sendbuf, c.recvbuf, c.recvcount, c.recvtype, c.op, comm_);
    default:
      break;
  }
  return MPI_ERR_INTERN;
}

int MpiTransport::library_nonblocking() {
  const Call& c = call_;
  MPI_Request* request = &requests_[static_cast<std::size_t>(posted_++)];
  switch (c.kind) {
    case Kind::barrier:
      return library_calls.Ibarrier(comm_, request);
    case Kind::bcast:
      return library_calls.Ibcast(c.recvbuf, c.recvcount, c.recvtype, c.root, comm_, request);
    case Kind::reduce:
      return library_calls.Ireduce(c.sendbuf, c.recvbuf, c.recvcount, c.recvtype, c.op, c.root,
                                   comm_, request);
    case Kind::allreduce:
      return library_calls.Iallreduce(c.sendbuf, c.recvbuf, c.recvcount, c.recvtype, c.op, comm_,
                                      request);
    case Kind::allgather:
      return library_calls.Iallgather(c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount,
                                      c.recvtype, comm_, request);
    case Kind::alltoall:
      return library_calls.Ialltoall(c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount,
                                     c.recvtype, comm_, request);
    case Kind::scan:
      return library_calls.Iscan(c.sendbuf, c.recvbuf, c.recvcount, c.recvtype, c.op, comm_,
                                 request);
    default:
      break;
  }
  return MPI_ERR_INTERN;
}

}  // namespace weft
