// What a process shows of the application's buffers, where they lie in memory that it shares.
#pragma once

#include <span>

#include "schedule/schedule.h"
#include "shm/process_memory.h"
#include "shm/shared_ranges.h"
#include "transport/mpi/call.h"

namespace weft {

// All that this process shares, to its end.
SharedRanges& shared_ranges();

// What a direct schedule shows of this rank's buffers, worked out once for all its calls, but for
// the addresses.
class BuffersToShow {
 public:
  BuffersToShow() = default;
  // by_kernel: what cannot be seen otherwise, the kernel may copy.
  BuffersToShow(const Schedule& direct, bool by_kernel);

  // all_ranks: of the call, by their numbers in MPI_COMM_WORLD, in order. use: of these buffers.
  ShownBuffers in(const Call& call, std::span<const int> all_ranks, ProcessMemory::Use use) const;

 private:
  struct Part {
    bool is_used = false;
    Location origin{};  // what others count from
    Range bytes{};      // from the buffer's own beginning
  };
  static Part part(const Shape& shape, const Location& origin);
  ShownBuffer shown(const Part& part, const Call& call, std::span<const int> all_ranks,
                    ProcessMemory::Use use) const;

  bool plain_ = false, by_kernel_ = false;
  Part input_, result_;
};

}  // namespace weft
