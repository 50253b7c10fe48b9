// Neighborhood collectives that send few messages between nodes. With `joined`, one message carries
// everything from the ranks of one node to those of another. Each of a node's ranks sends and
// receives the messages of some of the other nodes. With `partly-joined`, one message carries
// everything from one rank to another node. In an allgather or allgatherv, where a rank sends the
// same block to all its neighbours, a message has the block once. The ranks of a node write and
// read the messages in its shared memory. It suits short blocks. The ranks of a node have told each
// other their blocks once, perhaps at an earlier call. A block that has another length by now, as
// only its two ends know, travels in a message of its own; its space in the joined message stays
// unused. Joined messages then also have the present length of each block, so that a call whose
// ends disagree fails. Bienz, Gropp, Olson, JPDC 130, 2019 (three steps, and two); Collom, Li,
// Bienz, EuroMPI 2023
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "coll/build_functions.h"
#include "coll/neighbors.h"
#include "coll/packer.h"
#include "schedule/node_edges.h"

namespace weft {
namespace {

enum class Joins { node, rank };

// A block of a neighborhood collective on its way from one rank to another.
struct Part {
  int source = 0, destination = 0;
  // Number of the block among those of its source if it leaves this node, of its destination if it
  // arrives.
  int block = 0;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // place in the message, in bytes
  std::int64_t word = 0;    // place of the length in the message, in bytes
};

// The blocks that travel together in one message, in an order that both nodes know.
struct Message {
  int sender = 0, receiver = 0;
  std::vector<Part> parts;
  std::int64_t bytes = 0;
  Location at{};  // where the message lies in the node's shared memory
};

// Identifies a message: the number of the node or of the rank that sends it, and the number of the
// node that receives it.
using Ends = std::pair<int, int>;
using Messages = std::map<Ends, Message>;

class Joined {
 public:
  Joined(Builder& b, Joins joins)
      : b_(b),
        s_(b.shape()),
        nodes_(*s_.nodes),
        here_(node_of(s_)),
        joins_(joins),
        now_(edges_of(s_)),
        told_(s_.edges->ranks[static_cast<std::size_t>(nodes_.local_rank(s_.rank))]) {
    add_edges();
    for (auto* messages : {&out_, &in_})
      for (auto& [ends, message] : *messages) lay_out(message);
    for (auto& [ends, message] : out_) message.at = memory(message.bytes);
    for (auto& [ends, message] : in_)
      message.at = stays(message) ? out_.at(ends).at : memory(message.bytes);
  }

  void run() {
    if (out_.empty() && in_.empty()) {
      exchange_others();
      return copy_to_self(b_);
    }
    for (const auto& [ends, message] : out_) write(message);
    signal();
    b_.end_round();
    for (const auto& [ends, message] : in_)
      if (!stays(message) && message.receiver == s_.rank)
        b_.recv(message.sender, message.at, message.bytes, Unit::byte);
    for (const auto& [ends, message] : out_)
      if (!stays(message) && message.sender == s_.rank) send(message);
    for (const auto& [ends, message] : in_)
      if (stays(message)) read(message);
    copy_to_self(b_);
    b_.end_round();
    if (receives()) signal();
    for (const auto& [ends, message] : in_)
      if (!stays(message)) read(message);
    b_.end_round();
    exchange_others();
  }

 private:
  bool is_alone() const { return nodes_.ranks_on(here_) == 1; }
  bool stays(const Message& message) const { return message.sender == message.receiver; }
  bool receives() const {
    return std::any_of(in_.begin(), in_.end(), [&](const auto& entry) {
      return !stays(entry.second) && entry.second.receiver == s_.rank;
    });
  }
  bool gives_one_block() const {
    return s_.kind == Kind::neighbor_allgather || s_.kind == Kind::neighbor_allgatherv;
  }

  // Returns the rank on `node` that exchanges the joined messages with node `other`.
  int speaker(int node, int other) const {
    const auto local_rank = static_cast<std::size_t>(other % nodes_.ranks_on(node));
    return nodes_.ranks(node)[local_rank];
  }
  // Returns the rank of `node` that receives the partly joined message which `rank` sends to that
  // node.
  int counterpart(int rank, int node) const {
    const auto local_rank =
        static_cast<std::size_t>(nodes_.local_rank(rank) % nodes_.ranks_on(node));
    return nodes_.ranks(node)[local_rank];
  }

  void add_edges() {
    for (int local_rank = 0; local_rank < nodes_.ranks_on(here_); ++local_rank) {
      const auto place = static_cast<std::size_t>(local_rank);
      const int rank = nodes_.ranks(here_)[place];
      int block = 0;
      for (const Edge& edge : s_.edges->ranks[place].out)
        add(out_, {rank, edge.peer, block++, edge.bytes});
      block = 0;
      for (const Edge& edge : s_.edges->ranks[place].in)
        add(in_, {edge.peer, rank, block++, edge.bytes});
    }
  }

  void add(Messages& messages, const Part& part) {
    const auto& [source, destination, block, bytes, offset, word] = part;
    if (source < 0 || destination < 0 || source == destination) return;
    if (bytes == 0 && !has_lengths()) return;
    const int from = nodes_.of(source), to = nodes_.of(destination);
    const bool of_rank = joins_ == Joins::rank;
    Message& message = messages[{of_rank ? source : from, to}];
    message.parts.push_back(part);
    if (from == to) return;
    message.sender = of_rank ? source : speaker(from, to);
    message.receiver = of_rank ? counterpart(source, to) : speaker(to, from);
  }

  // Sets the order of the blocks in a message and its length. Both nodes sort by source and
  // destination; several blocks between two ranks keep the order of their numbers, which both ranks
  // know.
  void lay_out(Message& message) const {
    std::stable_sort(message.parts.begin(), message.parts.end(), [](const Part& a, const Part& b) {
      return std::pair(a.source, a.destination) < std::pair(b.source, b.destination);
    });
    int last = -1;
    if (has_lengths())
      for (Part& part : message.parts) {
        part.word = message.bytes;
        message.bytes += kWordBytes;
      }
    for (Part& part : message.parts) {
      const bool is_there = gives_one_block() && part.source == last;
      part.offset = is_there ? message.bytes - part.bytes : message.bytes;
      if (!is_there) message.bytes += part.bytes;
      last = part.source;
    }
  }

  // Returns whether the joined messages have the lengths of their blocks.
  bool has_lengths() const { return s_.edges->may_have_changed; }
  static std::uint32_t word_of(const Edge& edge) {
    return static_cast<std::uint32_t>(edge.bytes ^ (edge.bytes >> 32));
  }

  // Return whether this rank's outgoing or incoming block has the length that the ranks of its node
  // have told each other.
  bool gives_as_told(int block) const { return is_as_told(now_.out, told_.out, block); }
  bool takes_as_told(int block) const { return is_as_told(now_.in, told_.in, block); }
  static bool is_as_told(const std::vector<Edge>& now, const std::vector<Edge>& told, int block) {
    const auto place = static_cast<std::size_t>(block);
    return now[place].bytes == told[place].bytes;
  }

  // Sends and receives the blocks that are in no joined message, since they have another length
  // than was told. They follow the joined messages between the same two ranks.
  void exchange_others() {
    for (int block = 0; block < static_cast<int>(now_.in.size()); ++block)
      if (is_other_message(now_.in, block, takes_as_told(block)))
        b_.recv(now_.in[static_cast<std::size_t>(block)].peer, incoming(s_, block));
    for (int block = 0; block < static_cast<int>(now_.out.size()); ++block)
      if (is_other_message(now_.out, block, gives_as_told(block)))
        b_.send(now_.out[static_cast<std::size_t>(block)].peer, outgoing(s_, block));
  }
  bool is_other_message(const std::vector<Edge>& edges, int block, bool is_as_told) const {
    const Edge& edge = edges[static_cast<std::size_t>(block)];
    return !is_as_told && edge.peer >= 0 && edge.peer != s_.rank && edge.bytes > 0;
  }

  // Allocates shared memory for a message. All ranks of the node must make the same calls.
  Location memory(std::int64_t bytes) {
    return is_alone() ? b_.temp(bytes, Unit::byte) : b_.node(bytes);
  }

  // Raises this rank's counter: first when it has written its blocks, and again when its messages
  // have arrived.
  void signal() {
    if (!is_alone()) b_.signal();
  }
  void wait_for(int rank, std::uint32_t value) {
    if (rank != s_.rank) b_.wait(rank, value);
  }

  void write(const Message& message) {
    std::optional<Packer> packer;
    std::int64_t end = 0;
    for (const Part& part : message.parts) {
      if (part.source != s_.rank) continue;
      if (has_lengths())
        b_.tell(message.at + part.word, word_of(now_.out[static_cast<std::size_t>(part.block)]));
      if (!gives_as_told(part.block)) continue;
      const bool is_there = packer && part.offset < end;  // given to another rank, too
      if (is_there) continue;
      if (!packer || part.offset != end) {
        if (packer) packer->finish();
        packer.emplace(b_, Packer::Way::pack, message.at + part.offset);
      }
      packer->add(outgoing(s_, part.block));
      end = part.offset + part.bytes;
    }
    if (packer) packer->finish();
  }

  void send(const Message& message) {
    for (const Part& part : message.parts) wait_for(part.source, 1);
    b_.send(message.receiver, message.at, message.bytes, Unit::byte);
  }

  void read(const Message& message) {
    for (const Part& part : message.parts) {
      if (part.destination != s_.rank) continue;
      if (stays(message))
        wait_for(part.source, 1);
      else
        wait_for(message.receiver, 2);
      if (has_lengths())
        b_.check(part.source, message.at + part.word,
                 word_of(now_.in[static_cast<std::size_t>(part.block)]));
      if (!takes_as_told(part.block)) continue;
      b_.copy({message.at + part.offset, part.bytes, Unit::byte}, incoming(s_, part.block));
    }
  }

  Builder& b_;
  const Shape& s_;
  const Nodes& nodes_;
  const int here_;
  const Joins joins_;
  // This rank's blocks now, and those that it has told the other ranks of its node.
  const NodeEdges::OfRank now_;
  const NodeEdges::OfRank& told_;
  Messages out_, in_;  // outgoing and incoming messages of all ranks of this node
};

}  // namespace

void neighbor_joined(Builder& b) {
  Joined(b, Joins::node).run();
}

void neighbor_partly_joined(Builder& b) {
  Joined(b, Joins::rank).run();
}

}  // namespace weft
