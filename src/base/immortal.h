// Immortal: an object of static storage that is constructed when its owner calls make(), and is
// never destroyed. There is no constructor at load, because a library of the program may call MPI
// in a constructor that runs before Weft's. There is no destructor, because threads and callbacks
// may access the object while the process exits.
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
