// Tells which memory a system call accesses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::advise {

enum class Memory : unsigned char {
  known,  // the call accesses only the visited ranges
  ends,   // the call may access other memory, so no buffer may be watched during the call
};

// Receives the memory ranges of a system call: visit() is called for each range that the system
// call reads or may write.
class MemoryVisitor {
 public:
  virtual void visit(std::uintptr_t begin, std::size_t bytes, bool writes) = 0;

 protected:
  ~MemoryVisitor() = default;
};

Memory memory_of_call(long number, const long (&arguments)[6], MemoryVisitor& visitor);

}  // namespace weft::advise
