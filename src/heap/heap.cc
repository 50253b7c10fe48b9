// Implements libweft-heap.so, which `weft run --shared-heap` preloads. It takes large allocations
// of the application from memory that the other ranks of the node can access, so that collectives
// on them need no copy. Small allocations come from the C library as usual, and so do large ones
// when that memory is full. The heap follows Li, Hoefler, Snir, NUMA-aware shared-memory collective
// communication for MPI, HPDC 2013.
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "shm/shared_heap.h"

// The C library's own allocation functions, under the names that it exports for libraries that
// replace malloc().
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void* __libc_pvalloc(std::size_t bytes);
void __libc_free(void* block);
}

namespace {

using weft::SharedHeap;

constexpr std::size_t kPage_bytes = 4096;
constexpr std::size_t kNever = SIZE_MAX;

// Returns the size in bytes from which allocations come from the shared heap. Returns SIZE_MAX if
// WEFT_SHARED_HEAP is not set, since a launcher may load this library, too.
std::size_t threshold_bytes() {
  static const std::size_t threshold = [] {
    const char* text = std::getenv("WEFT_SHARED_HEAP");
    std::size_t bytes = 0;
    if (!text) return kNever;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), bytes);
    return error == std::errc() && *end == '\0' && bytes >= kPage_bytes ? bytes : kNever;
  }();
  return threshold;
}

enum class State : int { none, being_made, there, refused };
std::atomic<State> state{State::none};
std::atomic<SharedHeap*> heap{nullptr};

// Creates the shared heap. Returns nullptr if that fails, or if another call has begun to create
// it. All allocations come from the C library until then.
SharedHeap* make_heap() {
  State expected = State::none;
  if (!state.compare_exchange_strong(expected, State::being_made)) return nullptr;
  auto made = SharedHeap::create();
  if (made) heap.store(*made, std::memory_order_release);
  state.store(made ? State::there : State::refused);
  return made ? *made : nullptr;
}

SharedHeap* heap_for(std::size_t bytes) {
  if (bytes < threshold_bytes() || bytes > PTRDIFF_MAX) return nullptr;
  SharedHeap* const there = heap.load(std::memory_order_acquire);
  return there || state.load() != State::none ? there : make_heap();
}

SharedHeap* heap_of(const void* block) {
  SharedHeap* const there = heap.load(std::memory_order_acquire);
  return there && there->contains(block) ? there : nullptr;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  SharedHeap* const from = heap_for(bytes);
  void* const block =
      from ? from->allocate(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(alignment))
           : nullptr;
  return block ? block : __libc_memalign(alignment, bytes);
}

void* move(SharedHeap& from, void* block, std::size_t bytes) {
  const auto before = static_cast<std::size_t>(from.bytes_of(block));
  void* const moved = std::malloc(bytes);
  if (!moved) return nullptr;
  std::memcpy(moved, block, before < bytes ? before : bytes);
  from.release(block);
  return moved;
}

bool is_power_of_two(std::size_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}

using UsableSize = std::size_t (*)(void*);

}  // namespace

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

// Returns the shared heap, after creating it if necessary; nullptr if that fails. Weft's main
// library calls this function, and shares the heap with the other ranks.
WEFT_EXPORT SharedHeap* weft_shared_heap() {
  SharedHeap* const there = heap.load(std::memory_order_acquire);
  return there ? there : make_heap();
}

WEFT_EXPORT void* malloc(std::size_t bytes) noexcept {
  SharedHeap* const from = heap_for(bytes);
  void* const block = from ? from->allocate(static_cast<std::int64_t>(bytes), 1) : nullptr;
  return block ? block : __libc_malloc(bytes);
}

WEFT_EXPORT void* calloc(std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  const bool too_many = __builtin_mul_overflow(count, bytes, &all);
  SharedHeap* const from = too_many ? nullptr : heap_for(all);
  void* const block = from ? from->allocate_zeroed(static_cast<std::int64_t>(all)) : nullptr;
  return block ? block : __libc_calloc(count, bytes);
}

WEFT_EXPORT void free(void* block) noexcept {
  if (SharedHeap* const from = heap_of(block))
    from->release(block);
  else
    __libc_free(block);
}

// Changes the size of a block. Only a block that was allocated in the shared heap grows there.
// Others stay in the C library's heap even if they become large, since the C library extends them
// without a copy.
WEFT_EXPORT void* realloc(void* block, std::size_t bytes) noexcept {
  SharedHeap* const from = heap_of(block);
  if (!block) return malloc(bytes);
  if (!from) return __libc_realloc(block, bytes);
  if (from->resize(block, static_cast<std::int64_t>(bytes))) return block;
  if (bytes > 0) return move(*from, block, bytes);
  from->release(block);
  return nullptr;
}

WEFT_EXPORT void* reallocarray(void* block, std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all)) return realloc(block, all);
  errno = ENOMEM;
  return nullptr;
}

WEFT_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return is_power_of_two(alignment) ? allocate(bytes, alignment)
                                    : __libc_memalign(alignment, bytes);
}

WEFT_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  if (is_power_of_two(alignment)) return allocate(bytes, alignment);
  errno = EINVAL;
  return nullptr;
}

WEFT_EXPORT int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int errno_before = errno;
  void* const made = allocate(bytes, alignment);
  errno = errno_before;
  if (!made) return ENOMEM;
  *block = made;
  return 0;
}

WEFT_EXPORT void* valloc(std::size_t bytes) noexcept {
  return allocate(bytes, kPage_bytes);
}

WEFT_EXPORT void* pvalloc(std::size_t bytes) noexcept {
  return heap_for(bytes) ? allocate(bytes, kPage_bytes) : __libc_pvalloc(bytes);
}

WEFT_EXPORT std::size_t malloc_usable_size(void* block) noexcept {
  if (SharedHeap* const from = heap_of(block))
    return static_cast<std::size_t>(from->bytes_of(block));
  static const auto librarys = reinterpret_cast<UsableSize>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  return librarys ? librarys(block) : 0;
}
