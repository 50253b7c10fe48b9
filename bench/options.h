// Options of the measuring program. Every rank parses the same command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operation.h"

namespace bench {

struct Options {
  std::string collective_name = "allreduce";
  Collective collective = Collective::allreduce;
  long bytes = 2 << 20;
  std::vector<std::string> engines = {"native"};
  int repetitions = 9;
  // Time of the computation, as a multiple of the fastest candidate's communication.
  double ratio = 1.0;
  long iterations = 0;  // iterations of the computation; 0 for as many as `ratio` asks for
  bool latency = false;
  int batch = 200;  // number of calls in a batch of --latency
  // Pause before each measurement in us; -1 for 15 ms from 4 KiB on and none below.
  long pause_us = -1;
  unsigned seed = 1;
  std::string json;  // name of the JSON file that rank 0 writes; empty for none
};

// Parse words of a command line, such as 1.5, 2MiB or native,thread. They return nothing for a word
// of another form.
std::optional<double> number(const std::string& text, double low, double high);
std::optional<long> size_in_bytes(const std::string& text);
std::vector<std::string> list(const std::string& text);

// Parses the command line. Returns nothing if it is wrong, and says why in *problem.
std::optional<Options> parse(int argc, char** argv, std::string* problem);
const char* usage();

}  // namespace bench
