// AttachableMemory: memory of a process that the stand-in for XPMEM (tests/xpmem) can attach. Each
// allocation has a file of its own and takes the lowest free address, so that another allocation
// later has the same address with other pages.
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

// Makes what this process has attached follow the changes of its owners' mappings, which the kernel
// does by itself with XPMEM. Must be called when all owners have changed their mappings, and before
// any process uses them.
void follow_owners();
