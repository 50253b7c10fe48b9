// Why not memmove() alone: for long data it takes `rep movsb` where the processor says that this is
// fast. AMD's say so, too, but are slow unless both sides lie alike, which glibc knows from 2.40 on
// only: an allreduce of 8 MiB took 1.4 times as long. But where others have read what lay there
// before, `rep movsb` takes their lines away without fetching them, in as little as a quarter of
// the time (docs/decisions.md).
#include "shm/copy.h"

#include <cstddef>

#include "base/processor.h"
#include "shm/kernels/kernels.h"

namespace weft {
namespace {

using Copy = void (*)(std::byte* to, const std::byte* from, std::int64_t bytes);

#ifdef __x86_64__
void copy_string(std::byte* to, const std::byte* from, std::int64_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
#endif

// nullptr: memmove() is as good.
Copy vectors() {
#ifdef __x86_64__
  if (processor() == Processor::amd)
    return __builtin_cpu_supports("avx2") ? avx2::copy : baseline::copy;
#endif
  return nullptr;
}

Copy string() {
#ifdef __x86_64__
  if (processor() == Processor::amd) return copy_string;
#endif
  return nullptr;
}

}  // namespace

void copy_long(void* to, const void* from, std::int64_t bytes, Reader reader) {
  static const Copy by_vectors = vectors(), by_string = string();
  const Copy copy = reader == Reader::others ? by_string : by_vectors;
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  const bool apart = target + bytes <= source || source + bytes <= target;
  if (copy && apart)
    copy(target, source, bytes);
  else
    std::memmove(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace weft
