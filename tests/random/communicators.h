// Communicators: the kinds of communicators a thread's programs run on, made once for a job.
// Why: groups, topologies and orders of ranks differ in what a collective means on them.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "place.h"
#include "program.h"

namespace random_programs {

// Collective over MPI_COMM_WORLD, the making and the end.
class Communicators {
 public:
  explicit Communicators(bool world_itself);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  // Null where this rank is no member.
  const conformance::Place* at(int comm) const { return places_[comm].get(); }

 private:
  void keep(int comm, MPI_Comm made);

  std::vector<std::unique_ptr<conformance::Place>> places_;
};

}  // namespace random_programs
