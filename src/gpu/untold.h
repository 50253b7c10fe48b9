// Untold: the errors of collectives in streams that no call has returned to the user yet.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace weft::gpu {

// Untold: keeps these errors, to report them when the process ends.
class Untold {
 public:
  void add(const std::string& why);
  void remove(const std::string& why);
  // Returns a sentence about these errors; empty if there are none.
  std::string sentence();

 private:
  std::mutex mutex_;  // guards the next member
  std::multiset<std::string> all_;
};

}  // namespace weft::gpu
