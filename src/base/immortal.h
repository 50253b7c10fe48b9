// Immortal: an object of static storage that is made when its owner says so, and is never
// destroyed. Why no constructor at load: a library of the program's may call MPI from a constructor
// that runs before those of Weft. Why no destructor: threads and callbacks may look at the object
// while the process exits.
#pragma once

#include <new>

namespace weft {

template <class Object>
union Immortal {
  constexpr Immortal() : nothing() {}
  constexpr ~Immortal() {}
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  // Until then all bytes of the object are zero.
  void make() { new (&object) Object(); }

  char nothing;
  Object object;
};

}  // namespace weft
