// A call of the kernel's may do less than it was asked for: at the end of 2 GiB, and where memory
// ends.
#include "shm/one_copy.h"

#include <sys/prctl.h>
#include <sys/uio.h>
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

[[noreturn]] void end(int rank, std::int64_t bytes, int error) {
  say("rank " + std::to_string(rank) + "'s buffer cannot be reached any more (" +
      std::strerror(error) + ", " + std::to_string(bytes) +
      " bytes left): the job ends; see whether the memory that it gave to a collective is there "
      "until the collective has ended");
  std::abort();  // launchers end a job for a signal, but not always for an exit
}

using Move = ssize_t(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                     unsigned long);

void move_all(Move move, int rank, int process, std::byte* here, std::byte* there,
              std::int64_t bytes) {
  while (bytes > 0) {
    const iovec own{here, static_cast<std::size_t>(bytes)};
    const iovec others{there, static_cast<std::size_t>(bytes)};
    const ssize_t moved = move(process, &own, 1, &others, 1, 0);
    if (moved <= 0) end(rank, bytes, moved < 0 ? errno : EFAULT);
    here += moved;
    there += moved;
    bytes -= moved;
  }
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
  const auto process = static_cast<pid_t>(name.process);
  std::uint64_t found = 0;
  const iovec to{&found, sizeof found};
  const iovec from{reinterpret_cast<void*>(name.address), sizeof found};
  const bool read = process_vm_readv(process, &to, 1, &from, 1, 0) == sizeof found;
  if (!read || found != name.token) return false;
  processes_[rank] = process;
  return true;
}

void OneCopy::read(int rank, const std::byte* there, std::byte* here, std::int64_t bytes) {
  move_all(process_vm_readv, rank, processes_.at(rank), here, const_cast<std::byte*>(there), bytes);
  copied_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void OneCopy::write(const std::byte* here, int rank, std::byte* there, std::int64_t bytes) {
  move_all(process_vm_writev, rank, processes_.at(rank), const_cast<std::byte*>(here), there,
           bytes);
  copied_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace weft
