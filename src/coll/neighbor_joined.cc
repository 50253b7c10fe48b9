// Neighborhood collectives that send few messages between nodes. With `joined`, one message carries
// everything from the ranks of one node to those of another. Each of a node's ranks sends and
// receives the messages of some of the other nodes. With `partly-joined`, one message carries
// everything from one rank to another node. In an allgather or allgatherv, where a rank sends the
// same block to all its neighbours, a message has the block once. The ranks of a node write and
// read the messages in its shared memory. It suits short blocks. Bienz, Gropp, Olson, JPDC 130,
// 2019 (three steps, and two); Collom, Li, Bienz, EuroMPI 2023
#include <algorithm>
#include <map>
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
      : b_(b), s_(b.shape()), nodes_(*s_.nodes), here_(node_of(s_)), joins_(joins) {
    add_edges();
    for (auto* messages : {&out_, &in_})
      for (auto& [ends, message] : *messages) lay_out(message);
    for (auto& [ends, message] : out_) message.at = memory(message.bytes);
    for (auto& [ends, message] : in_)
      message.at = stays(message) ? out_.at(ends).at : memory(message.bytes);
  }

  void run() {
    if (out_.empty() && in_.empty()) return copy_to_self(b_);
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
    const auto [source, destination, block, bytes, offset] = part;
    if (source < 0 || destination < 0 || source == destination || bytes == 0) return;
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
    for (Part& part : message.parts) {
      const bool is_there = gives_one_block() && part.source == last;
      part.offset = is_there ? message.bytes - part.bytes : message.bytes;
      if (!is_there) message.bytes += part.bytes;
      last = part.source;
    }
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
    const auto first = std::find_if(message.parts.begin(), message.parts.end(),
                                    [&](const Part& part) { return part.source == s_.rank; });
    if (first == message.parts.end()) return;
    Packer packer(b_, Packer::Way::pack, message.at + first->offset);
    packer.add(outgoing(s_, first->block));
    for (auto part = first + 1; part != message.parts.end() && part->source == s_.rank; ++part)
      if (!gives_one_block()) packer.add(outgoing(s_, part->block));
    packer.finish();
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
      b_.copy({message.at + part.offset, part.bytes, Unit::byte}, incoming(s_, part.block));
    }
  }

  Builder& b_;
  const Shape& s_;
  const Nodes& nodes_;
  const int here_;
  const Joins joins_;
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
