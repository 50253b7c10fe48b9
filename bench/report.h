// Report: medians and quartiles, the hidden share, the text table and the JSON file.
// Why: one place for the definitions; docs/benchmarking.md explains them.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace bench {

struct Statistic {
  double median = 0, low = 0, high = 0;  // low and high: the quartiles
  std::vector<double> samples;
};

Statistic statistic(std::vector<double> samples);

struct EngineFigures {
  std::string engine;
  Statistic immediate_us;  // start and wait at once
  Statistic total_us;      // start, compute, wait
};

struct Figures {
  Options options;
  int ranks = 0;
  std::string mpi;   // the library's own words, first line
  std::string weft;  // its version; empty: not loaded
  long iterations = 0;
  Statistic blocking_us, computation_us;
  std::vector<EngineFigures> engines;
  long checks = 0, wrong = 0;

  // The shortest time of any candidate that does nothing but communicate.
  double communication_us(std::string* by = nullptr) const;
  // (communication + computation - total) / min(communication, computation): signed, not clamped.
  double hidden(double total_us) const;
};

void print(const Figures& figures);
// False: the file cannot be written.
bool write_json(const Figures& figures, const std::string& path);

}  // namespace bench
