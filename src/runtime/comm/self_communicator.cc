// Makes Weft's communicator of one rank by MPI_Comm_create with the group of MPI_COMM_SELF. Unlike
// MPI_Comm_dup this calls no attribute callbacks of the application.
#include "runtime/comm/self_communicator.h"

#include <mutex>

#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft {
namespace {

std::mutex mutex;  // guards `made` and `communicator`
bool made = false;
MPI_Comm communicator;

MPI_Comm make() {
  MPI_Group group;
  MPI_Comm comm = handles.comm_null;
  if (library_calls.Comm_group(handles.comm_self, &group) != MPI_SUCCESS) return comm;
  const int code = library_calls.Comm_create(handles.comm_self, group, &comm);
  library_calls.Group_free(&group);
  if (code != MPI_SUCCESS || comm == handles.comm_null) return handles.comm_null;
  library_calls.Comm_set_errhandler(comm, handles.errors_return);
  return comm;
}

}  // namespace

MPI_Comm self_communicator() {
  const std::lock_guard lock(mutex);
  if (!made) communicator = make();
  made = true;
  return communicator;
}

void free_self_communicator() {
  const std::lock_guard lock(mutex);
  if (made && communicator != handles.comm_null) library_calls.Comm_free(&communicator);
  made = false;
}

}  // namespace weft
