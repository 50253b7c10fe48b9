#include "shm/one_copy.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <utility>

#include "base/log.h"

namespace weft {
namespace {

std::uint64_t random_token() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

[[noreturn]] void end(int rank, std::int64_t left) {
  say("rank " + std::to_string(rank) + "'s buffer cannot be reached any more (" +
      std::strerror(errno) + ", " + std::to_string(left) +
      " bytes left): the job ends; see whether the memory that it gave to a collective is there "
      "until the collective has ended");
  // The process aborts instead of exiting, since launchers end the job after a signal, but not
  // always after an exit.
  std::abort();
}

std::uintptr_t address_of(const std::byte* there) {
  return reinterpret_cast<std::uintptr_t>(there);
}

}  // namespace

bool may_be_read() {
  return prctl(PR_GET_DUMPABLE) == 1;
}

std::unique_ptr<OneCopy> OneCopy::create(int rank) {
  return may_be_read() ? std::unique_ptr<OneCopy>(new OneCopy(rank)) : nullptr;
}

OneCopy::OneCopy(int rank) : rank_(rank), token_(random_token()) {}

OneCopy::Name OneCopy::name() const {
  return {getpid(), reinterpret_cast<std::uint64_t>(&token_), token_};
}

void OneCopy::expect(int rank, const Name& name) {
  peers_.erase(rank);
  peers_.try_emplace(rank, name);
}

bool OneCopy::reaches(int rank) {
  const auto found = peers_.find(rank);
  if (found == peers_.end()) return false;
  Peer& peer = found->second;
  if (const Answer answer = peer.answer.load(); answer != Answer::none)
    return answer == Answer::yes;
  std::uint64_t token = 0;
  const bool is_right = peer.name.process > 0 &&
                        peer.process.read(reinterpret_cast<std::byte*>(&token), peer.name.address,
                                          sizeof token) == OtherProcess::Moved::all &&
                        token == peer.name.token;
  peer.answer.store(is_right ? Answer::yes : Answer::no);
  return is_right;
}

bool OneCopy::all_reach_it(std::span<const int> ranks) const {
  const std::lock_guard lock(mutex_);
  return std::includes(reached_by_.begin(), reached_by_.end(), ranks.begin(), ranks.end());
}

void OneCopy::all_reach(std::span<const int> ranks) {
  const std::lock_guard lock(mutex_);
  std::vector<int> all;
  std::set_union(reached_by_.begin(), reached_by_.end(), ranks.begin(), ranks.end(),
                 std::back_inserter(all));
  reached_by_ = std::move(all);
}

// Copies by a system call (one_copy.h). The kernel reports the same error for an inaccessible page
// on either side. If pages of this process are write-protected, this thread must write them itself,
// since a signal handler of the program may be waiting for the fault; so the rest is copied by way
// of a buffer.
void OneCopy::read(int rank, const std::byte* there, std::byte* here, std::int64_t bytes) {
  const OtherProcess& process = peers_.at(rank).process;
  copied_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  std::int64_t left = 0;
  if (process.read(here, address_of(there), bytes, &left) == OtherProcess::Moved::all) return;
  std::array<std::byte, 16 * 1024> part;
  while (left > 0) {
    const std::int64_t done = bytes - left;
    const auto size = std::min(left, static_cast<std::int64_t>(part.size()));
    std::int64_t missed = 0;
    const auto moved = process.read(part.data(), address_of(there + done), size, &missed);
    if (moved != OtherProcess::Moved::all) end(rank, left - size + missed);
    std::memcpy(here + done, part.data(), static_cast<std::size_t>(size));
    left -= size;
  }
}

}  // namespace weft
