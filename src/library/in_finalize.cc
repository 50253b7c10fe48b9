#include "library/in_finalize.h"

#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft {
namespace {

// Copy callback of the attribute by which a function is registered: duplicates of MPI_COMM_SELF do
// not inherit it.
int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

}  // namespace

// Registers a function as a delete callback of MPI_COMM_SELF (in_finalize.h). The key can be freed
// at once, since MPI keeps it until its last attribute is deleted.
bool call_in_finalize(MPI_Comm_delete_attr_function* callback) {
  int key = 0;
  if (library_calls.Comm_create_keyval(copy_nothing, callback, &key, nullptr) != MPI_SUCCESS)
    return false;
  const bool is_set = library_calls.Comm_set_attr(handles.comm_self, key, nullptr) == MPI_SUCCESS;
  library_calls.Comm_free_keyval(&key);
  return is_set;
}

}  // namespace weft
