// LoadedObject reads the dynamic section of an object file that is loaded into this process. It
// calls no function of the dynamic linker. It therefore works before any constructor has run, and
// can tell to which definition dlsym() itself is bound.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace weft {

class LoadedObject {
 public:
  LoadedObject(ElfW(Addr) base, const ElfW(Dyn) * dynamic);
  explicit LoadedObject(const link_map& map) : LoadedObject(map.l_addr, map.l_ld) {}

  // Returns the name by which programs are linked to this object (DT_SONAME); nullptr if it has
  // none.
  const char* linked_name() const { return has_name_ ? strings_ + name_ : nullptr; }

  // Returns the symbol's address in this object; nullptr if the object does not define it.
  void* defined(const char* symbol) const;

  // Describes a pointer in this object that the dynamic linker sets to the address of a symbol,
  // such as an entry of the global offset table.
  struct Slot {
    const char* symbol;
    void** place;
    // True if the dynamic linker may set the pointer only at the first call (lazy binding).
    bool may_wait;
  };
  template <class Visit>
  void for_each_slot(Visit visit) const {
    for (const Relocations& table : {all_, calls_})
      for (const auto* entry = table.first; entry != table.first + table.count; ++entry)
        if (const Slot slot = slot_of(*entry, table.first == calls_.first); slot.symbol)
          visit(slot);
  }

 private:
  struct Relocations {
    const ElfW(Rela) * first;
    std::size_t count;
  };
  template <class Pointer>
  void point(Pointer& member, ElfW(Addr) address) const;
  Slot slot_of(const ElfW(Rela) & entry, bool may_wait) const;

  ElfW(Addr) base_;
  const char* strings_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const std::uint32_t* hashes_ = nullptr;
  ElfW(Xword) name_ = 0;
  bool has_name_ = false;
  Relocations all_{}, calls_{};
};

}  // namespace weft
