// The site file: defaults that an administrator sets for all users of an installation, in lines
// NAME = VALUE. The names are those of Weft's variables. Environment and options take precedence.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/result.h"

namespace weft {

struct SiteFile {
  // Names and values in the order of the lines; empty if there is no file, or if it contains a
  // mistake.
  std::vector<std::pair<std::string, std::string>> values;
  // The sentence for the user about a mistake; empty if there is none.
  std::string mistake;

  std::string name{};        // name of the file
  std::vector<int> lines{};  // line number of each value

  // Returns the value of a variable; nullptr if the file does not set it.
  const char* find(const char* name) const;
  // For a combination of values that is wrong, and of which some come from the file: returns the
  // part of a sentence that names the line of the file which causes the error; "" if the values are
  // wrong without the file. value_of(): returns the values.
  std::string share_in_mistake(const std::function<const char*(const char*)>& value_of) const;
};

// Returns the name of the site file for a program or library of Weft at this absolute path:
// PREFIX/etc/weft.conf, or /etc/weft.conf for the prefix /usr. Returns "" for another path.
std::string site_file_of(const std::string& path);

// Reads the file; a single mistake invalidates all of it. check_algorithms(): returns an error for
// unknown algorithms.
SiteFile read_site_file(const std::string& name, Result<bool> (*check_algorithms)(const Config&));

}  // namespace weft
