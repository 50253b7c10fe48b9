// The ranks of each node exchange lists of their edges, which all have one length, so that none has
// to be told before. Meanwhile an allreduce adds up whether both ends of each edge agree, and
// whether all ranks' lists and data fit. Both are by messages, as comparisons are (comparison.cc).
#include "runtime/adaptive/telling_edges.h"

#include <utility>

#include "coll/algorithm_names.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "transport/mpi/kernels.h"

namespace weft {
namespace {

// The most edges of a rank, outgoing and incoming ones together.
constexpr std::size_t kMostEdges = 128;
constexpr std::size_t kWordsOfList = 2 + 2 * kMostEdges;

// The words that messages send and receive. They are in a base class so that they exist before the
// constructor of the other base class uses their addresses.
struct ToldWords {
  EdgeList own, all;
};

Call call_over(const Shape& shape, ToldWords& words) {
  Call call;
  call.kind = shape.kind;
  call.sendbuf = words.own.data();
  call.recvbuf = words.all.data();
  call.sendtype = call.recvtype = reduces(shape.kind) ? handles.int64 : handles.byte;
  return call;
}

// Returns the shape of an allreduce of so many words between all ranks.
Shape among_all(const Communicator& communicator, std::size_t words) {
  constexpr std::int64_t kBytes = sizeof(std::int64_t);
  Shape shape;
  shape.kind = Kind::allreduce;
  shape.rank = communicator.rank;
  shape.size = communicator.size;
  shape.send = shape.recv = {static_cast<std::int64_t>(words), kBytes, kBytes, 0, kBytes, true};
  return shape;
}

std::shared_ptr<const Schedule> schedule_of(const Shape& shape) {
  using algorithm_names::kLinear, algorithm_names::kRecursiveDoubling;
  const Algorithm* const algorithm =
      reduces(shape.kind) ? kRecursiveDoubling.of(shape.kind) : kLinear.of(shape.kind);
  return std::make_shared<const Schedule>(build(*algorithm, shape));
}

// Returns whether this rank shares memory with others, and its list and data are short enough. If
// they are on all ranks, the data of each node fit into its memory.
bool fits(const Shape& shape, const NodeEdges::OfRank& own) {
  const NodeEdges of_rank{.ranks = {own}};
  return ranks_here(shape) > 1 && own.out.size() + own.in.size() <= kMostEdges &&
         fits_memory(of_rank);
}

}  // namespace

class TellingEdges::Messages final : private ToldWords, public CollectiveOperation {
 public:
  Messages(CallId id, std::shared_ptr<Communicator> communicator, const Shape& shape, int tag,
           EdgeList own, std::size_t words_of_all)
      : ToldWords{std::move(own), EdgeList(words_of_all)},
        CollectiveOperation(
            id, call_over(shape, *this), std::move(communicator), schedule_of(shape),
            reduces(shape.kind) ? find_kernel(Element::int64, Operator::sum) : nullptr, tag) {}

  bool has_failed() const { return error_code() != MPI_SUCCESS; }
  const EdgeList& own_words() const { return own; }
  const EdgeList& all_words() const { return all; }
};

TellingEdges::TellingEdges(Runtime& runtime, CallId id, Communicator& communicator,
                           const Shape& shape)
    : shape_(shape) {
  const NodeEdges::OfRank own = edges_of(shape);
  EdgeList list = listed(own);
  list.resize(kWordsOfList);
  const Shape among = among_node(shape, kWordsOfList);
  lists_ =
      begin(runtime, id, communicator, among, std::move(list), kWordsOfList * among.sources.size());
  EdgeList sums{disagreement(shape, own), fits(shape, own) ? 0 : 1, own.bytes_out(),
                static_cast<std::int64_t>(own.out.size())};
  const std::size_t words = sums.size();
  sums_ = begin(runtime, id, communicator, among_all(communicator, words), std::move(sums), words);
}

TellingEdges::~TellingEdges() = default;

std::shared_ptr<TellingEdges::Messages> TellingEdges::begin(Runtime& runtime, CallId id,
                                                            Communicator& communicator,
                                                            const Shape& shape, EdgeList own,
                                                            std::size_t words_of_all) {
  communicator.retain_for_request();
  const int tag = communicator.tags.of_single(communicator.next_in_sequence());
  auto messages = std::make_shared<Messages>(id, communicator.shared_from_this(), shape, tag,
                                             std::move(own), words_of_all);
  if (!messages->advance()) runtime.progress.submit(messages, true);
  return messages;
}

bool TellingEdges::is_over() const {
  return lists_->done() && sums_->done();
}

std::shared_ptr<const NodeEdges> TellingEdges::edges() const {
  const EdgeList& sums = sums_->all_words();
  if (lists_->has_failed() || sums_->has_failed() || sums[0] != 0 || sums[1] != 0) return nullptr;
  auto edges = std::make_shared<NodeEdges>();
  edges->ranks = edges_in(shape_, lists_->own_words(), lists_->all_words());
  edges->all_bytes = sums[2];
  edges->all_edges = sums[3];
  edges->may_have_changed = true;
  return edges;
}

}  // namespace weft
