// Chooses by which instructions long data are copied. memmove() uses `rep movsb` for long data if
// the processor reports that this is fast. AMD processors report so as well, but are slow unless
// both buffers are aligned alike, which glibc considers only from 2.40 on: an allreduce of 8 MiB
// took 1.4 times as long. But if other cores have read the destination before, `rep movsb`
// invalidates their cache lines without fetching them, in as little as a quarter of the time
// (docs/decisions.md).
#include "shm/copy.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <cstddef>

#include "base/processor.h"
#include "shm/kernels/kernels.h"

namespace weft {
namespace {

using Copy = void (*)(std::byte* to, const std::byte* from, std::int64_t bytes);

#ifdef __x86_64__
// Returns whether the processor reports that `rep movsb` is fast (AMD64 manual, volume 3: CPUID 7,
// EBX bit 9, ERMS). AMD processors do since Zen 3.
bool has_fast_strings() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 9)) != 0;
}

void copy_string(std::byte* to, const std::byte* from, std::int64_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
#endif

// Returns the function that copies by vector instructions; nullptr if memmove() is as fast.
Copy vectors() {
#ifdef __x86_64__
  if (processor() == Processor::amd)
    return __builtin_cpu_supports("avx2") ? avx2::copy : baseline::copy;
#endif
  return nullptr;
}

Copy string() {
#ifdef __x86_64__
  if (processor() == Processor::amd && has_fast_strings()) return copy_string;
#endif
  return vectors();
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
