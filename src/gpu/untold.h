// Untold: the errors of collectives in streams that no call has returned to the user.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace weft::gpu {

// Keeps the reasons of failed collectives that no call has returned to the user yet, to report them
// at the end.
class Untold {
 public:
  void add(const std::string& why);
  void remove(const std::string& why);
  // Returns a sentence about these failures; empty if there are none.
  std::string sentence();

 private:
  std::mutex mutex_;  // guards the next member
  std::multiset<std::string> all_;
};

}  // namespace weft::gpu
