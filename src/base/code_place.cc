// Finds the file of a code address by the program headers. dladdr() is not used, because it would
// also search all symbols of the file.
#include "base/code_place.h"

#include <link.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace weft {

Place place_of(std::uintptr_t address) {
  struct Search {
    std::uintptr_t address;
    Place place;
  } search{address, {"?", address}};
  const auto visit = [](dl_phdr_info* object, std::size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& segment = object->dlpi_phdr[i];
      const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
      if (segment.p_type != PT_LOAD || wanted.address < begin ||
          wanted.address >= begin + segment.p_memsz)
        continue;
      const char* const name = object->dlpi_name && *object->dlpi_name ? object->dlpi_name : "";
      std::snprintf(wanted.place.file, sizeof wanted.place.file, "%s", name);
      wanted.place.offset = wanted.address - object->dlpi_addr;
      return 1;
    }
    return 0;
  };
  dl_iterate_phdr(visit, &search);
  return search.place;
}

Binding binding_of(const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  if (std::strstr(path, "mpi4py")) return Binding::python;
  for (const char* part : {"libmpifort", "libmpichfort", "libmpich", "libmpi.so", "libmpi_mpifh",
                           "libmpi_usempi", "libmpi_abi", "libpmpi", "libweft-"})
    if (std::strncmp(name, part, std::strlen(part)) == 0) return Binding::fortran;
  return Binding::none;
}

}  // namespace weft
