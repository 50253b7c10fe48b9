// Waits for all ranks before collective calls that have no non-blocking form. For files and windows
// MPI tells only the group, but the ranks need a communicator on which to wait. It is the internal
// communicator of the communicator on which the file or window was made. If other communicators
// share that one, a new communicator of the same ranks is made.
#include "runtime/start/all_in_call.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "library/generated/library_calls.h"
#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"
#include "runtime/request/incomplete.h"
#include "runtime/request/windows.h"
#include "runtime/start/deferred.h"

namespace weft {
namespace {

// The communicators on which the ranks of files or windows wait for each other. The objects are
// never destroyed, since programs may close files and free windows while the process exits.
template <class Handle>
class Places {
 public:
  void add(Handle handle, MPI_Comm comm) {
    Communicator* const known = Communicators::own().find(comm);
    if (!known) return;
    auto place = std::make_shared<OwnCommunicator>(*known);
    if (!place->there()) return;
    const std::lock_guard lock(mutex_);
    places_[handle] = std::move(place);
  }
  void remove(Handle handle) {
    std::shared_ptr<OwnCommunicator> removed;
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(handle);
    if (found == places_.end()) return;
    removed = std::move(found->second);
    places_.erase(found);
  }
  // Returns the communicator for a file or window; nullptr if there is none.
  std::shared_ptr<OwnCommunicator> of(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(handle);
    return found == places_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;  // guards places_
  std::map<Handle, std::shared_ptr<OwnCommunicator>> places_;
};

Places<MPI_File>& files() {
  static auto* instance = new Places<MPI_File>;
  return *instance;
}

Places<MPI_Win>& windows() {
  static auto* instance = new Places<MPI_Win>;
  return *instance;
}

}  // namespace

void after_deferred(MPI_Comm comm) {
  Runtime* const runtime = Runtime::active();
  if (!runtime) return;
  release_deferred(*runtime, comm);
  finish_before_blocking(*runtime, comm);
}

void join_collective(BlockingCall& call, MPI_Comm comm) {
  after_deferred(comm);
  if (!call.must_not_block()) return;
  call.drive([&](MPI_Request* request) { return library_calls.Ibarrier(comm, request); }, nullptr);
}

void join_collective_of_file(BlockingCall& call, MPI_File file) {
  if (!call.must_not_block()) return;
  if (const auto place = files().of(file)) join_collective(call, place->get());
}

void join_collective_of_window(BlockingCall& call, MPI_Win window) {
  if (!call.must_not_block()) return;
  if (const auto place = windows().of(window)) join_collective(call, place->get());
}

void opened_file(const BlockingCall& call, MPI_File file, MPI_Comm comm) {
  if (call.must_not_block()) files().add(file, comm);
}

void closed_file(const BlockingCall& call, MPI_File file) {
  if (call.must_not_block()) files().remove(file);
}

void opened_window(const BlockingCall& call, MPI_Win window, MPI_Comm comm, MPI_Info info) {
  if (call.must_not_block()) windows().add(window, comm);
  window_made(window, info);
}

void freed_window(const BlockingCall& call, MPI_Win window) {
  if (call.must_not_block()) windows().remove(window);
}

}  // namespace weft
