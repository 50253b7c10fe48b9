// The site file: defaults that an administrator sets for all users of an installation, in lines
// NAME = VALUE. The names are those of Weft's variables; the environment and options win.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/result.h"

namespace weft {

struct SiteFile {
  // Names and values in the order of the lines; empty if there is no file, or a mistake in it.
  std::vector<std::pair<std::string, std::string>> values;
  // The sentence for the user about a mistake; empty if there is none.
  std::string mistake;

  std::string name{};        // of the file
  std::vector<int> lines{};  // of the values

  // Returns the value of a variable; nullptr if the file does not set it.
  const char* find(const char* name) const;
  // value_of: values, some of which are the file's, that are wrong together. Returns which line of
  // the file makes them so, to follow the reason; "" if they are wrong without the file.
  std::string share_in_mistake(const std::function<const char*(const char*)>& value_of) const;
};

// Returns the name of the site file for a program or library of Weft's at this absolute path:
// PREFIX/etc/weft.conf, or /etc/weft.conf for the prefix /usr. Returns "" for another path.
std::string site_file_of(const std::string& path);

// Reads the file, of which one mistake leaves out all. check_algorithms refuses unknown algorithms.
SiteFile read_site_file(const std::string& name, Result<bool> (*check_algorithms)(const Config&));

}  // namespace weft
