// OtherProcess: the memory of another process of this node and user, read and written by the kernel
// (process_vm_readv, process_vm_writev). Why not a mapping: buffers of the application's lie in
// memory that nobody has shared.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace weft {

class OtherProcess {
 public:
  // refused: the kernel does not let us, or some of it may not be touched there; what lies before
  // that may have been moved. ended: there is no such process any more.
  enum class Moved : std::uint8_t { all, refused, ended };

  explicit OtherProcess(pid_t process) : process_(process) {}

  // address: there. left: where not all is moved, how many bytes are not; errno says why.
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
  // Some at a time: a signal or the kernel's own limit may cut a call short.
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
