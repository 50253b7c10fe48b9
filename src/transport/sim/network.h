// SimNetwork: matches messages, moves their data and computes when they arrive. Times are fixed
// when a message is posted. They depend only on the posting rank's clock and link, so that the
// order in which the simulator visits the ranks does not matter.
#pragma once

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "transport/sim/model.h"

namespace weft {

// SimData: the memory of an operand: its address, datatype and number of elements.
struct SimData {
  std::byte* origin = nullptr;
  const SimType* type = nullptr;  // datatype of the elements; nullptr for bytes
  std::int64_t count = 0;

  std::int64_t payload_bytes() const;
  void pack(std::byte* to) const;
  void unpack(const std::byte* from) const;
};

class SimNetwork {
 public:
  using Ticket = std::size_t;

  SimNetwork(SimModel model, int ranks) : model_(model), nodes_(static_cast<std::size_t>(ranks)) {}

  double clock_us(int rank) const { return nodes_[rank].clock_us; }
  void work(int rank, double duration_us) { nodes_[rank].clock_us += duration_us; }
  void wait_until(int rank, double time_us);

  // Post a message from rank `from` to rank `to`. operation: the number of the collective, which
  // separates the messages of several collectives in progress.
  Ticket post_send(int operation, int from, int to, const SimData& data);
  Ticket post_recv(int operation, int from, int to, const SimData& data);

  bool is_matched(Ticket ticket) const { return posts_[ticket].matched; }
  bool is_truncated(Ticket ticket) const { return posts_[ticket].truncated; }
  double done_us(Ticket ticket) const { return posts_[ticket].done_us; }

  std::int64_t messages() const { return messages_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Node {
    double clock_us = 0;
    double link_free_us = 0;
  };
  struct Post {
    SimData data;
    double arrival_us = 0;  // virtual time in microseconds at which a sent message arrives
    double done_us = 0;
    bool matched = false;
    bool truncated = false;
  };
  struct Channel {
    std::deque<Ticket> sends;  // sends that no receive has matched yet
    std::deque<Ticket> recvs;  // receives that no send has matched yet
  };

  void match(Channel& channel);

  SimModel model_;
  std::vector<Node> nodes_;
  std::vector<Post> posts_;
  // Indexed by operation, sender and receiver.
  std::map<std::tuple<int, int, int>, Channel> channels_;
  std::vector<std::byte> packed_;
  std::int64_t messages_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace weft
