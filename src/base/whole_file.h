// WholeFile: a file that is there with all its text, or not at all.
// Why: a disk may be full, and some file systems say so only when a file is closed.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace weft {

// Written under a name of its own beside its place, and moved there at the end: until then, and
// where anything fails, whatever is there stays. What is no regular file, such as /dev/stdout, and
// what lies in a directory that takes no other name is written where it is. Missing directories are
// not made.
class WholeFile {
 public:
  explicit WholeFile(std::string name);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void add(std::string_view text);
  // Once, at the end. 0: all of it is in its place; else the system's error.
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

// The sentence for the user. what: "the trace".
std::string not_written(const std::string& what, const std::string& name, int error);

// All of it at once.
int write_whole(const std::string& name, std::string_view text);

}  // namespace weft
