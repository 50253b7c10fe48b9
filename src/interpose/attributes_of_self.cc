// Records the attributes that are set on MPI_COMM_SELF, and deletes them before MPI_Finalize.
// Attributes that are set by MPICH's Fortran bindings are not seen by Weft; MPI_Finalize itself
// deletes these.
#include "interpose/attributes_of_self.h"

#include <mpi.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "interpose/generated/bodies.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"

namespace weft::interpose {
namespace {

// Lists the keys of the attributes of MPI_COMM_SELF, in the order in which they were set.
class Keys {
 public:
  // Adds the key of an attribute that was set. A key that is already in the list keeps its
  // position.
  void add(int key) {
    const std::lock_guard lock(mutex_);
    if (std::find(set_.begin(), set_.end(), key) == set_.end()) set_.push_back(key);
  }
  void remove(int key) {
    const std::lock_guard lock(mutex_);
    std::erase(set_, key);
  }
  std::optional<int> last() {
    const std::lock_guard lock(mutex_);
    return set_.empty() ? std::nullopt : std::optional(set_.back());
  }

 private:
  std::mutex mutex_;
  std::vector<int> set_;
};

// Returns the keys of the attributes that are set on MPI_COMM_SELF. The list is never destroyed,
// since a program may call MPI_Finalize while it exits.
Keys& keys() {
  static auto& all = *new Keys;
  return all;
}

int is_set(MPI_Comm comm, int key, int code) {
  if (comm == handles.comm_self && code == MPI_SUCCESS) keys().add(key);
  return code;
}

int is_deleted(MPI_Comm comm, int key, int code) {
  if (comm == handles.comm_self && code == MPI_SUCCESS) keys().remove(key);
  return code;
}

}  // namespace

// Deletes one attribute after the other until none is left, always the last one. A delete callback
// may set further attributes, which are deleted, too.
void delete_attributes_of_self() {
  while (const auto key = keys().last()) {
    keys().remove(*key);
    next_calls.Comm_delete_attr(handles.comm_self, *key);
  }
}

namespace object {

int Attr_delete(bool, MPI_Comm comm, int keyval) {
  return is_deleted(comm, keyval, next_calls.Attr_delete(comm, keyval));
}

int Attr_put(bool, MPI_Comm comm, int keyval, void* attribute_val) {
  return is_set(comm, keyval, next_calls.Attr_put(comm, keyval, attribute_val));
}

int Comm_delete_attr(bool, MPI_Comm comm, int comm_keyval) {
  return is_deleted(comm, comm_keyval, next_calls.Comm_delete_attr(comm, comm_keyval));
}

int Comm_set_attr(bool, MPI_Comm comm, int comm_keyval, void* attribute_val) {
  return is_set(comm, comm_keyval, next_calls.Comm_set_attr(comm, comm_keyval, attribute_val));
}

}  // namespace object
}  // namespace weft::interpose
