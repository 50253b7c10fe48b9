// FreedLater frees a datatype or operator when the last collective that uses it is complete.
#pragma once

namespace weft {

template <class Handle>
class FreedLater {
 public:
  FreedLater(Handle handle, int (*free)(Handle*)) : handle_(handle), free_(free) {}
  ~FreedLater() { free_(&handle_); }
  FreedLater(const FreedLater&) = delete;
  FreedLater& operator=(const FreedLater&) = delete;

 private:
  Handle handle_;
  int (*free_)(Handle*);
};

}  // namespace weft
