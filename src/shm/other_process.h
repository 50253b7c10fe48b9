// OtherProcess: copies from and to the memory of another process on this node with the same user,
// through the kernel (process_vm_readv, process_vm_writev). It serves for the application's
// buffers, which are not in shared memory.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace weft {

class OtherProcess {
 public:
  // The result of a copy. all: all bytes were copied. refused: the kernel does not permit it, or
  // some of the memory does not exist there; the bytes before that may have been copied. ended: the
  // process does not exist any more.
  enum class Moved : std::uint8_t { all, refused, ended };

  explicit OtherProcess(pid_t process) : process_(process) {}

  // read() copies from `address` in the other process, and write() copies to it. left: gets the
  // number of bytes that were not copied; errno then gives the reason.
  Moved read(std::byte* to, std::uintptr_t address, std::int64_t bytes,
             std::int64_t* left = nullptr) const {
    return move(to, address, bytes, left, [this](const iovec& here, const iovec& there) {
      return process_vm_readv(process_, &here, 1, &there, 1, 0);
    });
  }
  Moved write(const std::byte* from, std::uintptr_t address, std::int64_t bytes,
              std::int64_t* left = nullptr) const {
    return move(const_cast<std::byte*>(from), address, bytes, left,
                [this](const iovec& here, const iovec& there) {
                  return process_vm_writev(process_, &here, 1, &there, 1, 0);
                });
  }

 private:
  // Makes the system call `call` until all bytes are copied: a signal or the kernel's limit may cut
  // a call short.
  template <class Call>
  static Moved move(std::byte* own, std::uintptr_t address, std::int64_t bytes, std::int64_t* left,
                    Call call) {
    while (bytes > 0) {
      const auto size = static_cast<std::size_t>(bytes);
      const ssize_t moved = call({own, size}, {reinterpret_cast<void*>(address), size});
      if (moved < 0 && errno == EINTR) continue;
      if (moved <= 0) {
        if (moved == 0) errno = EFAULT;
        if (left) *left = bytes;
        return errno == ESRCH ? Moved::ended : Moved::refused;
      }
      own += moved;
      address += static_cast<std::uintptr_t>(moved);
      bytes -= moved;
    }
    return Moved::all;
  }

  pid_t process_;
};

}  // namespace weft
