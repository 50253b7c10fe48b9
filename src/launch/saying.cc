#include "launch/saying.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <functional>

#include "base/first_rank.h"

namespace weft::launch {
namespace {

constexpr int kRefused = 2;

// The time in microseconds within which all ranks of a job are started on a node. The rank that
// prints the message blocks the other ranks' messages for this time.
constexpr useconds_t kTogetherUs = 500'000;

void say(const std::string& message, const std::string& of_whom) {
  std::fprintf(stderr, "weft: %s%s\n", message.c_str(), of_whom.c_str());
}

std::string in_words(int ranks) {
  return ranks > 1 ? " (" + std::to_string(ranks) + " ranks)" : "";
}

std::string node() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return " (node " + std::string(name.data()) + ")";
}

// Returns whether this process is the one that prints the message for all ranks of the node. The
// process binds a socket name that only one process of the node can hold at a time, and that is
// released when the process ends. The name contains the ID of the parent, the launcher, so that
// jobs do not disturb each other.
bool has_the_word(const std::string& message) {
  const std::string name = "weft-" + std::to_string(getuid()) + "-" + std::to_string(getppid()) +
                           "-" + std::to_string(std::hash<std::string>{}(message));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int taken = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return bind(taken, reinterpret_cast<const sockaddr*>(&address), size) == 0 || errno != EADDRINUSE;
}

}  // namespace

void say_once(const std::string& message) {
  if (is_first_rank()) say(message, in_words(launched_ranks()));
}

void say_why_it_ends(const std::string& message, Of whom) {
  const char* const rank = launched_rank();
  if (!rank) return say(message, "");
  if (whom == Of::job && !is_first_rank()) usleep(kTogetherUs / 2);
  if (has_the_word(message))
    say(message, whom == Of::node  ? node()
                 : is_first_rank() ? in_words(launched_ranks())
                                   : " (rank " + std::string(rank) + ")");
  // This rank must not end yet. The launcher kills the other ranks when the first one ends, and
  // they may not have printed their message.
  usleep(kTogetherUs);
}

int refuse(const std::string& message, Of whom) {
  say_why_it_ends(message, whom);
  return kRefused;
}

}  // namespace weft::launch
