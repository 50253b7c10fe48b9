// NCCL: pointers to its functions, and communicators of it. The library is loaded at run time, like
// the driver, and only if a collective may use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "gpu/context.h"

namespace weft::gpu {

// NcclId: identifies an NCCL communicator that is being made. Weft does not interpret its bytes.
struct NcclId {
  char bytes[128];
};

// Lists the functions that Weft needs, all of which NCCL 2.10 has. Each entry has the type of the
// result, the name of the member of Nccl, the name of the function and its parameters.
#define WEFT_NCCL_CALLS(X)                                                                        \
  X(int, version, ncclGetVersion, (int* version))                                                 \
  X(const char*, text_of, ncclGetErrorString, (int code))                                         \
  X(int, create_id, ncclGetUniqueId, (NcclId * id))                                               \
  X(int, join, ncclCommInitRank, (void** comm, int ranks, NcclId id, int rank))                   \
  X(int, destroy, ncclCommDestroy, (void* comm))                                                  \
  X(int, abort, ncclCommAbort, (void* comm))                                                      \
  X(int, later_error, ncclCommGetAsyncError, (void* comm, int* code))                             \
  X(int, begin_group, ncclGroupStart, ())                                                         \
  X(int, end_group, ncclGroupEnd, ())                                                             \
  X(int, send, ncclSend,                                                                          \
    (const void* from, std::size_t count, int type, int peer, void* comm, Stream stream))         \
  X(int, receive, ncclRecv,                                                                       \
    (void* to, std::size_t count, int type, int peer, void* comm, Stream stream))                 \
  X(int, allreduce, ncclAllReduce,                                                                \
    (const void* from, void* to, std::size_t count, int type, int op, void* comm, Stream stream)) \
  X(int, allgather, ncclAllGather,                                                                \
    (const void* from, void* to, std::size_t count, int type, void* comm, Stream stream))         \
  X(int, broadcast, ncclBroadcast,                                                                \
    (const void* from, void* to, std::size_t count, int type, int root, void* comm,               \
     Stream stream))                                                                              \
  X(int, reduce_scatter, ncclReduceScatter,                                                       \
    (const void* from, void* to, std::size_t count, int type, int op, void* comm, Stream stream))

struct Nccl {
#define WEFT_NCCL_MEMBER(Result, member, name, parameters) Result(*member) parameters = nullptr;
  WEFT_NCCL_CALLS(WEFT_NCCL_MEMBER)
#undef WEFT_NCCL_MEMBER
  std::string name;  // with its version, such as "NCCL 2.21.5"

  // Returns an error with text such as "ncclAllReduce: invalid argument".
  Error error(const char* call, int code) const;
};

// Returns NCCL, which the first call loads. Returns an error that says what is missing on this
// machine if it cannot be used.
Result<const Nccl*> nccl();

// NcclCall: the arguments of a collective that NCCL carries out.
struct NcclCall {
  enum class What { allreduce, allgather, broadcast, reduce_scatter, alltoall };
  What what = What::allreduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;          // elements of an allreduce or broadcast; otherwise of one block
  std::size_t element_bytes = 1;  // bytes of an element
  int type = 1, op = 0;           // ncclDataType_t (by default bytes), ncclRedOp_t
  int root = 0;                   // root of a broadcast
};

// NcclComm: a communicator of NCCL's, and a stream of Weft's beside it. One persistent collective
// uses it at a time, since NCCL matches collectives by their order, and persistent ones may start
// in any order.
class NcclComm {
 public:
  // Creates the communicator. All ranks must call it together, with the same id.
  static Result<std::shared_ptr<NcclComm>> create(const Nccl& nccl, const Context* context,
                                                  int rank, int ranks, const NcclId& id);
  // Destroys the communicator. No stream or graph may use it any more.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  Result<bool> enqueue(const NcclCall& call, Stream stream);
  // Ends all kernels of the communicator, whether or not the other ranks take part. The
  // communicator cannot be used after it.
  void abort();
  // Returns the error that NCCL has found since the last call; otherwise true.
  Result<bool> state();

  // A rank has reserved the communicator for an operation from take() to give_back().
  bool is_free() const { return is_free_.load(std::memory_order_acquire) && !is_aborted_; }
  void take() { is_free_.store(false, std::memory_order_relaxed); }
  void give_back() { is_free_.store(true, std::memory_order_release); }

  Stream stream() const { return stream_; }
  // Makes the communicator's stream wait for the work that is in `stream` now.
  Result<bool> follow(Stream stream);
  // Marks the end of the work that is in the communicator's stream now, and makes `stream` wait for
  // the last such mark.
  Result<bool> mark_end();
  Result<bool> await_end(Stream stream);
  // Returns whether the communicator's stream has reached the last mark.
  bool has_ended() const;
  // Measures work in the communicator's stream: begin_timing() precedes it, mark_end() follows it.
  Result<bool> begin_timing();
  // Returns how long the work took, in microseconds. The stream must have reached the mark.
  Result<double> timed_us() const;

 private:
  NcclComm(const Nccl& nccl, const Context* context, int rank, int ranks)
      : nccl_(nccl), context_(context), rank_(rank), ranks_(ranks) {}
  int launch(const NcclCall& call, Stream stream) const;
  int exchange(const NcclCall& call, Stream stream) const;

  const Nccl& nccl_;
  const Context* const context_;
  const int rank_, ranks_;
  std::mutex mutex_;  // guards comm_, which other threads may abort
  void* comm_ = nullptr;
  std::atomic<bool> is_aborted_{false}, is_free_{true};
  Stream stream_ = nullptr;
  Event begun_ = nullptr, ended_ = nullptr;
};

}  // namespace weft::gpu
