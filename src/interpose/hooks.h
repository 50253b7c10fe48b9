// Hooks: what the generated wrappers call beside what src/runtime offers.
// Why: a wrapper knows its call's arguments and nothing else; the decisions are taken there.
// bodies.h (generated) declares the wrapper bodies that are written out one by one
// (completion.cc, lifecycle.cc, objects.cc).
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/left_calls.h"
#include "library/search.h"

namespace weft::interpose {

// Marks this thread as inside a wrapper while it lives. profiled_by: the caller by the name PMPI_X;
// nullptr if the name is MPI_X. Nested: the thread already was inside, or the library is the
// caller. Collectives from inside the MPI library or Weft are not Weft's, but changes to objects
// that Weft knows count.
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

// The application entered MPI without blocking: an opportunity for progress.
void poll();

}  // namespace weft::interpose
