#include "advise/buffers.h"

#include "advise/extents.h"

namespace weft::advise {
namespace {

struct Buffers {
  Bytes read, written;
};
Buffers kept[kKept];  // the buffers of the latest kKept calls, as a ring
std::uint32_t calls = 0;

bool overlap(const Bytes& one, const Bytes& other) {
  if (one.count == 0 || other.count == 0) return false;
  if (one.count == SIZE_MAX || other.count == SIZE_MAX) return true;
  return one.begin < other.begin + other.count && other.begin < one.begin + one.count;
}

bool clash(const Buffers& one, const Buffers& other) {
  return overlap(one.written, other.written) || overlap(one.written, other.read) ||
         overlap(one.read, other.written);
}

}  // namespace

std::uint16_t apart_from_those_before(const Call& call, const Communicator& comm) {
  const Buffers mine{read_by_mpi(call, comm), received(call, comm)};
  std::uint16_t apart = 0;
  while (apart < kKept && apart < calls && !clash(mine, kept[(calls - 1 - apart) % kKept])) ++apart;
  kept[calls++ % kKept] = mine;
  return apart;
}

}  // namespace weft::advise
