#include "runtime/call/loaded_library.h"

#include <link.h>

#include <cstring>
#include <string>
#include <string_view>

namespace weft {

void* loaded_library(const char* name) {
  struct Search {
    const char* name;
    std::string path;
  } search{name, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* one, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const char* const slash = std::strrchr(one->dlpi_name, '/');
        const std::string_view file = slash ? slash + 1 : one->dlpi_name;
        if (!file.starts_with(wanted.name)) return 0;
        wanted.path = one->dlpi_name;
        return 1;
      },
      &search);
  return search.path.empty() ? nullptr : dlopen(search.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace weft
