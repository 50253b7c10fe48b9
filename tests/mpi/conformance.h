// Conformance: an ordinary MPI program that holds collectives in every form against the MPI
// library's own blocking ones. Those run on communicators that carry the hint weft_engine=native,
// so that they are never Weft's.
// Why: the same program must pass with and without Weft, under every engine and algorithm.
#pragma once

#include <mpi.h>

#include <string>

namespace conformance {

struct Options {
  bool results = true, flight = true, lifetime = true;
  bool blocking = false;  // the results group holds blocking calls against the oracle, too
  bool mistakes = false;  // not for libraries built without argument checks: they crash
  int largest_count = 100003;
  // Types ("negative", "mixed"), calls ("MPI_Gather_init") and the like that are left out because
  // a library's own call is faulty.
  std::string without;
  std::string only;  // collectives of the results group, with commas between them; empty: all
  int limit_s = 120;

  bool left_out(const std::string& name) const {
    return ("," + without + ",").find("," + name + ",") != std::string::npos;
  }
};

// Counts cases and failures of this rank; each group is called by all ranks.
class Tally {
 public:
  explicit Tally(int rank) : rank_(rank) {}

  // Names the case that begins: shown if it fails or hangs.
  void begin(const std::string& name);
  // Ends the case; `why` is shown for the first few failures.
  void end(bool good, const char* why = "differs");
  // The library itself is wrong in this case, without Weft in between.
  void library_fault(const char* what);
  void skip(const std::string& name, const char* why);

  long cases() const { return cases_; }
  long failures() const { return failures_; }
  long library_faults() const { return library_faults_; }

 private:
  int rank_;
  long cases_ = 0, failures_ = 0, library_faults_ = 0;
};

int rank_of(MPI_Comm comm);
int size_of(MPI_Comm comm);
// A duplicate whose collectives Weft leaves to the MPI library.
MPI_Comm oracle_of(MPI_Comm comm);
// A short rest, so that polling ranks leave the core to others when there are more ranks than
// cores.
void rest();

void check_results(const Options& options, Tally* tally);   // results.cc
void check_flight(bool threads, Tally* tally);              // flight.cc
void check_lifetime(const Options& options, Tally* tally);  // lifetime.cc
void check_mistakes(Tally* tally);                          // lifetime.cc
void check_blocking(Tally* tally);                          // blocking.cc

}  // namespace conformance
