// Sampling: measures communication, computation and both at once, in many small repetitions.
// Why one job: all engines and all amounts of computation are measured interleaved, in a new random
// order each time (the same on all ranks), since machines drift. Every sample is written at once,
// so that a run that is stopped keeps what it measured. docs/benchmarking.md has the definitions.
#pragma once

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "work.h"

namespace bench {

// A collective that several engines can carry out.
class Communication {
 public:
  virtual ~Communication() = default;
  virtual void prepare(int salt) = 0;
  virtual void blocking() = 0;
  virtual void start(std::size_t engine) = 0;
  virtual void wait() = 0;
  virtual bool correct() const = 0;  // of the last call
};

struct SamplingOptions {
  std::string collective = "allreduce";
  long bytes = 1 << 20;
  std::vector<std::string> engines = {"native"};
  std::vector<long> iterations;  // one for each amount; empty: communication alone, calibration
  WorkChoice work;
  double seconds = 30;    // stop after these
  int repetitions = 200;  // stop after these
  double tolerance = 0.02;
  long pause_us = -1;  // rest before each measurement; -1: 15 ms from 4 KiB on, else none
  unsigned seed = 1;
  std::string samples;  // JSON Lines file of rank 0; empty: standard output
};

// Fills options; false: `problem` says what is wrong with the command line.
bool parse(int argc, char** argv, SamplingOptions* options, std::string* problem);

// Half-width of the 95 % interval of the median (order statistics) as a share of it.
double relative_half_width(std::vector<double> samples);

class Sampling {
 public:
  Sampling(const SamplingOptions& options, Communication* communication, Work* work);
  // Measures and writes; the program's exit status.
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
    bool right = true;  // the results of all ranks
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
  std::FILE* out_ = nullptr;  // on rank 0
  std::mt19937 order_;
  std::vector<Cell> cells_;
  double begin_ = 0;
  int salt_ = 0;
  long checks_ = 0, wrong_ = 0;
  bool out_of_time_ = false;
};

}  // namespace bench
