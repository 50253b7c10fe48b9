// Declares functions that every generated wrapper of an MPI call uses, besides those of
// src/runtime. A wrapper knows only its call's arguments; all decisions are taken in the functions
// that it calls. The hand-written bodies of wrappers are declared in the generated file bodies.h.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/left_calls.h"
#include "library/search.h"

namespace weft::interpose {

// Marks this thread as inside a wrapper while the object lives. profiled_by: the return address if
// the application called PMPI_X; nullptr if it called MPI_X. A call is nested if the thread was
// already inside a wrapper, or if the MPI library itself made the call. Weft passes nested
// collectives on to the MPI library, but tracks the MPI objects that nested calls create and free.
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

// Progresses Weft's collectives. It is called when the application makes an MPI call that does not
// block.
void poll();

}  // namespace weft::interpose
