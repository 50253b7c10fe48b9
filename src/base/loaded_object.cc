// Finds symbols of a loaded object by the GNU hash table. It compares names without strcmp(),
// because a sanitizer may replace that function and look up its own version before it is ready.
#include "base/loaded_object.h"

namespace weft {
namespace {

std::uint32_t hash_of(const char* symbol) {
  std::uint32_t hash = 5381;
  for (; *symbol; ++symbol) hash = hash * 33 + static_cast<unsigned char>(*symbol);
  return hash;
}

bool equal(const char* one, const char* other) {
  while (*one && *one == *other) ++one, ++other;
  return *one == *other;
}

std::uint64_t symbol_index(const ElfW(Rela) & entry) {
  if constexpr (sizeof(ElfW(Addr)) == 8)
    return ELF64_R_SYM(entry.r_info);
  else
    return ELF32_R_SYM(entry.r_info);
}

}  // namespace

// Sets a pointer from an address in the dynamic section. Depending on the processor and the object,
// the dynamic linker has already added the load address to it or not.
template <class Pointer>
void LoadedObject::point(Pointer& member, ElfW(Addr) address) const {
  member = reinterpret_cast<Pointer>(address < base_ ? base_ + address : address);
}

LoadedObject::LoadedObject(ElfW(Addr) base, const ElfW(Dyn) * dynamic) : base_(base) {
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    const auto value = entry->d_un.d_val;
    switch (entry->d_tag) {
      case DT_STRTAB:
        point(strings_, value);
        break;
      case DT_SYMTAB:
        point(symbols_, value);
        break;
      case DT_GNU_HASH:
        point(hashes_, value);
        break;
      case DT_RELA:
        point(all_.first, value);
        break;
      case DT_RELASZ:
        all_.count = value / sizeof(ElfW(Rela));
        break;
      case DT_JMPREL:
        point(calls_.first, value);
        break;
      case DT_PLTRELSZ:
        calls_.count = value / sizeof(ElfW(Rela));
        break;
      case DT_SONAME:
        name_ = value;
        has_name_ = true;
        break;
    }
  }
}

void* LoadedObject::defined(const char* symbol) const {
  if (!hashes_ || !symbols_ || !strings_) return nullptr;
  const std::uint32_t buckets = hashes_[0], first = hashes_[1], words = hashes_[2];
  if (buckets == 0) return nullptr;
  const auto* const bucket = hashes_ + 4 + words * (sizeof(ElfW(Addr)) / sizeof *hashes_);
  const auto* const chain = bucket + buckets;
  const std::uint32_t hash = hash_of(symbol);
  for (std::uint32_t i = bucket[hash % buckets]; i >= first; ++i) {
    const std::uint32_t other = chain[i - first];
    const ElfW(Sym)& entry = symbols_[i];
    if ((other | 1) == (hash | 1) && entry.st_shndx != SHN_UNDEF &&
        equal(strings_ + entry.st_name, symbol))
      return reinterpret_cast<void*>(base_ + entry.st_value);
    if (other & 1) break;
  }
  return nullptr;
}

LoadedObject::Slot LoadedObject::slot_of(const ElfW(Rela) & entry, bool may_wait) const {
  const auto index = symbol_index(entry);
  if (index == 0 || entry.r_addend != 0 || symbols_[index].st_shndx != SHN_UNDEF) return {};
  return {strings_ + symbols_[index].st_name, reinterpret_cast<void**>(base_ + entry.r_offset),
          may_wait};
}

}  // namespace weft
