// Implements the comparisons of variants (engine and algorithm) between the ranks as allreduces.
// They use messages even if the ranks share memory, because collectives use the shared buffers in a
// fixed order.
#include "runtime/adaptive/comparison.h"

#include "coll/algorithm_names.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "transport/mpi/kernels.h"

namespace weft {
namespace {

Call call_over(ComparedWords& words) {
  Call call;
  call.kind = Kind::allreduce;
  call.sendbuf = words.own.data();
  call.recvbuf = words.greatest.data();
  call.sendtype = call.recvtype = handles.int64;
  return call;
}

std::shared_ptr<const Schedule> schedule_of(Communicator& communicator) {
  constexpr std::int64_t kBytes = sizeof(std::int64_t);
  Shape shape;
  shape.kind = Kind::allreduce;
  shape.rank = communicator.rank;
  shape.size = communicator.size;
  shape.send = shape.recv = {std::tuple_size_v<Learner::Words>, kBytes, kBytes, 0, kBytes, true};
  const Algorithm* algorithm = algorithm_names::kRecursiveDoubling.of(shape.kind);
  return communicator.schedule(shape, algorithm, [&] { return build(*algorithm, shape); });
}

}  // namespace

Comparison::Comparison(CallId id, std::shared_ptr<Communicator> communicator,
                       std::shared_ptr<const Schedule> schedule, int tag,
                       const Learner::Words& words)
    : ComparedWords{words, {}},
      CollectiveOperation(id, call_over(*this), std::move(communicator), std::move(schedule),
                          find_kernel(Element::int64, Operator::max), tag) {}

std::shared_ptr<Comparison> begin_comparison(Runtime& runtime, CallId id,
                                             Communicator& communicator,
                                             const Learner::Words& words) {
  communicator.retain_for_request();
  const int tag = communicator.tags.of_single(communicator.next_in_sequence());
  auto comparison = std::make_shared<Comparison>(id, communicator.shared_from_this(),
                                                 schedule_of(communicator), tag, words);
  if (!comparison->advance()) runtime.progress.submit(comparison, true);
  return comparison;
}

}  // namespace weft
