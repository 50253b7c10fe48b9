// Writes files as a whole. If the name is a symbolic link, the file to which it points is replaced,
// and the link stays.
#include "base/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/quoted.h"

namespace weft {
namespace {

std::string behind_links(std::string name) {
  char* const real = realpath(name.c_str(), nullptr);
  if (real) name = real;
  std::free(real);
  return name;
}

// Returns whether the name denotes a file descriptor or device, such as /dev/stdout. Such a file is
// written in place, since other programs write to it, too.
bool names_descriptor(const std::string& name) {
  return name.starts_with("/dev/") || name.starts_with("/proc/");
}

// Returns whether the error number means that the directory accepts no new file. The file itself
// may then still be writable in place.
bool may_lie_in_place(int error) {
  return error == EACCES || error == EPERM || error == ENAMETOOLONG;
}

}  // namespace

WholeFile::WholeFile(std::string name) {
  const bool is_descriptor = names_descriptor(name);
  name_ = is_descriptor ? std::move(name) : behind_links(std::move(name));
  struct stat status;
  const bool is_there = stat(name_.c_str(), &status) == 0;
  if (is_there && (!S_ISREG(status.st_mode) || is_descriptor))
    open(O_WRONLY | O_APPEND);
  else if (is_there && access(name_.c_str(), W_OK) != 0)
    fail(errno);  // an existing file without write permission stays unchanged
  else
    open_part();
  // The result of fchmod() is ignored, since some file systems have no modes.
  if (!part_.empty() && is_there) [[maybe_unused]]
    const int kept = fchmod(fileno(file_), status.st_mode & 07777);
}

void WholeFile::open_part() {
  part_ = name_ + "." + std::to_string(getpid()) + ".part";
  unlink(part_.c_str());  // removes what a killed process with the same ID left
  open(O_WRONLY | O_CREAT | O_EXCL);
  if (file_) return;
  part_.clear();
  if (!may_lie_in_place(error_)) return;
  error_ = 0;
  open(O_WRONLY | O_CREAT | O_TRUNC);
}

WholeFile::~WholeFile() {
  give_up();
}

void WholeFile::open(int flags) {
  const int file = ::open((part_.empty() ? name_ : part_).c_str(), flags | O_CLOEXEC, 0666);
  if (file >= 0) file_ = fdopen(file, "w");
  if (file_) return;
  fail(errno);
  if (file >= 0) close(file);
}

void WholeFile::fail(int error) {
  if (error_ == 0) error_ = error;
}

void WholeFile::add(std::string_view text) {
  if (error_ == 0 && std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail(errno);
}

int WholeFile::finish() {
  if (error_ == 0 && std::fflush(file_) != 0) fail(errno);
  if (file_ && std::fclose(std::exchange(file_, nullptr)) != 0) fail(errno);
  if (error_ == 0 && !part_.empty() && std::rename(part_.c_str(), name_.c_str()) != 0) fail(errno);
  if (error_ == 0) part_.clear();
  give_up();
  return error_;
}

// Closes the file if it is open, and removes the temporary file if there is one.
void WholeFile::give_up() {
  if (file_) std::fclose(std::exchange(file_, nullptr));
  if (!part_.empty()) unlink(std::exchange(part_, "").c_str());
}

std::string not_written(const std::string& what, const std::string& name, int error) {
  return "cannot write " + what + " to " + printable(name) + " (" + std::strerror(error) +
         "): name a file that can be written";
}

int write_whole(const std::string& name, std::string_view text) {
  WholeFile file(name);
  file.add(text);
  return file.finish();
}

}  // namespace weft
