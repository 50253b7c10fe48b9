// Keeps measured plans in a text file. The file is searched as text, so that a long one costs
// little. It is replaced as a whole by a rename, so readers see the old or the new file. A process
// that writes holds the lock of the file's directory.
#include "select/plan_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <functional>
#include <set>
#include <thread>

#include "base/config.h"
#include "base/log.h"
#include "base/quoted.h"
#include "base/whole_file.h"

namespace weft {
namespace {

constexpr std::string_view kHeader = "# weft plans, version 4\n";
// First lines of files in older formats. Format 1 lacked radices, format 2 doubts, format 3 remarks
// (plan_cache.h).
constexpr std::string_view kOldHeaders[] = {
    "# weft plans, version 1\n", "# weft plans, version 2\n", "# weft plans, version 3\n"};
constexpr std::int64_t kMostBytes = 16 << 20;
constexpr std::string_view kOwnVersion = "weft " WEFT_VERSION;
using Milliseconds = std::chrono::milliseconds;
// How long to wait for the lock while other processes write: during the application, and at its
// end.
constexpr Milliseconds kSoon(2), kAtTheEnd(1000);

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

// Returns the text in front of the first `end`, and removes it and that character from `text`.
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

// Parses a text of the form ALGORITHM/TUNING (plan_cache.h). Returns false if it is damaged.
bool parse(std::string_view text, std::string& algorithm, Tuning& tuning) {
  algorithm = take_until(text, '/');
  return !algorithm.empty() && parse(take_until(text, '/'), tuning.chunk_bytes) &&
         parse(take_until(text, '/'), tuning.radix) && parse(text, tuning.radix_across);
}

std::string text_of(const std::string& algorithm, const Tuning& tuning) {
  return algorithm + '/' + std::to_string(tuning.chunk_bytes) + '/' + std::to_string(tuning.radix) +
         '/' + std::to_string(tuning.radix_across);
}

// Parses the part of a plan's line that follows the key. Returns nothing if it is damaged.
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

// The text of a file of plans, and what is wrong with it as a whole.
struct Contents {
  std::string text;     // "" if the file has no plans of this Weft
  std::string fault{};  // "" or what is wrong, as a predicate to the file's name
  bool may_go = true;   // whether the file may be moved aside
};

Contents contents_of(std::string text) {
  const auto begins = [&](std::string_view header) { return text.starts_with(header); };
  if (text.empty() || begins(kHeader) || std::ranges::any_of(kOldHeaders, begins))
    return {std::move(text)};
  if (begins(kPlansBegin)) return {"", "is of another Weft"};
  return {"", "is nothing of Weft's", false};
}

bool read_all(int file, std::string& text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t more = read(file, text.data() + length, text.size() - length);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return false;
    if (more == 0) break;
    length += static_cast<std::size_t>(more);
  }
  text.resize(length);
  return true;
}

std::string cannot_be_read() {
  return std::string("cannot be read (") + std::strerror(errno) + ")";
}

Contents read_file(const std::string& name) {
  const Descriptor file(open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
  struct stat status;
  if (file.get() < 0 || fstat(file.get(), &status) != 0) return {"", cannot_be_read(), false};
  if (!S_ISREG(status.st_mode)) return {"", "is no regular file", false};
  const bool is_too_long = status.st_size > kMostBytes;
  const auto bytes = is_too_long ? kPlansBegin.size() : static_cast<std::size_t>(status.st_size);
  std::string text(bytes, '\0');
  if (!read_all(file.get(), text)) return {"", cannot_be_read(), false};
  if (is_too_long) return {"", "is longer than 16 MiB", text == kPlansBegin};
  return contents_of(std::move(text));
}

bool is_of_another_version(std::string_view key) {
  return key.starts_with("weft ") && take_until(key, '|') != kOwnVersion;
}

// Returns the undamaged lines of this version of Weft, except those whose keys are in `entries`.
std::string without(std::string_view text, const std::vector<PlanCache::Entry>& entries) {
  std::set<std::string_view> replaced;
  for (const auto& [key, plan] : entries) replaced.insert(key);
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    std::string_view rest = line;
    const std::string_view key = take_until(rest, '\t');
    if (is_of_another_version(key) || replaced.contains(key) || !parse_plan(rest)) continue;
    kept.append(line).push_back('\n');
  }
  return kept;
}

int lines_of_other_versions(std::string_view text) {
  int lines = 0;
  while (!text.empty())
    if (is_of_another_version(take_until(text, '\n'))) ++lines;
  return lines;
}

// Returns the number of damaged lines. Lines in a file of another format are not damaged.
int damaged_lines(std::string_view text) {
  if (!text.starts_with(kHeader)) return 0;
  int damaged = 0;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.empty() || line.front() == '#') continue;
    take_until(line, '\t');
    if (!parse_plan(line)) ++damaged;
  }
  return damaged;
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

// Waits for the lock of a directory. Returns false if others hold it for longer than `patience`.
// Returns true if the lock was taken, but also if the file system has no locks, so that a plan of
// another process may be lost.
bool lock_within(Milliseconds patience, int directory) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::microseconds;
  const auto until = Clock::now() + patience;
  const auto longest = std::min<microseconds>(microseconds(patience) / 20, Milliseconds(5));
  for (microseconds pause(100);; pause = std::min(2 * pause, longest)) {
    if (flock(directory, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(pause);
  }
}

// Renames the file to an unused name, or unlinks it if the system refuses that. Returns the new
// name; "" if there is none, with the reason in errno.
std::string put_aside(const std::string& name) {
  constexpr int kMost = 9;
  for (int i = 1; i <= kMost; ++i) {
    const std::string aside = name + ".aside" + (i > 1 ? std::to_string(i) : "");
    if (link(name.c_str(), aside.c_str()) == 0) return aside;
    if (errno == EEXIST) continue;
    struct stat status;
    if (lstat(aside.c_str(), &status) == 0) continue;
    return rename(name.c_str(), aside.c_str()) == 0 ? aside : "";
  }
  errno = EEXIST;
  return "";
}

// Gives the file its old name back, since no new one could be written in its place.
void put_back(const std::string& aside, const std::string& name) {
  struct stat status;
  if (lstat(name.c_str(), &status) == 0)
    unlink(aside.c_str());
  else
    rename(aside.c_str(), name.c_str());
}

std::string fault_of(const Contents& contents) {
  if (!contents.fault.empty()) return contents.fault;
  const int damaged = damaged_lines(contents.text);
  if (damaged == 0) return "";
  return "has " + std::to_string(damaged) + (damaged == 1 ? " damaged line" : " damaged lines");
}

enum class Says : std::uint8_t { all, what_has_moved };

// text: what a new file may keep of the old one. aside: the name to which a damaged file was moved,
// or "". sentence: the message to print once the new file exists.
struct Sound {
  std::string text, aside{}, sentence{};
};

// Reads the file of plans, and moves it aside if it is damaged. Returns nothing if it stays in its
// place, so that no plans can be kept. Only the process that has moved it gets a message about
// that.
std::optional<Sound> sound_text(const std::string& name, Says says) {
  Contents contents = read_file(name);
  const std::string fault = fault_of(contents);
  if (fault.empty()) return Sound{std::move(contents.text)};
  const std::string begins = "the file of plans " + printable(name) + " " + fault + ": ";
  const std::string aside = contents.may_go ? put_aside(name) : "";
  if (!aside.empty()) {
    const char* const rest =
        contents.text.empty() ? ", and a new one is begun" : ", and its other lines hold";
    return Sound{std::move(contents.text), aside, begins + "it is kept as " + aside + rest};
  }
  const std::string why = contents.may_go ? std::string(" (") + std::strerror(errno) + ")" : "";
  if (says == Says::all)
    say(begins + "it stays there" + why +
        ", and no plans are kept; name another with --plan-cache, or none");
  return std::nullopt;
}

std::string cannot_be_written(const std::string& name, int error) {
  return printable(name) + " cannot be written (" + std::strerror(error) +
         "); name another file with --plan-cache, or none";
}

// Returns the message about the old file, including the lines of other versions that the new file
// drops. If the old file was moved aside, no line is lost.
std::string sentence_of(const std::string& name, const Sound& before) {
  const int gone = before.aside.empty() ? lines_of_other_versions(before.text) : 0;
  if (gone == 0) return before.sentence;
  return "the file of plans " + printable(name) + " had " + std::to_string(gone) +
         (gone == 1 ? " line of another version" : " lines of other versions") +
         " of Weft: these are gone, and what they said is measured and learnt anew";
}

// Replaces the file by one with this text. Returns the reason if that failed; "" on success.
std::string replace_file(const std::string& name, const Sound& before, const std::string& text) {
  if (const int error = write_whole(name, text)) {
    if (!before.aside.empty()) put_back(before.aside, name);
    return cannot_be_written(name, error);
  }
  const std::string sentence = sentence_of(name, before);
  if (!sentence.empty()) say(sentence);
  return "";
}

// Returns the last lines, which are the newest, as many as fit into the longest permitted file.
std::string_view newest(std::string_view lines) {
  constexpr std::size_t kMost = kMostBytes - (1 << 20);
  if (lines.size() <= kMost) return lines;
  lines.remove_prefix(lines.size() - kMost);
  take_until(lines, '\n');
  return lines;
}

// Runs what() with the lock of the file's directory, if the lock is free within `patience`. Returns
// the reason if something failed; "" on success.
template <class Do>
std::string with_lock(const std::string& name, Milliseconds patience, Do what) {
  const Descriptor directory(open(directory_of(name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return cannot_be_written(name, errno);
  if (lock_within(patience, directory.get())) return what();
  return "other processes have been writing " + name + " for a second";
}

// Replaces a damaged file at once by its undamaged lines.
void mend_file(const std::string& name) {
  with_lock(name, kSoon, [&] {
    const auto before = sound_text(name, Says::all);
    // An empty `aside` means that another process has already replaced the damaged file.
    if (!before || before->aside.empty()) return std::string();
    return replace_file(name, *before, std::string(kHeader) + without(before->text, {}));
  });
}

// Writes the entries into the file. Returns whether later runs will find them and, if not, why; the
// reason is empty if it has been printed already.
PlanCache::Written merge_into_file(const std::string& name,
                                   const std::vector<PlanCache::Entry>& entries) {
  if (name == default_plan_cache()) make_directories(directory_of(name));
  bool is_sound = true;
  const std::string why = with_lock(name, kAtTheEnd, [&] {
    const auto before = sound_text(name, Says::what_has_moved);
    is_sound = before.has_value();
    if (!is_sound) return std::string();
    std::string lines = without(before->text, entries);
    for (const auto& [key, plan] : entries) lines += line_of(key, plan);
    return replace_file(name, *before, std::string(kHeader).append(newest(lines)));
  });
  return {is_sound && why.empty(), why};
}

// Returns whether this process may read the file but not replace it, for instance because an
// administrator keeps it for all users.
bool is_only_read(const std::string& name) {
  return access(name.c_str(), W_OK) != 0 && (errno == EACCES || errno == EROFS) &&
         access(name.c_str(), R_OK) == 0;
}

}  // namespace

std::string plan_key(const std::vector<std::string>& words) {
  std::string key;
  for (const std::string& word : words) {
    if (!key.empty()) key += '|';
    for (const char c : word) key += c == '|' || static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return key;
}

// Returns text about how many ranks each node has (plan_cache.h). It counts the nodes with each
// number of ranks, the largest number first.
std::string layout_words(const Nodes& nodes) {
  std::map<int, int, std::greater<>> nodes_with;
  for (int node = 0; node < nodes.count(); ++node) ++nodes_with[nodes.ranks_on(node)];
  std::string ranks;
  for (const auto& [each, count] : nodes_with)
    ranks += (ranks.empty() ? "" : "+") + (count > 1 ? std::to_string(count) + "x" : "") +
             std::to_string(each);
  if (nodes_with.size() == 1) ranks = std::to_string(nodes.ranks_on(0)) + " each";
  return std::to_string(nodes.count()) + " nodes, " + ranks +
         (nodes.are_in_order() ? "" : ", not in order");
}

void PlanCache::read_once() {
  if (std::exchange(read_, true) || file_name_.empty()) return;
  Contents contents = read_file(file_name_);
  is_whole_ = contents.fault.empty();
  text_ = std::move(contents.text);
}

void PlanCache::read() {
  const std::lock_guard lock(mutex_);
  read_once();
  if (!is_whole_ || damaged_lines(text_) > 0) mend_file(file_name_);
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

std::vector<PlanCache::Entry> PlanCache::with_prefix(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  read_once();
  std::vector<Entry> found;
  for (std::string_view rest = text_; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    if (!line.starts_with(prefix)) continue;
    std::string key(take_until(line, '\t'));
    if (auto plan = parse_plan(line)) found.emplace_back(std::move(key), std::move(*plan));
  }
  return found;
}

void PlanCache::note(const std::string& key, const MeasuredPlan& plan) {
  MeasuredPlan without_doubts = plan;
  without_doubts.doubts = 0;
  const std::lock_guard lock(mutex_);
  own_[key] = std::move(without_doubts);
  noted_[key] = plan;
}

std::string PlanCache::take_lines(const std::vector<Entry>& more) {
  const std::lock_guard lock(mutex_);
  const auto noted = std::exchange(noted_, {});
  if (file_name_.empty()) return "";
  std::string lines;
  for (const auto& [key, plan] : noted) lines += line_of(key, plan);
  for (const auto& [key, plan] : more) lines += line_of(key, plan);
  return lines;
}

PlanCache::Written PlanCache::write(std::string_view lines) {
  std::map<std::string, MeasuredPlan> entries;
  while (!lines.empty()) {
    std::string_view line = take_until(lines, '\n');
    std::string key(take_until(line, '\t'));
    if (auto plan = parse_plan(line)) entries[std::move(key)] = std::move(*plan);
  }
  if (file_name_.empty()) return {};
  if (entries.empty()) return {.is_kept = true};
  if (is_only_read(file_name_)) return {};
  Written written = merge_into_file(file_name_, {entries.begin(), entries.end()});
  if (!written.why.empty())
    written.why.insert(0, "what this run has measured and learnt is not kept: ");
  return written;
}

void PlanCache::remember(const std::string& key, const MeasuredPlan& plan) {
  const std::lock_guard lock(mutex_);
  own_[key] = plan;
}

}  // namespace weft
