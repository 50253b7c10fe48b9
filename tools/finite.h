// Checks options that are numbers, since CLI::Range accepts nan.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

namespace weft {

inline CLI::Validator finite_range(double least, double most) {
  const CLI::Range range(least, most);
  return CLI::Validator(
      [range, least, most](std::string& text) {
        double number = 0;
        const bool is_number = CLI::detail::lexical_cast(text, number) && !std::isnan(number);
        return is_number ? range(text)
                         : text + " is no number from " + CLI::detail::to_string(least) + " to " +
                               CLI::detail::to_string(most);
      },
      "FLOAT");
}

}  // namespace weft
