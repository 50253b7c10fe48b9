#include "select/own_site.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/own_code.h"
#include "base/started.h"
#include "select/selector.h"

namespace weft {
namespace {

SiteFile read_own() {
  Dl_info own{};
  if (std::getenv(kStartedVariable) || dladdr(__ehdr_start, &own) == 0) return {};
  return read_site_file(site_file_of(own.dli_fname), check_algorithms);
}

}  // namespace

// The object is never destroyed, since threads may use it while the process exits.
const SiteFile& own_site() {
  static const SiteFile& site = *new SiteFile(read_own());
  return site;
}

}  // namespace weft
