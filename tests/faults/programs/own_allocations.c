// Counts the memory that Weft itself has allocated and not freed, whatever the MPI library
// allocates. An allocation is Weft's if the call comes from Weft's own code, which contains its C++
// runtime. In front of such a block lie its size, the distance to the beginning of the allocation,
// and a mark that is no valid chunk size of glibc.
#define _GNU_SOURCE
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void* block);

static const uint64_t kMark = 0xf007f007f007f007;
struct front {
  uint32_t size, back;
  uint64_t mark;
};

static uintptr_t begin, end;  // borders of Weft's code and data
static atomic_long count, bytes;

static int note_weft(struct dl_phdr_info* object, size_t size, void* data) {
  if (!strstr(object->dlpi_name, "libweft-")) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD) continue;
    const uintptr_t at = object->dlpi_addr + segment->p_vaddr;
    if (!begin || at < begin) begin = at;
    if (at + segment->p_memsz > end) end = at + segment->p_memsz;
  }
  return 1;
}

__attribute__((constructor)) static void find_weft(void) {
  dl_iterate_phdr(note_weft, NULL);
}

static void* counted(char* block, size_t back, size_t size) {
  if (!block) return NULL;
  const struct front front = {(uint32_t)size, (uint32_t)back, kMark};
  memcpy(block + back - sizeof front, &front, sizeof front);
  atomic_fetch_add(&count, 1);
  atomic_fetch_add(&bytes, (long)size);
  return block + back;
}

static int of_weft(void* caller) {
  return (uintptr_t)caller >= begin && (uintptr_t)caller < end;
}

void* malloc(size_t size) {
  if (!of_weft(__builtin_return_address(0))) return __libc_malloc(size);
  return counted(__libc_malloc(size + sizeof(struct front)), sizeof(struct front), size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  if (!of_weft(__builtin_return_address(0))) return __libc_memalign(alignment, size);
  return counted(__libc_memalign(alignment, size + alignment), alignment, size);
}

void free(void* block) {
  if (!block) return;
  struct front front;
  memcpy(&front, (char*)block - sizeof front, sizeof front);
  if (front.mark != kMark) {
    __libc_free(block);
    return;
  }
  atomic_fetch_sub(&count, 1);
  atomic_fetch_sub(&bytes, (long)front.size);
  front.mark = 0;
  memcpy((char*)block - sizeof front, &front, sizeof front);
  __libc_free((char*)block - front.back);
}

void own_allocations(long* alive, long* alive_bytes) {
  *alive = count;
  *alive_bytes = bytes;
}
