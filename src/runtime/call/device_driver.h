// DeviceDriver recognises GPU memory and copies it, by CUDA's driver or HIP's runtime. It uses the
// one that the program has loaded, and never loads one itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace weft {

// Way: says in which direction data are copied: from GPU memory to host memory (in), or back (out).
enum class Way : std::uint8_t { in, out };
inline constexpr std::size_t kWays = 2;

// DevicePart: a range of GPU memory, and the host memory that holds its copy.
struct DevicePart {
  std::byte* device;
  std::byte* host;
  std::int64_t bytes;
};

// DeviceCopies: copies between host memory and one block of GPU memory. Any thread may call it, but
// only one at a time. Copies in the same direction end in the order of their starts.
class DeviceCopies {
 public:
  virtual ~DeviceCopies() = default;  // waits for copies that have not ended

  // Prepares the copies of one collective, and sets both numbers of ended groups to 0. Returns
  // false if the driver refuses.
  virtual bool begin() = 0;
  // Starts to copy a group of parts. Returns false if the driver refuses.
  virtual bool start(Way way, std::span<const DevicePart> parts) = 0;
  // Returns how many groups have ended since begin(); nullopt after a failure.
  virtual std::optional<int> ended(Way way) = 0;
  // Waits until all groups have ended. Returns false after a failure.
  virtual bool wait() = 0;
};

// Pin: says for which context host memory is registered; empty if it is not registered.
struct Pin {
  void* context = nullptr;
  unsigned long long id = 0;  // the context's number, which no later context has

  explicit operator bool() const { return context != nullptr; }
};

class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  // Returns whether the address lies in GPU memory that the CPU cannot access.
  virtual bool holds(const std::byte* at) const = 0;
  // Returns what copies from and to the GPU memory at this address; nullptr if the driver refuses.
  virtual std::unique_ptr<DeviceCopies> copies(const std::byte* device) const = 0;

  // Returns whether the driver can register host memory.
  virtual bool pins() const = 0;
  // Registers host memory with the driver, so that copies between it and the GPU memory at `device`
  // are fast, and nobody waits for them. Returns an empty Pin if that is impossible. bytes: whole
  // pages.
  virtual Pin pin(std::byte* memory, std::int64_t bytes, const std::byte* device) const = 0;
  // Returns whether the registration still holds. It ends with its context.
  virtual bool holds(const Pin& pin) const = 0;
  // Ends the registration, if it still holds.
  virtual void unpin(std::byte* memory, const Pin& pin) const = 0;
};

}  // namespace weft
