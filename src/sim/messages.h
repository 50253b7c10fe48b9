// Messages: matches sends and receives, and transfers each message: within a node by copies that
// the ranks' threads make, between nodes over links. A short message is delivered once it is
// written; a longer one waits for its receive (the eager and rendezvous protocols of MPI
// libraries).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/events.h"
#include "sim/fabric.h"
#include "sim/machine.h"

namespace weft::sim {

// Told: an object that is told when the state of a rank's messages changes. at_us: the time from
// which the change matters.
class Told {
 public:
  virtual ~Told() = default;
  virtual void tell(int rank, double at_us) = 0;
};

class Messages {
 public:
  using Id = std::uint32_t;
  enum class Side : std::uint8_t { send, recv };

  // A side's need: what the sender or the receiver of a message must wait for before it can
  // continue: nothing, a certain time, or a copy by its thread.
  struct Need {
    enum class Kind : std::uint8_t { nothing, time, copy } kind = Kind::nothing;
    // If kind is `time`: the side cannot continue before this time, as far as is known.
    double at_us = kNever;
    double bytes = 0;  // if kind is `copy`: number of bytes to copy
  };

  // domain_of_rank: the NUMA domain of each rank, numbered over all nodes. told: is told when the
  // state of a rank's messages changes.
  Messages(const Machine& machine, std::vector<int> node_of_rank, std::vector<int> domain_of_rank,
           int nodes, Told& told);

  // Posts a send or receive of `rank`. debt_us: the time that the rank's core must spend beyond
  // `now_us`, to which the call adds.
  Id post(Side side, int rank, int peer, double bytes, double now_us, double& debt_us);
  // Returns what this side of the message needs next. It also progresses transfers that move only
  // while this side attends to them; the processor time for that is added to debt_us.
  Need need(Id id, Side side, double now_us, double& debt_us);
  // Records that the copy which this side of the message needed was made.
  void copied(Id id, Side side, double now_us);
  // Records that this side has completed the message. Processor time for that is added to debt_us.
  void finish(Id id, Side side, double& debt_us);

  std::uint64_t messages() const { return messages_; }
  double bytes() const { return bytes_; }

 private:
  // Says how a message travels. eager: its data go with it. taken: the receiver copies them from
  // the sender's memory. cells: both ranks copy, by way of shared memory. network: the network
  // carries it by itself. stream: over TCP, which either side must progress.
  enum class Way : std::uint8_t { eager, taken, cells, network, stream };
  struct Piece {
    double at_us;  // time at which the piece arrives
    double bytes;
  };
  struct Message {
    int from = 0, to = 0;
    Way way = Way::eager;
    // How many of its two sides (sender, receiver) have not completed it.
    std::uint8_t unfinished = 2;
    double bytes = 0;
    // Time at which the send was posted and the sender's core was done with it.
    double posted_us = kNever;
    double ready_us = kNever;    // time from which the receiver can continue
    double sent_us = kNever;     // time from which the sender can continue
    double into = 0, out = 0;    // bytes copied into and out of shared-memory cells
    double asked_us = kNever;    // time at which the receive was posted
    double granted_us = kNever;  // time from which the sender may send data (way stream)
    bool is_granted = false;
    // Whether the first piece has left the sender, and whether it has arrived (way stream).
    bool has_left = false, has_come = false;
    // Pieces that are in transit, or have arrived and were not taken yet (way stream).
    std::deque<Piece> pieces;
  };
  struct Waiting {
    int peer;
    Id id;
    Side side;
  };

  Message& at(Id id) { return messages_of_[id]; }
  bool same_node(const Message& m) const;
  Way way(const Message& m) const;
  Id add();
  void sent(Message& m);
  void matched(Message& m);
  double room(const Message& m) const;
  bool is_short(const Message& m) const;
  double word(int from, int to, double ready_us);
  Need push(Message& m, double now_us, double& debt_us);
  Need pull(Message& m, double now_us, double& debt_us);

  const Machine& machine_;
  const std::vector<int> node_of_rank_, domain_of_rank_;
  NetworkLinks links_;
  Told& told_;
  std::vector<Message> messages_of_;
  std::vector<Id> free_;
  // Messages of which only one side was posted, indexed by receiving rank.
  std::vector<std::vector<Waiting>> waiting_;
  std::uint64_t messages_ = 0;
  double bytes_ = 0;
};

}  // namespace weft::sim
