// Compares Weft's copies with memmove(), for every length and alignment, with guard zones around
// them.
#include "shm/copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "shm/kernels/kernels.h"

namespace weft {
namespace {

using Copy = void (*)(std::byte* to, const std::byte* from, std::int64_t bytes);

std::vector<Copy> copies() {
  std::vector<Copy> all = {[](auto... all) { copy_bytes(all...); },
                           [](auto... all) { copy_bytes(all..., Reader::others); }, baseline::copy};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) all.push_back(avx2::copy);
#endif
  return all;
}

std::vector<std::byte> numbered(std::int64_t bytes, int first) {
  std::vector<std::byte> all(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::byte>((first + static_cast<int>(i % 251)) % 256);
  return all;
}

TEST(Copies, WriteWhatIsToBeWrittenAndNothingElse) {
  constexpr std::int64_t kRoom = 128;
  std::vector<std::int64_t> lengths(300);
  std::iota(lengths.begin(), lengths.end(), 256);
  for (const std::int64_t length : {4095, 4096, 4097, 65536, 100'003}) lengths.push_back(length);
  for (const std::int64_t bytes : lengths) {
    const std::vector<std::byte> source = numbered(bytes + kRoom, 1);
    for (const std::int64_t from : {0, 1, 16, 63}) {
      for (const std::int64_t to : {0, 8, 31, 64, 127}) {
        for (const Copy copy : copies()) {
          std::vector<std::byte> target = numbered(bytes + kRoom, 100), wanted = target;
          std::memmove(wanted.data() + to, source.data() + from, static_cast<std::size_t>(bytes));
          copy(target.data() + to, source.data() + from, bytes);
          ASSERT_EQ(target, wanted) << bytes << " bytes, from " << from << " to " << to;
        }
      }
    }
  }
}

TEST(Copies, MayOverlap) {
  for (const std::int64_t bytes : {100, 5000, 70'000}) {
    for (const std::int64_t distance : {-4096, -100, -1, 0, 1, 64, 4999}) {
      const std::int64_t from = 5000, to = from + distance;
      for (const Reader reader : {Reader::self, Reader::others}) {
        std::vector<std::byte> memory = numbered(bytes + 10'000, 7), wanted = memory;
        std::memmove(wanted.data() + to, wanted.data() + from, static_cast<std::size_t>(bytes));
        copy_bytes(memory.data() + to, memory.data() + from, bytes, reader);
        ASSERT_EQ(memory, wanted) << bytes << " bytes, " << distance << " further";
      }
    }
  }
}

}  // namespace
}  // namespace weft
