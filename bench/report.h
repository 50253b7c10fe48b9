// Results of a measurement: medians and quartiles, the share of communication that is hidden, the
// text table and the JSON file. docs/benchmarking.md explains the definitions.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace bench {

struct Statistic {
  double median = 0, low = 0, high = 0;  // median, and the lower and the upper quartile
  std::vector<double> samples;
};

Statistic statistic(std::vector<double> samples);

struct EngineFigures {
  std::string engine;
  Statistic immediate_us;  // time of starting the collective and waiting at once
  Statistic total_us;      // time of starting it, computing and waiting
};

struct Figures {
  Options options;
  int ranks = 0;
  std::string mpi;   // first line of the MPI library's version text
  std::string weft;  // version of Weft; empty if it is not loaded
  long iterations = 0;
  Statistic blocking_us, computation_us;
  std::vector<EngineFigures> engines;
  long checks = 0, wrong = 0;

  // Returns the shortest time of all candidates that only communicate. *by gets the name of the
  // fastest one.
  double communication_us(std::string* by = nullptr) const;
  // Returns the share of communication that is hidden: (communication + computation - total) /
  // min(communication, computation). It may be negative or exceed 1.
  double hidden(double total_us) const;
};

void print(const Figures& figures);
// Returns false if the file cannot be written.
bool write_json(const Figures& figures, const std::string& path);

}  // namespace bench
