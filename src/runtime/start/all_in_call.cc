// Handles collective calls without a non-blocking form where no thread of Weft's can help. A rank
// inside such a call advances nothing; so it first waits until all others are inside too, and
// meanwhile helps later ones. Files and windows only tell their group; so the internal communicator
// of the communicator that each was made on is kept or, if others share it, a communicator like it.
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "library/generated/library_calls.h"
#include "runtime/request/blocking_call.h"
#include "runtime/request/incomplete.h"
#include "runtime/runtime.h"
#include "runtime/start/held.h"

namespace weft {
namespace {

// The communicators on which the ranks of files or windows meet, as long as these exist. Never
// destroyed: programs close files and free windows while the process exits.
template <class Handle>
class Places {
 public:
  void add(Handle handle, MPI_Comm comm) {
    Communicator* const known = Runtime::active()->communicators.find(comm);
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
  // Returns nullptr if there is none.
  std::shared_ptr<OwnCommunicator> of(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(handle);
    return found == places_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;  // guards the rest
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

void BlockingCall::after_held(MPI_Comm comm) {
  Runtime* const runtime = Runtime::active();
  if (!runtime) return;
  let_held_go(*runtime, comm);
  finish_before_blocking(*runtime, comm);
}

void BlockingCall::meet(MPI_Comm comm) {
  after_held(comm);
  if (!alone_) return;
  drive([&](MPI_Request* request) { return library_calls.Ibarrier(comm, request); }, nullptr);
}

void BlockingCall::meet_of_file(MPI_File file) {
  if (!alone_) return;
  if (const auto place = files().of(file)) meet(place->get());
}

void BlockingCall::meet_of_window(MPI_Win window) {
  if (!alone_) return;
  if (const auto place = windows().of(window)) meet(place->get());
}

void BlockingCall::opened_file(MPI_File file, MPI_Comm comm) {
  if (alone_) files().add(file, comm);
}

void BlockingCall::closed_file(MPI_File file) {
  if (alone_) files().remove(file);
}

void BlockingCall::opened_window(MPI_Win window, MPI_Comm comm) {
  if (alone_) windows().add(window, comm);
}

void BlockingCall::freed_window(MPI_Win window) {
  if (alone_) windows().remove(window);
}

}  // namespace weft
