// AttachableMemory: memory of a process that the stand-in for XPMEM can attach (tests/xpmem): each
// piece from a file of its own, at the lowest address that is free, so that what one leaves
// another gets, with other pages.
#pragma once

#include <cstddef>

class AttachableMemory {
 public:
  explicit AttachableMemory(std::size_t bytes);
  ~AttachableMemory();
  AttachableMemory(const AttachableMemory&) = delete;
  AttachableMemory& operator=(const AttachableMemory&) = delete;

  void* data() const { return data_; }

 private:
  std::size_t bytes_;
  int file_;
  void* data_;
};

// What the kernel does for XPMEM by itself: what this process has attached follows what its owners
// have unmapped and mapped. When all have, and before any uses it.
void follow_owners();
