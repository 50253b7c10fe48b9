// PlanCache: plans that were measured, kept in a text file for the next run, a line per plan:
//   KEY <tab> ALGORITHM/TUNING <tab> DOUBTS <tab> ALGORITHM/TUNING=NS,… <tab> REMARKS
// where TUNING is PART_BYTES/RADIX/RADIX_ACROSS, and the remarks, with the tab before them, may be
// missing.
// Why text, one line each: anybody can read, sort and delete it, and a damaged line harms no other.
// A file that cannot be read or written is no error: plans are then measured in every run, which is
// said. What is damaged, too long or of another Weft is kept aside, and its place is taken by a new
// file; what is nothing of Weft's stays. Keys begin with Weft's version. Lines of others go when
// the file is written, so that it does not grow with each of them, and whoever writes says so.
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
  int doubts = 0;         // how often it was measured and did not become certain; 0: it is
  std::string remarks{};  // of whoever made the plan; no tab and no end of line in it

  bool operator==(const MeasuredPlan&) const = default;
};

// Words joined to one that may be a KEY: whatever would end it is replaced.
std::string plan_key(const std::vector<std::string>& words);

// How many ranks are on each node, as keys have it: "2 nodes, 4 each", "5 nodes, 3x4+2x1". The
// order of the nodes is none of it; that the ranks are not in order on them is.
std::string layout_words(const Nodes& nodes);

class PlanCache {
 public:
  using Entry = std::pair<std::string, MeasuredPlan>;

  // An empty name: nothing but this process's memory.
  explicit PlanCache(std::string file_name) : file_name_(std::move(file_name)) {}

  // Reads the file; else the first find() does, which takes longer than many a plan saves. By one
  // process of a job: says what is wrong with the file, and moves it aside.
  void read();
  // What this process measured, else what the file said when it was read.
  std::optional<MeasuredPlan> find(const std::string& key);
  // Those of the file whose key begins so.
  std::vector<Entry> with_prefix(const std::string& prefix);
  // What this process has measured. In this process there are no doubts of it any more.
  void note(const std::string& key, const MeasuredPlan& plan);
  // For this process only: what could not be measured well enough to be kept.
  void remember(const std::string& key, const MeasuredPlan& plan);
  // What has been noted since the last time, and `more`: as lines for write(). Empty: nothing, or
  // there is no file.
  std::string take_lines(const std::vector<Entry>& more = {});
  // Lines of one process or of several, of equal keys the last, into the file, beside what other
  // jobs have put there. Waits up to a second for others that write. Why they are not kept, in a
  // sentence for one process of the job to say; empty: they are.
  std::string write(std::string_view lines);

 private:
  void read_once();  // with mutex_ held

  const std::string file_name_;
  std::mutex mutex_;  // guards the rest
  bool read_ = false;
  bool is_whole_ = true;
  std::string text_;  // of the file
  std::map<std::string, MeasuredPlan> own_, noted_;
};

}  // namespace weft
