// Communicators: the kinds of communicators on which a thread's programs run, made once for a job.
// Groups, topologies and orders of ranks change the result of a collective.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "place.h"
#include "program.h"

namespace random_programs {

// All ranks of MPI_COMM_WORLD must construct and destroy it together.
class Communicators {
 public:
  explicit Communicators(bool world_itself);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  // Returns nullptr if this rank is not a member.
  const conformance::Place* at(int comm) const { return places_[comm].get(); }

 private:
  void keep(int comm, MPI_Comm made);

  std::vector<std::unique_ptr<conformance::Place>> places_;
};

}  // namespace random_programs
