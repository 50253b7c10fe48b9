// Requests: Weft's operations behind the requests that the application holds.
// Why generalised requests: they are the MPI library's own handles, so that every completion call
// works on them, mixed with the library's requests, even one that Weft does not see.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/operation.h"
#include "interpose/communicators.h"
#include "interpose/generated/call_ids.h"
#include "transport/mpi/mpi_transport.h"

namespace weft::interpose {

// Times of one started collective, in ns; only kept while a summary or a trace is wanted.
struct Times {
  std::int64_t started = 0;   // the start call returned
  std::int64_t finished = 0;  // the collective was complete
  std::int64_t waiting_since = 0;
};

class CollectiveOperation final : public Operation {
 public:
  CollectiveOperation(CallId id, const Call& call, std::shared_ptr<Communicator> communicator,
                      std::shared_ptr<const Schedule> schedule, int tag);

  CallId id() const { return id_; }
  const Call& call() const { return call_; }
  Communicator& communicator() { return *communicator_; }
  int number() const { return transport_.tag(); }  // on its communicator, modulo the tags there are
  bool has_memory() const { return transport_.has_memory(); }

  // Makes the request that the application gets. MPI error code.
  int make_request(std::shared_ptr<CollectiveOperation> self);
  MPI_Request request() const { return request_; }
  void forget_self() { self_.reset(); }  // the application has completed the request

  // Kept until the operation is done: freed datatypes and operators.
  void keep(std::shared_ptr<void> resource);

  int error_code() const { return error_code_; }  // of the MPI library; after done()
  // True once: whoever reports the error to the application's handler.
  bool claim_error() { return error_code_ != MPI_SUCCESS && !error_reported_.exchange(true); }

  Times times;

 protected:
  void finished(const Error* error) override;

 private:
  const CallId id_;
  const Call call_;
  std::shared_ptr<Communicator> communicator_;
  MpiTransport transport_;
  MPI_Request request_{};
  std::shared_ptr<CollectiveOperation> self_;  // while the application holds the request
  int error_code_ = MPI_SUCCESS;               // written by finished(), read after done()
  std::atomic<bool> error_reported_{false};
  std::mutex kept_mutex_;  // guards kept_ and kept_closed_
  std::vector<std::shared_ptr<void>> kept_;
  bool kept_closed_ = false;
};

// The library's own requests of non-blocking collectives, watched for summary and trace only.
struct NativeRequest {
  CallId id;
  Times times;
};

class Requests {
 public:
  void add(std::shared_ptr<CollectiveOperation> operation);
  void remove(MPI_Request request);
  std::shared_ptr<CollectiveOperation> find(MPI_Request request);
  std::vector<std::shared_ptr<CollectiveOperation>> all();
  // Weft's requests that the application has not completed yet.
  int held() const { return held_.load(std::memory_order_relaxed); }

  void watch(MPI_Request request, NativeRequest record);
  // Ends the watch; false: not watched.
  bool unwatch(MPI_Request request, NativeRequest* record);
  bool watching() const { return watched_count_.load(std::memory_order_relaxed) > 0; }

 private:
  std::mutex mutex_;  // guards both maps
  std::unordered_map<MPI_Request, std::shared_ptr<CollectiveOperation>> operations_;
  std::unordered_map<MPI_Request, NativeRequest> watched_;
  std::atomic<int> held_{0};
  std::atomic<int> watched_count_{0};
};

}  // namespace weft::interpose
