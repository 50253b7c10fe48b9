// Untold: why collectives in streams have failed where no call has said so.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace weft::gpu {

// The reasons of failed collectives that no call has reported to the user yet.
class Untold {
 public:
  void add(const std::string& why);
  void remove(const std::string& why);
  // Returns a sentence about the failures, or an empty string if there are none.
  std::string sentence();

 private:
  std::mutex mutex_;  // guards the next
  std::multiset<std::string> all_;
};

}  // namespace weft::gpu
