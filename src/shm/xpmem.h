// Xpmem: the library of the XPMEM kernel module, by which a process attaches arbitrary memory of
// another; github.com/hpc/xpmem, include/xpmem.h. It is opened at run time, since few machines have
// it and Weft must not depend on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace weft {

// Pointers to the library's functions. All of them return -1 on failure.
struct Xpmem {
  struct Address {
    std::int64_t permit;  // result of get()
    std::int64_t offset;  // offset in the segment, in whole pages
  };
  using Make = std::int64_t(void* begin, std::size_t bytes, int permit_type, void* permit_value);
  using Get = std::int64_t(std::int64_t segment, int flags, int permit_type, void* permit_value);
  using Attach = void*(Address from, std::size_t bytes, void* hint);
  using Detach = int(void* begin);

  Make* make = nullptr;
  Get* get = nullptr;
  Attach* attach = nullptr;
  Detach* detach = nullptr;

  static constexpr std::string_view kOfSystem = "auto", kNone = "off";
  // which: kOfSystem, kNone, or the path of a library, which finds its device itself. For kOfSystem
  // it returns whether the machine has the module's device.
  static bool may_be_there(std::string_view which);
  // Opens the library for the life of the process. Must only be called if may_be_there().
  static Result<Xpmem> open(std::string_view which);

  // Makes all memory of this process a segment for processes of the same user.
  std::int64_t make_all() const;
  std::int64_t get_all(std::int64_t segment) const;
  // Attaches whole pages at an address of the segment's process. Returns nullptr on failure.
  std::byte* attach_at(std::int64_t permit, std::uintptr_t address, std::size_t bytes) const;
};

}  // namespace weft
