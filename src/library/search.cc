// Finds the MPI functions that Weft calls. A wrapper of MPI_X calls the next definition of MPI_X
// after Weft, so that other PMPI tools keep working. A wrapper of PMPI_X, and Weft itself, call the
// MPI library's PMPI_X. An interpreter such as Python may load the MPI library late and in a local
// scope, where a plain dlsym() does not find it. In that case the MPI library is opened by its file
// name.
#include "library/search.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/loaded_object.h"
#include "base/log.h"
#include "library/generated/next_calls.h"
#include "library/linker.h"

namespace weft {

namespace {

#if defined(WEFT_FAMILY_OPENMPI)
constexpr const char* kLibraryNames[] = {"libmpi.so.40"};
#elif defined(WEFT_FAMILY_ABI)
constexpr const char* kLibraryNames[] = {"libmpi_abi.so.1", "libmpi_abi.so.0"};
#else
constexpr const char* kLibraryNames[] = {"libmpi.so.12"};
#endif

void* late_library() {
  static void* library = nullptr;
  for (std::size_t i = 0; !library && i < std::size(kLibraryNames); ++i)
    library = linker().dlopen(kLibraryNames[i], RTLD_LAZY | RTLD_NOLOAD);
  return library;
}

}  // namespace

void* find(const char* name) {
  if (void* next = linker().dlsym(RTLD_NEXT, name)) return next;
  void* library = late_library();
  return library ? linker().dlsym(library, name) : nullptr;
}

void* find_behind_weft(const char* name) {
  void* const next = find(name);
  if (file_of(next).rfind("libweft-", 0) != 0) return next;
  void* const library = late_library();
  return library ? linker().dlsym(library, name) : nullptr;
}

// Finds a variable of the MPI library. It searches the global scope from the beginning, not only
// the objects after Weft, because the executable may contain the valid copy of the variable (copy
// relocation).
void* find_variable(const char* name) {
  if (void* first = linker().dlsym(RTLD_DEFAULT, name)) return first;
  void* library = late_library();
  return library ? linker().dlsym(library, name) : nullptr;
}

namespace {

// The address range of the MPI library. It is written once; `end` is written last, and publishes
// `begin`.
struct Known {
  std::uintptr_t begin = 0;
  // 0 if the range is unknown. The release store pairs with the acquire load in from_library().
  std::atomic<std::uintptr_t> end = 0;
};
Known known_library;

Extent object_around(void* address) {
  struct Search {
    void* address;
    Extent found{};
  } search{address};
  const auto visit = [](dl_phdr_info* object, std::size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    const Extent extent = extent_of(*object);
    if (!extent.holds(wanted.address)) return 0;
    wanted.found = extent;
    return 1;
  };
  dl_iterate_phdr(visit, &search);
  return search.found;
}

// Returns an address inside the MPI library. It is that of a function which only the MPI library
// defines: some tools define PMPI_Init and the MPI-IO functions themselves.
void* within_library() {
  return find_behind_weft("PMPI_Get_library_version");
}

}  // namespace

Extent extent_of(const dl_phdr_info& object) {
  Extent extent{UINTPTR_MAX, 0};
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    extent.begin = std::min(extent.begin, object.dlpi_addr + segment.p_vaddr);
    extent.end = std::max(extent.end, object.dlpi_addr + segment.p_vaddr + segment.p_memsz);
  }
  return extent;
}

Extent library_extent() {
  return check_family() ? object_around(within_library()) : Extent();
}

// Stores the MPI library's address range, by which Weft recognises calls that the MPI library makes
// internally. If the MPI library contains its own Fortran binding, calls from Fortran code of the
// application come from the same range. In that case nothing is stored, and every call counts as
// the application's.
void note_library() {
  void* const within = within_library();
  if (!within) return;
  const Extent library = object_around(within);
  if (library.holds(find_behind_weft("mpi_init_"))) return;
  known_library.begin = library.begin;
  known_library.end.store(library.end, std::memory_order_release);
}

std::string file_of(void* address) {
  Dl_info info;
  if (!address || !dladdr(address, &info)) return "";
  const char* slash = std::strrchr(info.dli_fname, '/');
  return slash ? slash + 1 : info.dli_fname;
}

bool is_fortran_binding(const void* address) {
  const std::string file = file_of(const_cast<void*>(address));
  const auto named = [&](const char* part) { return file.find(part) != std::string::npos; };
  return named("fort") || named("mpifh") || named("usempi");
}

namespace {

// Returns the name by which programs are linked to the object that contains `address` (DT_SONAME);
// "" if unknown. The name of its file may be another one, such as libmpi.so.
std::string linked_name_of(void* address) {
  const link_map* const object = address ? object_of(address) : nullptr;
  const char* const name = object ? LoadedObject(*object).linked_name() : nullptr;
  return name ? name : "";
}

bool of_this_family(const std::string& file) {
  for (const char* name : kLibraryNames)
    if (file.compare(0, std::strlen(name), name) == 0) return true;
  // Some distributions give MPICH's library other names, such as libmpich.so.12 or libpmpi.so.12.
  // The version number then decides.
  return file.find(".so.12") != std::string::npos && std::string(WEFT_FAMILY) == "mpich";
}

}  // namespace

void bind_now() {
  // A static local variable is used instead of std::call_once, which would make a system call to
  // wake waiting threads even if there are none.
  [[maybe_unused]] static const bool bound = (bind_next_calls(find), true);
  // The look-up is repeated if the MPI library was not loaded at the first attempt.
  if (!next_calls.Init) bind_next_calls(find);
}

bool from_library(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  const auto end = known_library.end.load(std::memory_order_acquire);
  return address < end && address >= known_library.begin;
}

void missing_call(CallId id) {
  say(std::string(call_name(id)) + " is not in the MPI library of this program");
  std::abort();
}

Result<bool> check_family() {
  void* const within = within_library();
  const std::string file = file_of(within);
  if (file.empty()) return Error{"no MPI library found in this process"};
  if (!of_this_family(file) && !of_this_family(linked_name_of(within)))
    return Error{"this program runs with " + file + ", but Weft was loaded for " +
                 kLibraryNames[0] + ": use 'weft run --mpi ...' to name the right one"};
  return true;
}

}  // namespace weft
