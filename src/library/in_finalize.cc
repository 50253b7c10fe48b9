#include "library/in_finalize.h"

#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft {
namespace {

// The copy callback of the attribute. It makes duplicates of MPI_COMM_SELF not inherit the
// attribute, so that the registered function is called only once.
int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

}  // namespace

// Registers a function as the delete callback of an attribute of MPI_COMM_SELF (in_finalize.h). The
// attribute's key can be freed at once, since MPI keeps it until the attribute is deleted.
bool call_in_finalize(MPI_Comm_delete_attr_function* callback) {
  int key = 0;
  if (library_calls.Comm_create_keyval(copy_nothing, callback, &key, nullptr) != MPI_SUCCESS)
    return false;
  const bool is_set = library_calls.Comm_set_attr(handles.comm_self, key, nullptr) == MPI_SUCCESS;
  library_calls.Comm_free_keyval(&key);
  return is_set;
}

}  // namespace weft
