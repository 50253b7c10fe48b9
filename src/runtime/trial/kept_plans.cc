// Gathers the results of all ranks on rank 0, which writes them. An allreduce of their sizes comes
// first, so that a job without results needs nothing else. It uses collectives only, because MPICH
// (5.0.2) has hung with MPI_ANY_SOURCE on several nodes with several ranks each.
#include "runtime/trial/kept_plans.h"

#include <cstdint>
#include <vector>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/comm/internal_communicators.h"

namespace weft {
namespace {

struct Texts {
  std::vector<int> bytes, begins;  // size and offset of each rank's text in `all`, in bytes
  std::string all;
};

// Gathers the sizes of the ranks' texts on rank 0. bytes: the size of this rank's text. On rank 0,
// the result has the sizes, and memory for all texts.
Texts room_for_texts(int bytes, MPI_Comm comm) {
  int rank = 0, ranks = 1;
  library_calls.Comm_rank(comm, &rank);
  library_calls.Comm_size(comm, &ranks);
  Texts texts;
  if (rank == 0) texts.bytes.resize(static_cast<std::size_t>(ranks));
  library_calls.Gather(&bytes, sizeof bytes, handles.byte, texts.bytes.data(), sizeof bytes,
                       handles.byte, 0, comm);
  std::size_t end = 0;
  for (const int of_rank : texts.bytes) {
    texts.begins.push_back(static_cast<int>(end));
    end += static_cast<std::size_t>(of_rank);
  }
  texts.all.resize(end);
  return texts;
}

}  // namespace

PlanCache::Written keep_plans(PlanCache& plans, const std::string& own) {
  const MPI_Comm comm = common();
  if (comm == handles.comm_null) return plans.write(own);
  const auto bytes = static_cast<std::int64_t>(own.size());
  std::int64_t bytes_of_all = 0;
  const int code =
      library_calls.Allreduce(&bytes, &bytes_of_all, 1, handles.int64, handles.sum, comm);
  if (code != MPI_SUCCESS) return {};
  if (bytes_of_all == 0) return plans.write("");
  const auto count = static_cast<int>(bytes);
  Texts texts = room_for_texts(count, comm);
  library_calls.Gatherv(own.data(), count, handles.byte, texts.all.data(), texts.bytes.data(),
                        texts.begins.data(), handles.byte, 0, comm);
  return plans.write(texts.all);
}

}  // namespace weft
