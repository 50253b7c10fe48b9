// WholeFile writes a file either completely or not at all. A disk may be full, and some file
// systems report that only when the file is closed.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace weft {

// Writes a file under a temporary name in the same directory, and renames it at the end. Until
// then, and after any error, the old file stays. A file is written in place if it is not a regular
// file, such as /dev/stdout, or if its directory accepts no new file. Missing directories are not
// created.
class WholeFile {
 public:
  explicit WholeFile(std::string name);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void add(std::string_view text);
  // Completes the file and gives it its final name. It must be called once, after all text has been
  // added. Returns 0 on success, otherwise the system's error number.
  int finish();

 private:
  void open(int flags);
  void open_part();
  void fail(int error);
  void give_up();

  std::string name_;
  std::string part_;  // the name of the temporary file; empty if the file is written in place
  std::FILE* file_ = nullptr;
  int error_ = 0;  // the first error number; 0 if there was no error
};

// Returns the message that tells the user why a file could not be written. what: the content of the
// file, such as "the trace". error: the system's error number.
std::string not_written(const std::string& what, const std::string& name, int error);

// Writes `text` as the whole file. Returns 0 on success, otherwise the system's error number.
int write_whole(const std::string& name, std::string_view text);

}  // namespace weft
