// Collective calls without a non-blocking form, where no thread of Weft's can help: a rank that is
// inside one advances nothing, so it waits before until all others are inside, too, helping
// meanwhile those that come later. Files and windows say their group only; so the shadow of the
// communicator that each was made on is kept or, where others share that, a communicator like it.
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/blocking_call.h"
#include "runtime/held.h"
#include "runtime/runtime.h"

namespace weft {
namespace {

// Where the ranks of a file or window meet. Made and given up in calls that are collective.
class Place {
 public:
  explicit Place(std::shared_ptr<Communicator> of) : of_(std::move(of)) {
    if (of_->has_own) return;
    const ErrorsReturn errors(of_->user);
    if (errors.do_return()) made_ = communicator_like(of_->user);
  }
  ~Place() {
    if (made_ != handles.comm_null) library_calls.Comm_free(&made_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // The null one: there is none.
  MPI_Comm comm() const { return of_->has_own ? of_->shadow : made_; }

 private:
  const std::shared_ptr<Communicator> of_;
  MPI_Comm made_ = handles.comm_null;
};

// Never destroyed: programs close files and free windows while the process exits.
template <class Handle>
class Places {
 public:
  void add(Handle handle, MPI_Comm comm) {
    Communicator* const known = Runtime::active()->communicators.find(comm);
    if (!known) return;
    auto place = std::make_shared<Place>(known->shared_from_this());
    if (place->comm() == handles.comm_null) return;
    const std::lock_guard lock(mutex_);
    places_[handle] = std::move(place);
  }
  void remove(Handle handle) {
    std::shared_ptr<Place> removed;
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(handle);
    if (found == places_.end()) return;
    removed = std::move(found->second);
    places_.erase(found);
  }
  // nullptr: none.
  std::shared_ptr<Place> of(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(handle);
    return found == places_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;  // guards the rest
  std::map<Handle, std::shared_ptr<Place>> places_;
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
  if (Runtime* runtime = Runtime::active()) let_held_go(*runtime, comm);
}

void BlockingCall::meet(MPI_Comm comm) {
  after_held(comm);
  if (!alone_) return;
  drive([&](MPI_Request* request) { return library_calls.Ibarrier(comm, request); }, nullptr);
}

void BlockingCall::meet_of_file(MPI_File file) {
  if (!alone_) return;
  if (const auto place = files().of(file)) meet(place->comm());
}

void BlockingCall::meet_of_window(MPI_Win window) {
  if (!alone_) return;
  if (const auto place = windows().of(window)) meet(place->comm());
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
