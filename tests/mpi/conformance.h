// An ordinary MPI program that compares collectives in every form with the MPI library's own
// blocking ones. The latter are called on communicators with the hint weft_engine=native, so that
// Weft leaves them to the library. The program must pass without Weft and with every engine and
// algorithm of Weft.
#pragma once

#include <mpi.h>

#include <string>

namespace conformance {

struct Options {
  bool results = true, flight = true, lifetime = true;
  // Whether the group `results` also compares blocking calls with the oracle.
  bool blocking = false;
  // Tests wrong arguments; MPI libraries built without argument checks crash.
  bool mistakes = false;
  int largest_count = 100003;
  // Names of types ("negative", "mixed"), calls ("MPI_Gather_init") and so on that are not tested,
  // since the MPI library itself is wrong there.
  std::string without;
  std::string only;  // collectives that the group `results` tests, separated by commas; empty: all
  int limit_s = 120;

  bool left_out(const std::string& name) const {
    return ("," + without + ",").find("," + name + ",") != std::string::npos;
  }
};

// Counts the cases and failures of this rank. All ranks must call each group.
class Tally {
 public:
  explicit Tally(int rank) : rank_(rank) {}

  // Begins a case. Its name is printed if it fails or hangs.
  void begin(const std::string& name);
  // Ends the case. `why` is printed for the first few failures.
  void end(bool good, const char* why = "differs");
  // Records that in this case the MPI library itself is wrong, without Weft.
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
// Returns a duplicate whose collectives Weft leaves to the MPI library.
MPI_Comm oracle_of(MPI_Comm comm);
// Sleeps for a short time, so that polling ranks yield their core if there are more ranks than
// cores.
void rest();

void check_results(const Options& options, Tally* tally);   // results.cc
void check_flight(bool threads, Tally* tally);              // flight.cc
void check_lifetime(const Options& options, Tally* tally);  // lifetime.cc
void check_mistakes(Tally* tally);                          // lifetime.cc
void check_blocking(Tally* tally);                          // blocking.cc

}  // namespace conformance
