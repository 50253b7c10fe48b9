// Functions that the generated wrappers call besides those of src/runtime. A wrapper knows only its
// call's arguments; all decisions are taken here and in src/runtime. bodies.h (generated) declares
// the hand-written bodies of wrappers (completion.cc, lifecycle.cc, objects.cc).
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/left_calls.h"
#include "library/search.h"

namespace weft::interpose {

// Marks this thread as inside a wrapper while it lives. profiled_by: the caller's address if the
// call's name is PMPI_X; nullptr if it is MPI_X. A call is nested if the thread was already inside
// a wrapper, or the library is the caller. Weft does not take over nested collectives, but tracks
// the objects that nested calls change.
class Entry {
 public:
  [[gnu::always_inline]] explicit Entry(const void* profiled_by)
      : before_(bits_at_begin(__builtin_dwarf_cfa())),
        nested_(before_ != 0 || (profiled_by && from_library(profiled_by))) {
    this_thread.is = profiled_by ? kInside | kProfiling : kInside;
  }
  ~Entry() { this_thread.is = before_; }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  bool nested() const { return nested_; }

 private:
  const std::uint8_t before_;
  const bool nested_;
};

// Progresses operations, because the application has entered MPI in a call that does not block.
void poll();

}  // namespace weft::interpose
