// RemoteProgram: carries out the program of another process's schedule. It reaches the node's
// memory by this process's own mapping, and the rank's private buffers through the kernel.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/mailbox.h"
#include "shm/other_process.h"
#include "shm/reduction.h"

namespace weft {

class RemoteProgram {
 public:
  // process: the rank's. False: this process does not map the memory of the node buffers.
  bool begin(const Work& work, pid_t process);

  enum class State : std::uint8_t {
    blocked,  // by other ranks, or wanted back
    over,
    unable,  // what comes next is only for its rank itself; nothing of it has been done
    ended,   // there is no such process any more
  };
  // Progresses as far as possible without blocking, or until it is wanted. work: is updated.
  State progress(const std::atomic<std::uint32_t>& wanted, Work* work);
  // Releases the resources of this process that the program used.
  void end();

 private:
  // A place in a buffer, in this process or in the rank's.
  struct Place {
    std::byte* here = nullptr;  // nullptr: there
    std::uintptr_t there = 0;
  };
  Place place(Buffer buffer, std::int64_t offset) const;
  const Instruction* instruction(std::uint32_t index);
  State carry_out(const Instruction& one);
  State copy(const Place& from, const Place& to, std::int64_t bytes);
  State reduce(const Instruction& one);
  State put(const std::byte* from, const Place& to, std::int64_t bytes) const;
  // Returns the bytes in this process; nullptr on failure, with the reason in `failed_`.
  const std::byte* get(const Place& from, std::vector<std::byte>& room, std::int64_t bytes);

  static constexpr std::uint32_t kFetched = 64;

  std::shared_ptr<Segment> segment_;
  std::optional<NodeBuffers> node_buffers_;
  NodeTurn turn_;
  bool is_own_ = false;  // the rank is this process's own
  std::optional<OtherProcess> process_;
  std::array<std::uintptr_t, kBuffers> base_{};
  std::uintptr_t program_ = 0;
  std::uint32_t instructions_ = 0;
  std::uint32_t signals_before_ = 0;
  bool synchronizing_ = false;
  Kernel kernel_ = nullptr;
  std::int64_t element_bytes_ = 0;
  FloatingPoint computes_as_;
  std::array<Instruction, kFetched> fetched_;
  std::uint32_t fetched_from_ = 0, fetched_count_ = 0;
  std::vector<std::byte> first_, second_, result_;
  State failed_ = State::unable;  // the last time that bytes could not be had
};

}  // namespace weft
