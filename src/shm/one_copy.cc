#include "shm/one_copy.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

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
  std::abort();  // launchers end a job for a signal, but not always for an exit
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

bool OneCopy::add(int rank, const Name& name) {
  if (name.process <= 0) return false;
  const OtherProcess process(static_cast<pid_t>(name.process));
  std::uint64_t found = 0;
  const auto moved = process.read(reinterpret_cast<std::byte*>(&found), name.address, sizeof found);
  if (moved != OtherProcess::Moved::all || found != name.token) return false;
  processes_.insert_or_assign(rank, process);
  return true;
}

void OneCopy::read(int rank, const std::byte* there, std::byte* here, std::int64_t bytes) {
  std::int64_t left = 0;
  const auto moved = processes_.at(rank).read(here, address_of(there), bytes, &left);
  if (moved != OtherProcess::Moved::all) end(rank, left);
  copied_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void OneCopy::write(const std::byte* here, int rank, std::byte* there, std::int64_t bytes) {
  std::int64_t left = 0;
  const auto moved = processes_.at(rank).write(here, address_of(there), bytes, &left);
  if (moved != OtherProcess::Moved::all) end(rank, left);
  copied_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace weft
