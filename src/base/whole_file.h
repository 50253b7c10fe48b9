// WholeFile: a file that is there with all its text, or not at all.
// Why: a disk may be full, and some file systems say so only when a file is closed.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace weft {

// A file that is written under a temporary name beside its place and moved there at the end. Until
// then, and after any error, the old file stays. A name that is no regular file, such as
// /dev/stdout, or in a directory that takes no new name, is written in place. Missing directories
// are not made.
class WholeFile {
 public:
  explicit WholeFile(std::string name);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void add(std::string_view text);
  // Must be called once, at the end. Returns 0 if the whole file is in place, else the system's
  // error.
  int finish();

 private:
  void open(int flags);
  void open_part();
  void fail(int error);
  void give_up();

  std::string name_;
  std::string part_;  // empty: written where it is
  std::FILE* file_ = nullptr;
  int error_ = 0;  // the first one
};

// Returns the sentence for the user. what: such as "the trace".
std::string not_written(const std::string& what, const std::string& name, int error);

// Writes the whole text at once.
int write_whole(const std::string& name, std::string_view text);

}  // namespace weft
