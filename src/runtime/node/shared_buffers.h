// Describes the application's buffers to other processes, if they lie in shared memory.
#pragma once

#include <span>

#include "runtime/node/reach.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"

namespace weft {

// The description of this rank's buffers for a direct schedule, computed once for all its calls
// except for the addresses.
class BuffersToShow {
 public:
  BuffersToShow() = default;
  // by_kernel: the kernel may copy what cannot be seen otherwise.
  BuffersToShow(const Schedule& direct, bool by_kernel);

  // all_ranks: those of the call, sorted as in MPI_COMM_WORLD. use: how often these buffers are
  // used.
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
