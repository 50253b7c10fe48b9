// The file is searched as text, so that a long one costs little. It is replaced as a whole by a
// rename: readers see the old one or the new one.
#include "select/plan_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <thread>

namespace weft {
namespace {

constexpr std::string_view kHeader = "# weft plans, version 4\n";
// Version 1 had no radices, version 2 no doubts, version 3 no remarks.
constexpr std::string_view kOldHeaders[] = {
    "# weft plans, version 1\n", "# weft plans, version 2\n", "# weft plans, version 3\n"};
constexpr std::int64_t kMostBytes = 16 << 20;  // a longer file is no cache of ours

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  const int number_;
};

// Takes the text up to `end`, and `end` itself.
std::string_view take_until(std::string_view& text, char end) {
  const auto at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

// ALGORITHM/TUNING
bool parse(std::string_view text, std::string& algorithm, Tuning& tuning) {
  algorithm = take_until(text, '/');
  return !algorithm.empty() && parse(take_until(text, '/'), tuning.part_bytes) &&
         parse(take_until(text, '/'), tuning.radix) && parse(text, tuning.radix_across);
}

std::string text_of(const std::string& algorithm, const Tuning& tuning) {
  return algorithm + '/' + std::to_string(tuning.part_bytes) + '/' + std::to_string(tuning.radix) +
         '/' + std::to_string(tuning.radix_across);
}

// Of a line behind its key; none where it is damaged.
std::optional<MeasuredPlan> parse_plan(std::string_view line) {
  MeasuredPlan plan;
  if (!parse(take_until(line, '\t'), plan.algorithm, plan.tuning) ||
      !parse(take_until(line, '\t'), plan.doubts) || line.empty())
    return std::nullopt;
  std::string_view candidates = take_until(line, '\t');
  plan.remarks = line;
  if (candidates.empty()) return std::nullopt;
  while (!candidates.empty()) {
    std::string_view word = take_until(candidates, ',');
    MeasuredCandidate candidate;
    if (!parse(take_until(word, '='), candidate.algorithm, candidate.tuning) ||
        !parse(word, candidate.ns))
      return std::nullopt;
    plan.candidates.push_back(std::move(candidate));
  }
  return plan;
}

std::string line_of(const std::string& key, const MeasuredPlan& plan) {
  std::string line =
      key + '\t' + text_of(plan.algorithm, plan.tuning) + '\t' + std::to_string(plan.doubts) + '\t';
  for (const MeasuredCandidate& candidate : plan.candidates)
    line +=
        text_of(candidate.algorithm, candidate.tuning) + '=' + std::to_string(candidate.ns) + ',';
  line.back() = plan.remarks.empty() ? '\n' : '\t';
  return plan.remarks.empty() ? line : line + plan.remarks + '\n';
}

// nullopt: it is there, but cannot be one of ours.
std::optional<std::string> read_file(const std::string& name) {
  const Descriptor file(open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return "";
  struct stat status;
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > kMostBytes)
    return std::nullopt;
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t length = read(file.get(), text.data(), text.size());
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  const auto begins = [&](std::string_view header) { return text.starts_with(header); };
  if (!text.empty() && !begins(kHeader) && std::ranges::none_of(kOldHeaders, begins))
    return std::nullopt;
  return text;
}

// The lines that are whole, without that of `key`.
std::string without(std::string_view text, const std::string& key) {
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    std::string_view rest = line;
    if (take_until(rest, '\t') == key || !parse_plan(rest)) continue;
    kept.append(line).push_back('\n');
  }
  return kept;
}

std::string directory_of(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : name.substr(0, slash);
}

void make_directories(const std::string& name) {
  for (auto slash = name.find('/', 1); slash != std::string::npos;
       slash = name.find('/', slash + 1))
    mkdir(name.substr(0, slash).c_str(), 0777);
  mkdir(name.c_str(), 0777);
}

// False: others write for too long. Some file systems have no locks: there, a plan may be lost.
bool lock_soon(int directory) {
  for (int i = 0; i < 20; ++i) {
    if (flock(directory, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return false;
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t length = write(file, text.data(), text.size());
    if (length <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return true;
}

void replace_file(const std::string& name, const std::string& text) {
  const std::string fresh = name + "." + std::to_string(getpid());
  bool written = false;
  {
    const Descriptor file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.get() < 0) return;
    written = write_all(file.get(), text);
  }
  if (!written || rename(fresh.c_str(), name.c_str()) != 0) unlink(fresh.c_str());
}

void merge_into_file(const std::string& name, const std::string& key, const MeasuredPlan& plan) {
  const std::string path = directory_of(name);
  make_directories(path);
  const Descriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || !lock_soon(directory.get())) return;
  const std::optional<std::string> before = read_file(name);
  if (!before) return;
  replace_file(name, std::string(kHeader) + without(*before, key) + line_of(key, plan));
}

}  // namespace

std::string plan_key(const std::vector<std::string>& words) {
  std::string key;
  for (const std::string& word : words) {
    if (!key.empty()) key += '|';
    for (const char c : word) key += c == '|' || (c >= 0 && c < ' ') ? ' ' : c;
  }
  return key;
}

void PlanCache::read_once() {
  if (!read_ && !file_name_.empty()) text_ = read_file(file_name_).value_or("");
  read_ = true;
}

void PlanCache::read() {
  const std::lock_guard lock(mutex_);
  read_once();
}

std::optional<MeasuredPlan> PlanCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (const auto own = own_.find(key); own != own_.end()) return own->second;
  read_once();
  const auto at = text_.find('\n' + key + '\t');
  if (at == std::string::npos) return std::nullopt;
  std::string_view line = std::string_view(text_).substr(at + key.size() + 2);
  return parse_plan(take_until(line, '\n'));
}

std::vector<std::pair<std::string, MeasuredPlan>> PlanCache::with_prefix(
    const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  read_once();
  std::vector<std::pair<std::string, MeasuredPlan>> found;
  for (std::string_view rest = text_; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    if (!line.starts_with(prefix)) continue;
    std::string key(take_until(line, '\t'));
    if (auto plan = parse_plan(line)) found.emplace_back(std::move(key), std::move(*plan));
  }
  return found;
}

void PlanCache::put(const std::string& key, const MeasuredPlan& plan) {
  MeasuredPlan without_doubts = plan;
  without_doubts.doubts = 0;
  remember(key, without_doubts);
  if (!file_name_.empty()) merge_into_file(file_name_, key, plan);
}

void PlanCache::remember(const std::string& key, const MeasuredPlan& plan) {
  const std::lock_guard lock(mutex_);
  own_[key] = plan;
}

}  // namespace weft
