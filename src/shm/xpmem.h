// Xpmem: the library of the XPMEM kernel module, by which a process attaches any memory of another
// (github.com/hpc/xpmem, include/xpmem.h). It is opened at run time, since few machines have it and
// Weft must not depend on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace weft {

// Pointers to the library's functions. All of them return -1 on failure.
struct Xpmem {
  struct Address {
    std::int64_t permit;  // permit to attach memory of a process, as xpmem_get() returns it
    std::int64_t offset;  // offset in the segment, in bytes; must be whole pages
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
  // Returns false if XPMEM cannot be available. `which` says which library to use: kOfSystem (which
  // needs the module's device on this machine), kNone, or the path of a library.
  static bool may_be_there(std::string_view which);
  // Opens the library, and never closes it. Returns an error if it cannot be opened. may_be_there()
  // must have returned true.
  static Result<Xpmem> open(std::string_view which);

  // Makes all memory of this process available to processes of the same user, as an XPMEM segment.
  // Returns the number of the segment; -1 on failure.
  std::int64_t make_all() const;
  std::int64_t get_all(std::int64_t segment) const;
  // Attaches whole pages that begin at `address` in the process of the segment. Returns where they
  // are mapped; nullptr on failure.
  std::byte* attach_at(std::int64_t permit, std::uintptr_t address, std::size_t bytes) const;
};

}  // namespace weft
