// Reads the site file (weft.conf). Each line is checked together with the lines before it, so that
// the message can name the first wrong line.
#include "base/site_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/options.h"
#include "base/quoted.h"

namespace weft {
namespace {

constexpr off_t kMost_bytes = 64 * 1024;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

bool names_algorithm(std::string_view name) {
  for (int i = 0; i < kKinds; ++i)
    if (name == algorithm_variable(static_cast<Kind>(i))) return true;
  return false;
}

// Returns whether the site file may set this environment variable. It may set those that Config
// reads, but not those that concern a single run, such as WEFT_MPI.
bool is_settable(std::string_view name) {
  const auto reads = [name](const Option& option) {
    return option.read && name == option.variable;
  };
  return std::ranges::any_of(option_table(), reads) || names_algorithm(name);
}

Result<bool> check(const SiteFile& site, Result<bool> (*check_algorithms)(const Config&)) {
  const auto config = Config::from([&](const char* name) { return site.find(name); });
  if (!config) return config.error();
  // All ranks check the file of plans here, although only rank 0 reads it, so that either all ranks
  // or none use the site file.
  if (site.find("WEFT_PLAN_CACHE"))
    if (const auto right = check_plan_cache(config->plan_cache_file); !right) return right;
  return check_algorithms(*config);
}

// Adds the setting of one line to `site`. Skips empty lines and comments. Returns an error for a
// wrong line.
Result<bool> add_line(std::string_view line, SiteFile& site) {
  line = trimmed(line);
  if (line.empty() || line.front() == '#') return true;
  const auto equals = line.find('=');
  const std::string name(trimmed(line.substr(0, equals)));
  if (equals == line.npos) return Error{in_quotes(line) + " is not NAME = VALUE"};
  if (!is_settable(name)) return Error{in_quotes(name) + " is not a variable that it may set"};
  if (site.find(name.c_str())) return Error{name + " is set twice"};
  site.values.emplace_back(name, trimmed(line.substr(equals + 1)));
  return true;
}

SiteFile with_mistake(const std::string& name, const std::string& mistake) {
  return {{},
          "the site file " + printable(name) + " is left out (" + mistake +
              "), and Weft's defaults hold; ask the administrator to mend it"};
}

SiteFile parse(const std::string& name, std::string_view text,
               Result<bool> (*check_algorithms)(const Config&)) {
  if (text.find('\0') != text.npos) return with_mistake(name, "it is no text");
  SiteFile site;
  site.name = name;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    auto right = add_line(line, site);
    site.lines.resize(site.values.size(), number);
    if (right) right = check(site, check_algorithms);
    if (!right)
      return with_mistake(name, "line " + std::to_string(number) + ": " + right.error().message);
  }
  return site;
}

// Reads up to text.size() bytes from the file into `text`, and shortens it to what was read.
// Returns false if reading fails.
bool read_into(int file, std::string& text) {
  const ssize_t length = read(file, text.data(), text.size());
  text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return length >= 0;
}

}  // namespace

const char* SiteFile::find(const char* name) const {
  for (const auto& [known, value] : values)
    if (known == name) return value.c_str();
  return nullptr;
}

std::string SiteFile::share_in_mistake(
    const std::function<const char*(const char*)>& value_of) const {
  for (auto end = values.begin(); end != values.end(); ++end) {
    const auto without = [&](const char* variable) {
      const char* const value = value_of(variable);
      const auto is_this = [&](const auto& set) {
        return value && set.first == variable && set.second == value;
      };
      return std::any_of(values.begin(), end + 1, is_this) ? nullptr : value;
    };
    if (!Config::from(without)) continue;
    const int line = lines[static_cast<std::size_t>(end - values.begin())];
    return "; line " + std::to_string(line) + " of the site file " + printable(name) + " sets " +
           end->first + ": set it otherwise in the environment";
  }
  return "";
}

std::string site_file_of(const std::string& path) {
  const auto without_last = [](const std::string& name) { return name.substr(0, name.rfind('/')); };
  if (path.empty() || path.front() != '/') return "";
  std::string directory = without_last(path);
  if (directory.ends_with("/lib/weft")) directory = without_last(directory);
  const std::string prefix = without_last(directory);
  return (prefix == "/usr" ? "" : prefix) + "/etc/weft.conf";
}

SiteFile read_site_file(const std::string& name, Result<bool> (*check_algorithms)(const Config&)) {
  if (name.empty()) return {};
  const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
  if (file < 0) return with_mistake(name, std::strerror(errno));
  struct stat status = {};
  const bool is_regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const bool is_short = is_regular && status.st_size <= kMost_bytes;
  std::string text(is_short ? static_cast<std::size_t>(status.st_size) : 0, '\0');
  const bool is_read = is_short && read_into(file, text);
  const int error = errno;
  close(file);
  if (!is_regular) return with_mistake(name, "it is no regular file");
  if (!is_short) return with_mistake(name, "it is longer than 64 KiB");
  if (!is_read) return with_mistake(name, std::strerror(error));
  return parse(name, text, check_algorithms);
}

}  // namespace weft
