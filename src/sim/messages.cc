// Implements Messages: computes what each kind of transfer costs both sides, and when each may
// continue.
#include "sim/messages.h"

#include <algorithm>
#include <utility>

namespace weft::sim {
namespace {

constexpr double kPiece_bytes = 64 * 1024, kKib_bytes = 1024;

std::size_t place(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

Messages::Messages(const Machine& machine, std::vector<int> node_of_rank,
                   std::vector<int> domain_of_rank, int nodes, Told& told)
    : machine_(machine),
      node_of_rank_(std::move(node_of_rank)),
      domain_of_rank_(std::move(domain_of_rank)),
      links_(machine.network, nodes),
      told_(told),
      waiting_(node_of_rank_.size()) {}

bool Messages::same_node(const Message& m) const {
  return node_of_rank_[place(m.from)] == node_of_rank_[place(m.to)];
}

Messages::Way Messages::way(const Message& m) const {
  if (!same_node(m)) return machine_.network.window_bytes > 0 ? Way::stream : Way::network;
  if (m.bytes <= static_cast<double>(machine_.eager_bytes)) return Way::eager;
  return machine_.copies == 1 ? Way::taken : Way::cells;
}

Messages::Id Messages::add() {
  if (free_.empty()) {
    messages_of_.emplace_back();
    return static_cast<Id>(messages_of_.size() - 1);
  }
  const Id id = free_.back();
  free_.pop_back();
  messages_of_[id] = {};
  return id;
}

Messages::Id Messages::post(Side side, int rank, int peer, double bytes, double now_us,
                            double& debt_us) {
  const int to = side == Side::send ? peer : rank;
  auto& waiting = waiting_[place(to)];
  const int from = side == Side::send ? rank : peer;
  const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const Waiting& other) {
    return other.peer == from && other.side != side;
  });
  const bool is_matched = found != waiting.end();
  const Id id = is_matched ? found->id : add();
  if (is_matched)
    waiting.erase(found);
  else
    waiting.push_back({from, id, side});
  Message& m = at(id);
  m.from = from;
  m.to = to;
  m.bytes = bytes;
  m.way = way(m);
  debt_us += same_node(m) ? machine_.message_us : machine_.network.overhead_us;
  if (side == Side::send) {
    ++messages_;
    bytes_ += bytes;
    if (m.way == Way::eager) debt_us += bytes * machine_.copies_of_copy(bytes) / machine_.core_copy;
    m.posted_us = now_us + debt_us;
    sent(m);
  } else {
    m.asked_us = now_us + debt_us;
  }
  if (is_matched) matched(m);
  return id;
}

// Handles a send when it is posted, whether or not a receive matches it already.
void Messages::sent(Message& m) {
  if (m.way == Way::eager) {
    m.ready_us = m.posted_us + machine_.cache_us;
    m.sent_us = m.posted_us;
  } else if (m.way == Way::stream) {
    if (is_short(m))
      m.granted_us = m.posted_us;
    else
      m.ready_us = word(m.from, m.to, m.posted_us);
  } else if (m.way == Way::network && is_short(m)) {
    double link_us = 0;
    m.ready_us = links_.deliver(node_of_rank_[place(m.from)], node_of_rank_[place(m.to)], m.bytes,
                                m.posted_us, &link_us);
    m.sent_us = m.posted_us;
  }
}

bool Messages::is_short(const Message& m) const {
  return m.bytes <= static_cast<double>(machine_.network.eager_bytes);
}

void Messages::matched(Message& m) {
  if (m.way == Way::taken) {
    m.ready_us = std::max(m.posted_us, m.asked_us) + machine_.cache_us;
  } else if (m.way == Way::network && m.ready_us == kNever) {
    // This is the rendezvous protocol: the sender asks, the receiver answers, then the data are
    // sent.
    const double latency_us = machine_.network.latency_us;
    const double answered_us = std::max(m.posted_us + latency_us, m.asked_us) + latency_us;
    m.ready_us = links_.deliver(node_of_rank_[place(m.from)], node_of_rank_[place(m.to)], m.bytes,
                                answered_us, &m.sent_us);
    told_.tell(m.from, m.sent_us);
  }
  if (m.ready_us < kNever) told_.tell(m.to, m.ready_us);
  if (m.way == Way::stream && is_short(m)) told_.tell(m.to, m.posted_us);
}

// Returns the time at which a short message of the rendezvous protocol arrives: the sender's
// request, or the receiver's answer. It queues behind data on its sender's link.
double Messages::word(int from, int to, double ready_us) {
  constexpr double kBytes = 64;
  double sent_us = 0;
  return links_.deliver(node_of_rank_[place(from)], node_of_rank_[place(to)], kBytes, ready_us,
                        &sent_us);
}

// Progresses the sender's side of a message over TCP: fills the kernel's buffers. Returns what the
// side needs before it can continue.
Messages::Need Messages::push(Message& m, double now_us, double& debt_us) {
  if (m.granted_us > now_us + debt_us) return {Need::Kind::time, m.granted_us, 0};
  const auto window = static_cast<double>(machine_.network.window_bytes);
  const double piece = std::min(kPiece_bytes, window / 4);
  // An empty message is sent as one piece, too.
  while (m.into < m.bytes || !m.has_left) {
    const double bytes = std::min(piece, m.bytes - m.into);
    if (m.into - m.out + bytes > window) return {Need::Kind::time, kNever, 0};
    double link_us = 0;
    const double at_us = links_.deliver(node_of_rank_[place(m.from)], node_of_rank_[place(m.to)],
                                        bytes, now_us + debt_us, &link_us, !m.has_left);
    m.has_left = true;
    m.pieces.push_back({at_us, bytes});
    m.into += bytes;
    debt_us += bytes / kKib_bytes * machine_.network.send_us_per_kib;
    if (m.pieces.size() == 1) told_.tell(m.to, at_us);
  }
  return {};
}

// Progresses the receiver's side of a message over TCP: answers the sender's request, and takes the
// bytes that have arrived. Returns what the side needs before it can continue.
Messages::Need Messages::pull(Message& m, double now_us, double& debt_us) {
  const double latency_us = machine_.network.latency_us;
  if (!is_short(m) && !m.is_granted) {
    if (m.ready_us > now_us + debt_us) return {Need::Kind::time, m.ready_us, 0};
    m.is_granted = true;
    debt_us += machine_.network.overhead_us;
    m.granted_us = word(m.to, m.from, now_us + debt_us);
    told_.tell(m.from, m.granted_us);
  }
  bool took = false;
  while (!m.pieces.empty() && m.pieces.front().at_us <= now_us) {
    m.out += m.pieces.front().bytes;
    debt_us += m.pieces.front().bytes / kKib_bytes * machine_.network.recv_us_per_kib;
    m.pieces.pop_front();
    took = m.has_come = true;
  }
  if (took && m.into < m.bytes) told_.tell(m.from, now_us + debt_us + latency_us);
  if (m.out >= m.bytes && m.has_come) return {};
  return {Need::Kind::time, m.pieces.empty() ? kNever : m.pieces.front().at_us, 0};
}

double Messages::room(const Message& m) const {
  const auto cell = static_cast<double>(machine_.cell_bytes);
  if (m.into - m.out > (machine_.cells - 1) * cell) return 0;
  return std::min(cell, m.bytes - m.into);
}

Messages::Need Messages::need(Id id, Side side, double now_us, double& debt_us) {
  Message& m = at(id);
  const bool sends = side == Side::send;
  if (m.way == Way::stream) return sends ? push(m, now_us, debt_us) : pull(m, now_us, debt_us);
  now_us += debt_us;
  if (m.way == Way::cells) {
    const double bytes =
        sends ? room(m) : std::min(static_cast<double>(machine_.cell_bytes), m.into - m.out);
    const bool is_over = (sends ? m.into : m.out) >= m.bytes;
    if (is_over) return {};
    if (bytes > 0) return {Need::Kind::copy, kNever, bytes};
    return {Need::Kind::time, kNever, 0};
  }
  const double at_us = sends ? m.sent_us : m.ready_us;
  if (at_us > now_us) return {Need::Kind::time, at_us, 0};
  if (sends || m.way != Way::taken || m.out >= m.bytes) return {};
  const bool is_remote = domain_of_rank_[place(m.from)] != domain_of_rank_[place(m.to)];
  const double bytes = m.bytes * machine_.copies_of_copy(m.bytes);
  return {Need::Kind::copy, kNever, bytes * (is_remote ? machine_.remote_cost : 1)};
}

void Messages::copied(Id id, Side side, double now_us) {
  Message& m = at(id);
  const double seen_us = now_us + machine_.cache_us;
  if (m.way == Way::taken) {
    m.out = m.bytes;
    m.sent_us = seen_us;
    told_.tell(m.from, seen_us);
    return;
  }
  const double cell = static_cast<double>(machine_.cell_bytes);
  if (side == Side::send) {
    m.into = std::min(m.bytes, m.into + cell);
    told_.tell(m.to, seen_us);
  } else {
    m.out = std::min(m.into, m.out + cell);
    told_.tell(m.from, seen_us);
  }
}

void Messages::finish(Id id, Side side, double& debt_us) {
  Message& m = at(id);
  if (side == Side::recv && m.way == Way::eager)
    debt_us += m.bytes * machine_.copies_of_copy(m.bytes) / machine_.core_copy;
  const double kib = m.bytes / kKib_bytes;
  if (m.way == Way::network)
    debt_us += kib * (side == Side::send ? machine_.network.send_us_per_kib
                                         : machine_.network.recv_us_per_kib);
  if (side == Side::recv && !same_node(m)) debt_us += machine_.network.overhead_us;
  if (--m.unfinished == 0) free_.push_back(id);
}

}  // namespace weft::sim
