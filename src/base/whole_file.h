// WholeFile: writes a file either completely or not at all. A disk may be full, and some file
// systems report that only when a file is closed.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace weft {

// A file that is written under a temporary name in its directory and renamed at the end. Until
// then, and after any error, the old file stays. A name that is no regular file, such as
// /dev/stdout, or lies in a directory that accepts no new file, is written in place. Missing
// directories are not created.
class WholeFile {
 public:
  explicit WholeFile(std::string name);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void add(std::string_view text);
  // Completes the file, and gives it its name. Must be called once, at the end. Returns 0 if the
  // whole file is in place, otherwise the system's error number.
  int finish();

 private:
  void open(int flags);
  void open_part();
  void fail(int error);
  void give_up();

  std::string name_;
  std::string part_;  // name of the temporary file; empty if the file is written in place
  std::FILE* file_ = nullptr;
  int error_ = 0;  // the first error number
};

// Returns the sentence that tells the user why a file could not be written. what: describes the
// content, such as "the trace". error: the system's error number.
std::string not_written(const std::string& what, const std::string& name, int error);

// Writes a file whose text is complete. Returns 0 or the system's error number.
int write_whole(const std::string& name, std::string_view text);

}  // namespace weft
