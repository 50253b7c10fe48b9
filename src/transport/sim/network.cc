// Implements SimNetwork: matches messages, moves their data, and computes their times from latency
// and bandwidth.
#include "transport/sim/network.h"

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

bool is_contiguous(const SimType* type) {
  return type == nullptr || (type->segments.size() == 1 && type->segments[0].offset == 0 &&
                             type->segments[0].bytes == type->extent);
}

// Copies one contiguous piece of an element. The cases of a constant size let the compiler emit
// single instructions.
void copy_segment(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 4)
    std::memcpy(to, from, 4);
  else if (bytes == 8)
    std::memcpy(to, from, 8);
  else
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

std::int64_t SimData::payload_bytes() const {
  return type == nullptr ? count : type->layout(count).bytes();
}

void SimData::pack(std::byte* to) const {
  if (count == 0) return;
  if (is_contiguous(type)) {
    std::memcpy(to, origin, static_cast<std::size_t>(payload_bytes()));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for (const SimSegment& segment : type->segments) {
      copy_segment(to, origin + i * type->extent + segment.offset, segment.bytes);
      to += segment.bytes;
    }
  }
}

void SimData::unpack(const std::byte* from) const {
  if (count == 0) return;
  if (is_contiguous(type)) {
    std::memcpy(origin, from, static_cast<std::size_t>(payload_bytes()));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for (const SimSegment& segment : type->segments) {
      copy_segment(origin + i * type->extent + segment.offset, from, segment.bytes);
      from += segment.bytes;
    }
  }
}

void SimNetwork::wait_until(int rank, double time_us) {
  nodes_[rank].clock_us = std::max(nodes_[rank].clock_us, time_us);
}

SimNetwork::Ticket SimNetwork::post_send(int operation, int from, int to, const SimData& data) {
  Node& node = nodes_[from];
  node.clock_us += model_.message_overhead_us;
  const auto bytes = data.payload_bytes();
  const double begin_us = std::max(node.clock_us, node.link_free_us);
  node.link_free_us = begin_us + static_cast<double>(bytes) / model_.bandwidth_bytes_per_us;
  Post post;
  post.data = data;
  post.done_us = node.link_free_us;
  post.arrival_us = node.link_free_us + model_.latency_us;
  posts_.push_back(post);
  ++messages_;
  bytes_ += bytes;
  Channel& channel = channels_[{operation, from, to}];
  channel.sends.push_back(posts_.size() - 1);
  match(channel);
  return posts_.size() - 1;
}

SimNetwork::Ticket SimNetwork::post_recv(int operation, int from, int to, const SimData& data) {
  nodes_[to].clock_us += model_.message_overhead_us;
  Post post;
  post.data = data;
  post.done_us = nodes_[to].clock_us;
  posts_.push_back(post);
  Channel& channel = channels_[{operation, from, to}];
  channel.recvs.push_back(posts_.size() - 1);
  match(channel);
  return posts_.size() - 1;
}

void SimNetwork::match(Channel& channel) {
  if (channel.sends.empty() || channel.recvs.empty()) return;
  Post& send = posts_[channel.sends.front()];
  Post& recv = posts_[channel.recvs.front()];
  channel.sends.pop_front();
  channel.recvs.pop_front();
  recv.done_us = std::max(recv.done_us, send.arrival_us);
  send.matched = recv.matched = true;
  recv.truncated = send.data.payload_bytes() != recv.data.payload_bytes();
  if (recv.truncated) return;
  packed_.resize(static_cast<std::size_t>(send.data.payload_bytes()));
  send.data.pack(packed_.data());
  recv.data.unpack(packed_.data());
}

}  // namespace weft
