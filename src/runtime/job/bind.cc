// Looks up the MPI functions that Weft itself needs, and identifies the MPI implementation.
#include "runtime/job/bind.h"

#include <dlfcn.h>

#include <string>
#include <string_view>
#include <vector>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "library/search.h"
#include "transport/mpi/predefined.h"

namespace weft {
namespace {

Result<bool> bind_everything() {
  std::vector<const char*> missing;
  if (!bind_library_calls(find, missing))
    return Error{std::string("the MPI library lacks ") + missing.front() +
                 ", which Weft needs; it runs without Weft"};
  if (!bind_handles(find_variable))
    return Error{"the MPI library lacks predefined handles that Weft needs"};
  bind_predefined(find_variable);
  note_library();
  return true;
}

}  // namespace

Result<bool> bind_library() {
  static const Result<bool> bound = bind_everything();
  return bound;
}

namespace {

// Returns whether this file is a tool that passes each MPI call on exactly once, as the advisor
// does.
bool hands_all_on(const std::string& file) {
  constexpr std::string_view kAdvisor = "libweft-advise-";
  return file.compare(0, kAdvisor.size(), kAdvisor) == 0 ||
         file == file_of(reinterpret_cast<void*>(&first_in_chain));
}

}  // namespace

bool first_in_chain() {
  for (const char* name : {"MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome", "MPI_Test",
                           "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Request_get_status"})
    if (!hands_all_on(file_of(dlsym(RTLD_DEFAULT, name)))) return false;
  return true;
}

namespace {

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (library_calls.Get_library_version(text, &length) != MPI_SUCCESS) return "";
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

std::string library_words() {
  const std::string version = library_version();
  return version.substr(0, version.find_first_of(",\n"));
}

Library identify_library() {
  const std::string version = library_version();
  if (version.find("Intel") != std::string::npos) return Library::intelmpi;
  if (version.find("MPICH") != std::string::npos) return Library::mpich;
  if (version.find("Open MPI") != std::string::npos) return Library::openmpi;
  return Library::other;
}

}  // namespace weft
