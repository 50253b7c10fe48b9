// Immortal holds an object of static storage that is constructed by make() and never destroyed. A
// constructor at load time could come too late, because another library's constructor may call MPI
// first. A destructor could come too early, because threads and callbacks may use the object while
// the process exits.
#pragma once

#include <new>

namespace weft {

template <class Object>
union Immortal {
  constexpr Immortal() : nothing() {}
  constexpr ~Immortal() {}
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  // Constructs the object. Until then all its bytes are zero.
  void make() { new (&object) Object(); }

  char nothing;
  Object object;
};

}  // namespace weft
