// Sampling: measures communication, computation and both together in many short repetitions. All
// engines and all amounts of computation are measured in one job, in a new random order in each
// repetition (the same on all ranks), since the machine's state drifts. Every sample is written at
// once, so that a run that is stopped keeps what it has measured. docs/benchmarking.md has the
// definitions.
#pragma once

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "work.h"

namespace bench {

// Communication: a collective that several engines can carry out.
class Communication {
 public:
  virtual ~Communication() = default;
  virtual void prepare(int salt) = 0;
  virtual void blocking() = 0;
  virtual void start(std::size_t engine) = 0;
  virtual void wait() = 0;
  virtual bool correct() const = 0;  // whether the last call's result was right
};

struct SamplingOptions {
  std::string collective = "allreduce";
  long bytes = 1 << 20;
  std::vector<std::string> engines = {"native"};
  // Amounts of computation to measure; empty for communication alone and the time of an iteration.
  std::vector<long> iterations;
  WorkChoice work;
  double seconds = 30;    // the measurement stops after this time
  int repetitions = 200;  // the measurement stops after this many repetitions
  double tolerance = 0.02;
  // Pause before each measurement in us; -1 for 15 ms from 4 KiB on and none below.
  long pause_us = -1;
  unsigned seed = 1;
  std::string samples;  // JSON Lines file that rank 0 writes; empty for the standard output
};

// Parses the command line into *options. Returns false if it is wrong, and says why in *problem.
bool parse(int argc, char** argv, SamplingOptions* options, std::string* problem);

// Returns half the width of the 95 % confidence interval of the median (by order statistics),
// divided by the median.
double relative_half_width(std::vector<double> samples);

class Sampling {
 public:
  Sampling(const SamplingOptions& options, Communication* communication, Work* work);
  // Measures, and writes the samples. Returns the exit status of the program.
  int run();

 private:
  enum class Kind { blocking, immediate, computation, overlapped };
  struct Cell {
    Kind kind;
    std::size_t engine = 0;
    long iterations = 0;
    std::vector<double> samples_us = {};
    bool settled = false;
  };
  struct Times {
    double total_us = 0, computation_us = 0;
    bool right = true;  // whether the results of all ranks were right
  };

  void add_cells();
  void warm_up();
  void calibrate();
  bool all_settled() const;
  void repetition();
  Times once(const Cell& cell);
  Times timed(const Cell& cell);
  void write_job();
  void write_begin(const Cell& cell);
  void write_sample(const Cell& cell, const Times& times);
  void write_end();
  std::string name_of(const Cell& cell) const;

  SamplingOptions options_;
  Communication* communication_;
  Work* work_;
  std::FILE* out_ = nullptr;  // on rank 0, the file to write; otherwise nullptr
  std::mt19937 order_;
  std::vector<Cell> cells_;
  double begin_ = 0;
  int salt_ = 0;
  long checks_ = 0, wrong_ = 0;
  bool out_of_time_ = false;
};

}  // namespace bench
