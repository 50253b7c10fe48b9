#include "library/opened_deep.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/loaded_object.h"
#include "library/linker.h"
#include "library/looked_up.h"
#include "library/search.h"

namespace weft {
namespace {

// The number of objects that are loaded now, and the number that were ever loaded in this process.
// Because dl_iterate_phdr() visits objects in the order of loading, the difference between two
// counts tells which objects are new.
struct Objects {
  std::size_t now = 0;
  unsigned long long ever = 0;
};

Objects count_objects() {
  Objects objects;
  const auto visit = [](dl_phdr_info* object, std::size_t, void* data) {
    auto& counted = *static_cast<Objects*>(data);
    ++counted.now;
    counted.ever = object->dlpi_adds;
    return 0;
  };
  dl_iterate_phdr(visit, &objects);
  return objects;
}

// The number of threads that have called dlopen() with RTLD_DEEPBIND and have not called dlopen()
// or dlsym() since.
std::atomic<int> openers{0};
std::atomic<unsigned long long> objects_before{0};
constinit thread_local bool has_opened = false;

// The part of a loaded object that the dynamic linker made read-only (RELRO). lets_write() makes it
// writable; the destructor makes it read-only again.
class ReadOnlyPart {
 public:
  explicit ReadOnlyPart(const dl_phdr_info& object) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      const auto& segment = object.dlpi_phdr[i];
      if (segment.p_type != PT_GNU_RELRO) continue;
      const std::uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
      extent_ = {begin / page * page, (begin + segment.p_memsz) / page * page};
    }
  }
  ~ReadOnlyPart() {
    if (writable_) protect(PROT_READ);
  }
  ReadOnlyPart(const ReadOnlyPart&) = delete;
  ReadOnlyPart& operator=(const ReadOnlyPart&) = delete;

  bool lets_write(const void* place) {
    if (!extent_.holds(place)) return true;
    if (!writable_) writable_ = protect(PROT_READ | PROT_WRITE);
    return writable_;
  }

 private:
  bool protect(int access) const {
    return mprotect(reinterpret_cast<void*>(extent_.begin), extent_.end - extent_.begin, access) ==
           0;
  }

  Extent extent_{};
  bool writable_ = false;
};

std::optional<LoadedObject> loaded(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i)
    if (const auto& segment = object.dlpi_phdr[i]; segment.p_type == PT_DYNAMIC)
      return LoadedObject(object.dlpi_addr,
                          reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr));
  return {};
}

bool is_the_linkers(const void* function) {
  return function == reinterpret_cast<const void*>(linker().dlsym) ||
         function == reinterpret_cast<const void*>(linker().dlopen);
}

void bind(const dl_phdr_info& info, const Extent& library) {
  const auto object = loaded(info);
  const Extent own = extent_of(info);
  if (!object || own.begin == library.begin) return;
  ReadOnlyPart read_only(info);
  object->for_each_slot([&](const LoadedObject::Slot& slot) {
    if (!is_shown(slot.symbol)) return;
    const void* const now = __atomic_load_n(slot.place, __ATOMIC_RELAXED);
    const bool waits = slot.may_wait && own.holds(now);
    if (!waits && !library.holds(now) && !is_the_linkers(now)) return;
    if (read_only.lets_write(slot.place))
      __atomic_store_n(slot.place, first_definition(slot.symbol), __ATOMIC_RELEASE);
  });
}

void bind_since(unsigned long long before) {
  struct Search {
    std::size_t skipped;
    Extent library;
  } search{};
  const Objects objects = count_objects();
  const auto came = objects.ever - before;
  search.skipped = came < objects.now ? objects.now - came : 0;
  search.library = library_extent();
  const auto visit = [](dl_phdr_info* object, std::size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    if (wanted.skipped > 0)
      --wanted.skipped;
    else
      bind(*object, wanted.library);
    return 0;
  };
  dl_iterate_phdr(visit, &search);
}

}  // namespace

void note_opening(int mode) {
  if (!(mode & RTLD_DEEPBIND) || has_opened) return;
  if (openers.fetch_add(1) == 0) objects_before.store(count_objects().ever);
  has_opened = true;
}

void bind_what_was_opened() {
  if (openers.load(std::memory_order_acquire) == 0) [[likely]]
    return;
  bind_since(objects_before.load());
  if (!has_opened) return;
  has_opened = false;
  openers.fetch_sub(1);
}

}  // namespace weft
