// Calls the MPI functions that complete requests.
#include "completion.h"

#include <numeric>

namespace random_programs {
namespace {

using Requests = std::vector<MPI_Request>;
using Statuses = std::vector<MPI_Status>;
using Places = std::vector<int>;

int length(const Requests& requests) {
  return static_cast<int>(requests.size());
}

Places everything(const Requests& requests) {
  Places result(requests.size());
  std::iota(result.begin(), result.end(), 0);
  return result;
}

Places one_by_one(bool tests, Requests& requests, Statuses& statuses) {
  Places result;
  for (int i = 0; i < length(requests); ++i) {
    int done = 1;
    if (tests) MPI_Test(&requests[i], &done, &statuses[i]);
    if (!tests) MPI_Wait(&requests[i], &statuses[i]);
    if (done) result.push_back(i);
  }
  return result;
}

Places any(bool tests, Requests& requests, Statuses& statuses) {
  int index = MPI_UNDEFINED, done = 1;
  MPI_Status status;
  if (tests) MPI_Testany(length(requests), requests.data(), &index, &done, &status);
  if (!tests) MPI_Waitany(length(requests), requests.data(), &index, &status);
  if (!done || index == MPI_UNDEFINED) return {};
  statuses[index] = status;
  return {index};
}

Places some(bool tests, Requests& requests, Statuses& statuses) {
  Places indices(requests.size());
  Statuses in_order(requests.size());
  int done = 0;
  if (tests)
    MPI_Testsome(length(requests), requests.data(), &done, indices.data(), in_order.data());
  if (!tests)
    MPI_Waitsome(length(requests), requests.data(), &done, indices.data(), in_order.data());
  indices.resize(done == MPI_UNDEFINED ? 0 : done);
  for (std::size_t i = 0; i < indices.size(); ++i) statuses[indices[i]] = in_order[i];
  return indices;
}

Places by_status(Requests& requests, Statuses& statuses) {
  Places result;
  for (int i = 0; i < length(requests); ++i) {
    int done = 0;
    MPI_Request_get_status(requests[i], &done, &statuses[i]);
    if (!done) continue;
    // After this call has found a persistent request complete, MPICH's MPI_Wait leaves an empty
    // status.
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    result.push_back(i);
  }
  return result;
}

}  // namespace

std::vector<int> complete(Completion way, Requests* requests, Statuses* statuses) {
  int done = 0;
  switch (way) {
    case Completion::wait:
      return one_by_one(false, *requests, *statuses);
    case Completion::test:
      return one_by_one(true, *requests, *statuses);
    case Completion::waitall:
      MPI_Waitall(length(*requests), requests->data(), statuses->data());
      return everything(*requests);
    case Completion::testall:
      MPI_Testall(length(*requests), requests->data(), &done, statuses->data());
      return done ? everything(*requests) : Places{};
    case Completion::waitany:
      return any(false, *requests, *statuses);
    case Completion::testany:
      return any(true, *requests, *statuses);
    case Completion::waitsome:
      return some(false, *requests, *statuses);
    case Completion::testsome:
      return some(true, *requests, *statuses);
    case Completion::get_status:
      return by_status(*requests, *statuses);
  }
  return {};
}

}  // namespace random_programs
