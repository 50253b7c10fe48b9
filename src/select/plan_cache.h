// PlanCache: measured plans (which algorithm and tuning a call should use), kept in a text file for
// later runs, one line per plan:
//   KEY <tab> ALGORITHM/TUNING <tab> DOUBTS <tab> ALGORITHM/TUNING=NS,… <tab> REMARKS
// where TUNING is CHUNK_BYTES/RADIX/RADIX_ACROSS. The fourth column has the measured times; the
// remarks, with the tab before them, may be missing. The file is text so that users can read, sort
// and delete lines, and a damaged line harms no other.
// A file that cannot be read or written is no error: plans are then measured in every run, which is
// reported. A file that may only be read is used, and nothing is kept. A file that is damaged, too
// long or of another format is moved aside and replaced; a file that is not Weft's is left alone.
// Keys begin with Weft's version. Lines of other versions are dropped when the file is written, so
// that it does not grow, and the process that writes reports that.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/nodes.h"
#include "schedule/tuning.h"

namespace weft {

struct MeasuredCandidate {
  std::string algorithm;
  Tuning tuning;
  std::int64_t ns = 0;

  bool operator==(const MeasuredCandidate&) const = default;
};

struct MeasuredPlan {
  std::string algorithm;
  Tuning tuning;
  std::vector<MeasuredCandidate> candidates;
  // Number of measurements without a certain result; 0 if the result is certain.
  int doubts = 0;
  std::string remarks{};  // free text of whoever made the plan, without tabs and line ends

  bool operator==(const MeasuredPlan&) const = default;
};

// Returns the key of a plan, the first column of its line in the file: the words, separated by '|'.
// Inside a word, '|' and control characters are replaced by spaces.
std::string plan_key(const std::vector<std::string>& words);

// Returns how many ranks each node has, such as "2 nodes, 4 each" or "5 nodes, 3x4+2x1". The order
// of the nodes is left out. If ranks are not numbered node by node, the text says so.
std::string layout_words(const Nodes& nodes);

class PlanCache {
 public:
  using Entry = std::pair<std::string, MeasuredPlan>;

  // If `file_name` is empty, plans are kept only in this process's memory.
  explicit PlanCache(std::string file_name) : file_name_(std::move(file_name)) {}

  // Reads the file now, so that the first find() need not: reading takes longer than many plans
  // save. One process of a job must call it; that process also reports a faulty file and moves it
  // aside.
  void read();
  // Returns the plan with this key: the one that this process has measured, otherwise the one that
  // was in the file when it was read; nothing if there is neither.
  std::optional<MeasuredPlan> find(const std::string& key);
  // Returns the file's plans whose keys begin with `prefix`.
  std::vector<Entry> with_prefix(const std::string& prefix);
  // Keeps a plan that this process has measured, also for later runs. Within this process its
  // result counts as certain.
  void note(const std::string& key, const MeasuredPlan& plan);
  // Keeps a plan for this process only, because its measurement does not count in other runs.
  void remember(const std::string& key, const MeasuredPlan& plan);
  // Returns the plans that were noted since the last call, and those in `more`, as lines for
  // write(). Returns "" if there are none, or if there is no file.
  std::string take_lines(const std::vector<Entry>& more = {});
  struct Written {
    bool is_kept = false;  // whether later runs will find the lines
    // Why the lines are not kept, as a sentence that one process of the job must print. It may be
    // empty even then.
    std::string why{};
  };
  // Writes lines of one or several processes into the file, which other jobs may have changed
  // meanwhile. If several lines have equal keys, the last one counts. Waits up to a second for
  // other processes that write.
  Written write(std::string_view lines);

 private:
  void read_once();  // mutex_ must be held

  const std::string file_name_;
  std::mutex mutex_;  // guards the members below
  bool read_ = false;
  bool is_whole_ = true;
  std::string text_;  // text of the file
  std::map<std::string, MeasuredPlan> own_, noted_;
};

}  // namespace weft
