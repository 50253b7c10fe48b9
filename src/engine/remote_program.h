// RemoteProgram: carries out the compiled schedule of another process. It accesses the node's
// shared memory by its own mapping, and the rank's private buffers through the kernel.
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
  // Prepares the compiled schedule that `work` describes. process: the process ID of its rank.
  // Returns false if this process does not map the shared memory that the schedule uses.
  bool begin(const Work& work, pid_t process);

  enum class State : std::uint8_t {
    blocked,  // the schedule waits for other ranks, or its own rank wants it back
    over,
    // Only the schedule's own rank can carry out the next instruction, of which nothing has been
    // done yet.
    unable,
    ended,  // the process of the schedule's rank has ended
  };
  // Progresses as far as possible without blocking, or until `wanted` is nonzero. work: is updated
  // to say what remains.
  State progress(const std::atomic<std::uint32_t>& wanted, Work* work);
  // Releases what the schedule has used in this process.
  void end();

 private:
  // The address of an operand: `here` if it is in this process, otherwise `there` in the process of
  // the schedule's rank.
  struct Place {
    std::byte* here = nullptr;  // nullptr if the operand is in the rank's process
    std::uintptr_t there = 0;
  };
  Place place(Buffer buffer, std::int64_t offset) const;
  const Instruction* instruction(std::uint32_t index);
  State carry_out(const Instruction& one);
  State copy(const Place& from, const Place& to, std::int64_t bytes);
  State reduce(const Instruction& one);
  State put(const std::byte* from, const Place& to, std::int64_t bytes) const;
  // Returns the address of these bytes in this process, after copying them to `room` if they are in
  // another one; nullptr on failure, whose reason is then in `failed_`.
  const std::byte* get(const Place& from, std::vector<std::byte>& room, std::int64_t bytes);

  static constexpr std::uint32_t kFetched = 64;

  std::shared_ptr<Segment> segment_;
  std::optional<NodeBuffers> node_buffers_;
  NodeBufferUse turn_;
  bool is_own_ = false;  // true if the schedule's rank belongs to this process
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
  State failed_ = State::unable;  // why get() last returned nullptr
};

}  // namespace weft
