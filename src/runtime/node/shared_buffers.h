// Describes the application's buffers to other processes of the node, which may access them in
// place.
#pragma once

#include <span>

#include "runtime/node/reach.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"

namespace weft {

// Describes this rank's buffers of a collective to the other ranks, which use them in place. The
// description is computed once for all calls with the same schedule; only the addresses change.
class BuffersToShow {
 public:
  BuffersToShow() = default;
  // direct: the schedule that uses buffers in place. by_kernel: whether the kernel may copy from
  // buffers that are not accessible otherwise.
  BuffersToShow(const Schedule& direct, bool by_kernel);

  // Returns the description for one call. all_ranks: the call's ranks in MPI_COMM_WORLD, sorted.
  // use: whether these buffers are used once or repeatedly.
  PublishedBuffers in(const Call& call, std::span<const int> all_ranks,
                      ProcessMemory::Use use) const;

 private:
  struct Part {
    bool is_used = false;
    Location origin{};  // the place in the buffer from which other ranks count offsets
    Range bytes{};      // range in bytes from the beginning of the buffer
  };
  static Part part(const Shape& shape, const Location& origin);
  ShownBuffer shown(const Part& part, const Call& call, std::span<const int> all_ranks,
                    ProcessMemory::Use use) const;

  bool plain_ = false, by_kernel_ = false;
  Part input_, result_;
};

}  // namespace weft
