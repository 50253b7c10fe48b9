// Xpmem: the library of the kernel module XPMEM, by which a process maps ("attaches") memory of
// another that has not been made to be shared; github.com/hpc/xpmem, include/xpmem.h.
// Why opened at run time: few machines have it, and Weft is to need nothing there or elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace weft {

// Its functions, as the library declares them. All return -1 where they fail.
struct Xpmem {
  struct Address {
    std::int64_t permit;  // of get()
    std::int64_t offset;  // in the segment, in whole pages
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
  // which: kOfSystem, kNone, or the path of a library, which has to find its device itself.
  // Of kOfSystem: whether this machine has a device of the module.
  static bool may_be_there(std::string_view which);
  // Where it may be there. For the life of the process.
  static Result<Xpmem> open(std::string_view which);

  // All of this process's memory as a segment, for processes of the same user.
  std::int64_t make_all() const;
  std::int64_t get_all(std::int64_t segment) const;
  // Whole pages at an address of the segment's process; nullptr: not to be had.
  std::byte* attach_at(std::int64_t permit, std::uintptr_t address, std::size_t bytes) const;
};

}  // namespace weft
