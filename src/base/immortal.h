// Immortal: an object of static storage that is never destroyed, since threads and callbacks may
// look at it while the process exits.
#pragma once

namespace weft {

template <class Object>
union Immortal {
  Immortal() : object() {}
  ~Immortal() {}
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  Object object;
};

}  // namespace weft
