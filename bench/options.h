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
  double ratio = 1.0;   // computation as a share of the best candidate's communication
  long iterations = 0;  // of the computation; 0: as many as `ratio` asks for
  bool latency = false;
  int batch = 200;     // calls per batch of --latency
  long pause_us = -1;  // rest before each measurement; -1: 15 ms from 4 KiB on, else none
  unsigned seed = 1;
  std::string json;  // file to write on rank 0; empty: none
};

// Words of a command line: 1.5, 2MiB, native,thread; nullopt: no such thing.
std::optional<double> number(const std::string& text, double low, double high);
std::optional<long> size_in_bytes(const std::string& text);
std::vector<std::string> list(const std::string& text);

// nullopt: `problem` says what is wrong with the command line.
std::optional<Options> parse(int argc, char** argv, std::string* problem);
const char* usage();

}  // namespace bench
