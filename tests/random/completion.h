// Every MPI function that completes requests, behind one function.
#pragma once

#include <mpi.h>

#include <vector>

namespace random_programs {

enum class Completion {
  wait,
  waitall,
  waitany,
  waitsome,
  test,
  testall,
  testany,
  testsome,
  get_status,
};
inline constexpr int kCompletions = static_cast<int>(Completion::get_status) + 1;

// Completes some of the requests; if the function is a test, perhaps none. Returns their indices.
// `statuses` has an element for each request.
std::vector<int> complete(Completion way, std::vector<MPI_Request>* requests,
                          std::vector<MPI_Status>* statuses);

}  // namespace random_programs
