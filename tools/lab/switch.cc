// weft-switch DELAY_NS PORT...: an Ethernet switch in user space that keeps every frame for a
// while, for `weft lab run --delay`. Why not the kernel's netem: many kernels are built without it.
// A port is a network interface whose other end is a node's. Writes "ready" once it listens on all,
// and goes on until it is killed; 1: an error, on stderr.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

// TCP segments come in frames of up to 64 KiB, each preceded by the header that the kernel needs to
// divide it later (PACKET_VNET_HDR). Its struct virtio_net_hdr cannot be used, since no C++
// compiler accepts its header file.
constexpr std::size_t kHeader_bytes = 10;
constexpr std::size_t kMostFrame_bytes = kHeader_bytes + ETHER_HDR_LEN + (1 << 16);
constexpr int kPortBuffer_bytes = 8 << 20;

using Bytes = std::shared_ptr<const std::vector<char>>;  // header of PACKET_VNET_HDR and frame
using Address = std::array<std::uint8_t, ETHER_ADDR_LEN>;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "weft-switch: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

std::int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000L + now.tv_nsec;
}

struct Port {
  int socket = -1;
  std::deque<Bytes> full;  // frames for which the interface had no room
};

struct Waiting {
  std::int64_t due_ns;
  std::size_t from;  // number of the port
  Bytes bytes;
};

void set(int socket, int level, int option, int value, const std::string& what) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0) fail(what);
}

int listen_on(const char* interface) {
  const int socket = ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
  if (socket < 0) fail("packet socket");
  set(socket, SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
  set(socket, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
  // The buffers are as large as the system permits; frames that do not fit are lost, and TCP sends
  // them again.
  for (const int option : {SO_RCVBUF, SO_RCVBUFFORCE, SO_SNDBUF, SO_SNDBUFFORCE})
    setsockopt(socket, SOL_SOCKET, option, &kPortBuffer_bytes, sizeof kPortBuffer_bytes);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
  if (address.sll_ifindex == 0) fail(interface);
  if (bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail(interface);
  return socket;
}

class Switch {
 public:
  Switch(std::int64_t delay_ns, const std::vector<const char*>& interfaces) : delay_ns_(delay_ns) {
    for (const char* interface : interfaces) {
      ports_.push_back({listen_on(interface), {}});
      polled_.push_back({ports_.back().socket, POLLIN, 0});
    }
  }

  [[noreturn]] void run() {
    for (;;) {
      wait();
      for (std::size_t port = 0; port < ports_.size(); ++port) {
        if (polled_[port].revents & POLLIN) receive(port);
        if (polled_[port].revents & POLLOUT) resume(port);
      }
      for (; !waiting_.empty() && waiting_.front().due_ns <= now_ns(); waiting_.pop_front())
        forward(waiting_.front());
    }
  }

 private:
  // Waits until a frame arrives or is due, or an interface has room again.
  void wait() {
    timespec left{};
    if (!waiting_.empty()) {
      const std::int64_t left_ns = std::max<std::int64_t>(waiting_.front().due_ns - now_ns(), 0);
      left = {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    }
    for (std::size_t port = 0; port < ports_.size(); ++port)
      polled_[port].events = ports_[port].full.empty() ? POLLIN : POLLIN | POLLOUT;
    const timespec* const until = waiting_.empty() ? nullptr : &left;
    if (ppoll(polled_.data(), polled_.size(), until, nullptr) < 0 && errno != EINTR) fail("poll");
  }

  void receive(std::size_t port) {
    static std::array<char, kMostFrame_bytes> room;
    for (;;) {
      iovec vector{room.data(), room.size()};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(timespec))> control{};
      msghdr message{};
      message.msg_iov = &vector;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t bytes = recvmsg(ports_[port].socket, &message, MSG_TRUNC);
      if (bytes < 0) return;  // no frame is left, or the interface is down
      if (static_cast<std::size_t>(bytes) > room.size()) continue;  // not an Ethernet frame
      if (static_cast<std::size_t>(bytes) < kHeader_bytes + ETHER_HDR_LEN) continue;
      const std::int64_t due_ns = arrived_ns(message) + delay_ns_;
      waiting_.push_back(
          {due_ns, port, std::make_shared<std::vector<char>>(room.data(), room.data() + bytes)});
    }
  }

  // Returns a frame's time of arrival. The system stamps frames by a clock that may be changed.
  static std::int64_t arrived_ns(const msghdr& message) {
    const std::int64_t now = now_ns();
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SO_TIMESTAMPNS) return now;
    timespec stamp;
    std::memcpy(&stamp, CMSG_DATA(header), sizeof stamp);
    const std::int64_t stamp_ns = stamp.tv_sec * 1'000'000'000L + stamp.tv_nsec;
    constexpr std::int64_t kLongest_ns = 1'000'000'000;
    return now - std::clamp<std::int64_t>(now_ns(CLOCK_REALTIME) - stamp_ns, 0, kLongest_ns);
  }

  static Address address_at(const std::vector<char>& bytes, std::size_t offset) {
    Address address;
    std::memcpy(address.data(), bytes.data() + kHeader_bytes + offset, address.size());
    return address;
  }

  // Forwards a frame to the port at which its receiver was seen; to all others if it was not seen.
  void forward(const Waiting& frame) {
    port_of_[address_at(*frame.bytes, ETHER_ADDR_LEN)] = frame.from;
    const auto known = port_of_.find(address_at(*frame.bytes, 0));
    if (known != port_of_.end()) return send(known->second, frame.bytes);
    for (std::size_t port = 0; port < ports_.size(); ++port)
      if (port != frame.from) send(port, frame.bytes);
  }

  void send(std::size_t port, const Bytes& bytes) {
    std::deque<Bytes>& full = ports_[port].full;
    if (full.empty() && fits(port, *bytes)) return;
    full.push_back(bytes);
  }

  void resume(std::size_t port) {
    std::deque<Bytes>& full = ports_[port].full;
    while (!full.empty() && fits(port, *full.front())) full.pop_front();
  }

  // Returns false if the frame must be sent later. A frame that the interface rejects is lost, as
  // on a wire.
  bool fits(std::size_t port, const std::vector<char>& bytes) {
    const ssize_t sent = ::send(ports_[port].socket, bytes.data(), bytes.size(), 0);
    return sent >= 0 || (errno != EAGAIN && errno != ENOBUFS);
  }

  const std::int64_t delay_ns_;
  std::vector<Port> ports_;
  std::vector<pollfd> polled_;   // one per port
  std::deque<Waiting> waiting_;  // in order of arrival, and thus of due_ns
  std::map<Address, std::size_t> port_of_;
};

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::fputs("usage: weft-switch DELAY_NS PORT PORT...\n", stderr);
    return 1;
  }
  prctl(PR_SET_TIMERSLACK, 1);  // by default a sleep may take 50 us longer
  Switch it(std::strtoll(words[1], nullptr, 10), {words + 2, words + count});
  std::puts("ready");
  std::fflush(stdout);
  it.run();
}
