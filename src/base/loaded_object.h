// LoadedObject: an object file loaded into this process, read by its dynamic section. It calls no
// function of the dynamic linker, so that it works before any constructor, and can tell what those
// functions themselves resolve to.
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

  // Returns the name by which programs are linked to it (DT_SONAME); nullptr if it has none.
  const char* linked_name() const { return has_name_ ? strings_ + name_ : nullptr; }

  // Returns the symbol's address in this object; nullptr if the object does not define it.
  void* defined(const char* symbol) const;

  // An address that the dynamic linker fills with the address of a symbol which another object
  // defines.
  struct Slot {
    const char* symbol;
    void** place;
    bool may_wait;  // the address may be filled only at the first call, if the object is bound
                    // lazily
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
