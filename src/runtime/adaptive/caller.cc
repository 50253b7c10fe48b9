// Finds the first stack frame that belongs neither to Weft nor to the MPI library or its language
// bindings.
#include "runtime/adaptive/caller.h"

#include <unistd.h>
#include <unwind.h>

#include <cstdio>

#include "base/code_place.h"

namespace weft {
namespace {

// Returns the path of the executable. The string is never destroyed, since threads may use it while
// the process exits.
const std::string& path_of_program() {
  static const auto* const path = [] {
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    return new std::string(program, length > 0 ? static_cast<std::size_t>(length) : 0);
  }();
  return *path;
}

}  // namespace

std::uintptr_t application_caller() {
  std::uintptr_t found = 0;
  const auto visit = [](_Unwind_Context* frame, void* data) {
    const std::uintptr_t address = _Unwind_GetIP(frame);
    if (!address) return _URC_END_OF_STACK;
    if (binding_of(place_of(address - 1).file) != Binding::none) return _URC_NO_REASON;
    *static_cast<std::uintptr_t*>(data) = address;
    return _URC_END_OF_STACK;
  };
  _Unwind_Backtrace(visit, &found);
  return found;
}

std::string caller_words(std::uintptr_t address) {
  const Place place = place_of(address - 1);
  std::string file = place.file;
  if (file == "?") return "";
  if (file.empty()) file = path_of_program();
  char offset[32];
  std::snprintf(offset, sizeof offset, "%#llx:", static_cast<unsigned long long>(place.offset + 1));
  return offset + file;
}

}  // namespace weft
