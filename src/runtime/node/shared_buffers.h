// Describes the application's buffers to other processes that may access them.
#pragma once

#include <span>

#include "runtime/node/reach.h"
#include "schedule/schedule.h"
#include "transport/mpi/call.h"

namespace weft {

// The description of this rank's buffers for a direct schedule, by which other ranks use these
// buffers in place. It is computed once for all calls, except for the addresses.
class BuffersToShow {
 public:
  BuffersToShow() = default;
  // by_kernel: the kernel may copy buffers that are not accessible otherwise.
  BuffersToShow(const Schedule& direct, bool by_kernel);

  // Returns the description with the call's addresses. all_ranks: the call's ranks in
  // MPI_COMM_WORLD, sorted. use: how often these buffers are used.
  PublishedBuffers in(const Call& call, std::span<const int> all_ranks,
                      ProcessMemory::Use use) const;

 private:
  struct Part {
    bool is_used = false;
    Location origin{};  // the location from which other ranks count offsets
    Range bytes{};      // range in bytes from the beginning of the buffer
  };
  static Part part(const Shape& shape, const Location& origin);
  ShownBuffer shown(const Part& part, const Call& call, std::span<const int> all_ranks,
                    ProcessMemory::Use use) const;

  bool plain_ = false, by_kernel_ = false;
  Part input_, result_;
};

}  // namespace weft
