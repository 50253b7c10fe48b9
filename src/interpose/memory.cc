// Implements MPI_Alloc_mem and MPI_Free_mem. Large memory comes from a heap that the other ranks of
// the node can access, so that collectives inside the node need no copy. Small requests, and
// requests with an info argument, are passed to the MPI library.
#include "coll/algorithm.h"
#include "interpose/generated/bodies.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "runtime/node/node_heaps.h"

namespace weft::interpose {
namespace special {

int Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
  const bool is_wanted =
      Runtime::active() && size >= kLeastDirect_bytes && info == handles.info_null;
  SharedHeap* const heap = is_wanted ? find_or_make_own_heap() : nullptr;
  void* const block = heap ? heap->allocate(size, 1) : nullptr;
  if (!block) return next_calls.Alloc_mem(size, info, baseptr);
  *static_cast<void**>(baseptr) = block;
  return MPI_SUCCESS;
}

}  // namespace special

namespace object {

int Free_mem(bool, void* base) {
  SharedHeap* const heap = own_heap();
  if (!heap || !heap->contains(base)) return next_calls.Free_mem(base);
  heap->release(base);
  return MPI_SUCCESS;
}

}  // namespace object
}  // namespace weft::interpose
