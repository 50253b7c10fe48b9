// Reads the site file, in which an administrator sets defaults for all users of an installation.
// Each line has the form NAME = VALUE, where NAME is one of Weft's environment variables. Variables
// and options that a user sets take precedence.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/result.h"

namespace weft {

struct SiteFile {
  // The names and values, in the order of the lines. Empty if there is no file, or if it contains a
  // mistake.
  std::vector<std::pair<std::string, std::string>> values;
  // The message for the user about a mistake in the file; "" if there is none.
  std::string mistake;

  std::string name{};        // the path of the file
  std::vector<int> lines{};  // the line number of each entry of `values`

  // Returns the value of a variable; nullptr if the file does not set it.
  const char* find(const char* name) const;
  // Finds out whether the site file is to blame for a wrong combination of settings. Returns words
  // that name the line of the file which causes the error; "" if the user's own settings are wrong
  // without the file. value_of() must return the value of an environment variable, or nullptr.
  std::string share_in_mistake(const std::function<const char*(const char*)>& value_of) const;
};

// Returns the site file for the program or library of Weft at this absolute path:
// PREFIX/etc/weft.conf, or /etc/weft.conf for the prefix /usr. Returns "" if the path is not
// absolute.
std::string site_file_of(const std::string& path);

// Reads the site file. If any line contains a mistake, no line of the file has effect.
// check_algorithms() must return an error for an unknown algorithm.
SiteFile read_site_file(const std::string& name, Result<bool> (*check_algorithms)(const Config&));

}  // namespace weft
