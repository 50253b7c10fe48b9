// replay: calls that weft advise has recorded, run again with the computation behind them, in the
// forms between which a program may choose. Why an ordinary MPI program: what it measures is what
// the changed program gets. Each rank comes as late as it came in a recorded call, calls, and
// computes for as long as the result was left alone; as it is and non-blocking take turns. A sample
// is the time of the last rank. Computation is counted in iterations, so that who takes its core
// shows. replay NAME PLAN OUT: the plan is read by rank 0, line by line:
//   collective bytes nonblocking samples      a site
//   window late late ...                      a sample: microseconds; for each rank, -1: not a
//   member
// The root is the first member. At the end of OUT come lines "site NAME microseconds ..." and, of a
// blocking call, "site NAME-nonblocking microseconds ...".
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "operation.h"
#include "replay_blocks.h"

namespace {

using bench::Blocks;
using bench::Operation;

struct Sample {
  double window = 0;
  std::vector<double> late;
};

struct Site {
  std::string collective;
  long bytes = 0;
  bool nonblocking = false;
  std::vector<Sample> samples;
};

std::string read_at_rank_0(const char* path, int rank) {
  std::string text;
  if (rank == 0) {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    text = all.str();
  }
  auto count = static_cast<int>(text.size());
  MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(count));
  MPI_Bcast(text.data(), count, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

std::vector<Site> parse(const std::string& text, int ranks) {
  std::istringstream in(text);
  std::vector<Site> sites;
  std::size_t samples = 0;
  for (Site site; in >> site.collective >> site.bytes >> site.nonblocking >> samples; site = {}) {
    for (; samples > 0; --samples) {
      Sample& sample = site.samples.emplace_back();
      in >> sample.window;
      sample.late.resize(static_cast<std::size_t>(ranks));
      for (double& late : sample.late) in >> late;
    }
    sites.push_back(site);
  }
  return sites;
}

// Iterations are as many as the fastest of several tries makes in a microsecond.
class Computation {
 public:
  Computation() {
    constexpr long kTry = 200'000;
    for (int i = 0; i < 10; ++i) {
      const double began = MPI_Wtime();
      iterate(kTry);
      per_us_ = std::max(per_us_, kTry / ((MPI_Wtime() - began) * 1e6));
    }
  }
  void run(double us) { iterate(static_cast<long>(us * per_us_)); }

 private:
  void iterate(long count) {
    double x = value_;
    for (long i = 0; i < count; ++i) x = x * 0.999999 + 1e-6;
    value_ = x;
  }

  volatile double value_ = 1;
  double per_us_ = 0;
};

std::variant<Operation, Blocks> call_of(const Site& site, MPI_Comm members) {
  int rank = 0, size = 1;
  MPI_Comm_rank(members, &rank);
  MPI_Comm_size(members, &size);
  const auto collective = bench::find_collective(site.collective);
  if (!collective) return Blocks(site.collective, site.bytes, size);
  Operation operation(*collective, site.bytes, rank, size);
  operation.prepare(1);
  return operation;
}

class Replay {
 public:
  Replay(const Site& site, MPI_Comm members, Computation* computation)
      : site_(site), members_(members), computation_(computation), call_(call_of(site, members)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank_);
  }

  // Of the last rank, at the first member: as it is, then of a blocking call its non-blocking form.
  std::vector<std::vector<double>> run() {
    constexpr int kWarm = 3;
    std::vector<bool> forms = {site_.nonblocking};
    if (!site_.nonblocking) forms.push_back(true);
    for (int i = 0; i < kWarm; ++i)
      for (const bool nonblocking : forms) once(nonblocking, site_.samples.front());
    std::vector<std::vector<double>> mine(forms.size()), last(forms.size());
    for (const Sample& sample : site_.samples)
      for (std::size_t i = 0; i < forms.size(); ++i) mine[i].push_back(once(forms[i], sample));
    for (std::size_t i = 0; i < forms.size(); ++i) {
      last[i].resize(mine[i].size());
      MPI_Reduce(mine[i].data(), last[i].data(), static_cast<int>(mine[i].size()), MPI_DOUBLE,
                 MPI_MAX, 0, members_);
    }
    return last;
  }

 private:
  // Microseconds of this rank.
  double once(bool nonblocking, const Sample& sample) {
    MPI_Barrier(members_);
    const double began = MPI_Wtime();
    computation_->run(sample.late[static_cast<std::size_t>(world_rank_)]);
    if (nonblocking) {
      MPI_Request request;
      std::visit([&](auto& call) { call.start(members_, &request); }, call_);
      computation_->run(sample.window);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      std::visit([&](auto& call) { call.blocking(members_); }, call_);
      computation_->run(sample.window);
    }
    return (MPI_Wtime() - began) * 1e6;
  }

  const Site& site_;
  const MPI_Comm members_;
  Computation* const computation_;
  std::variant<Operation, Blocks> call_;
  int world_rank_ = 0;
};

std::string lines_of(int site, const std::string& name,
                     const std::vector<std::vector<double>>& times) {
  std::ostringstream out;
  for (std::size_t i = 0; i < times.size(); ++i) {
    out << site << ' ' << name << (i == 0 ? "" : "-nonblocking");
    for (const double us : times[i]) out << ' ' << us;
    out << '\n';
  }
  return out.str();
}

// The first member's result comes to rank 0, which need not be one.
std::string brought_to_rank_0(const std::string& text, int from, int rank) {
  if (from == 0) return text;
  auto count = static_cast<int>(text.size());
  std::string found;
  if (rank == from) {
    MPI_Send(&count, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Send(text.data(), count, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  } else if (rank == 0) {
    MPI_Recv(&count, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    found.resize(static_cast<std::size_t>(count));
    MPI_Recv(found.data(), count, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return found;
}

std::string replay(const Site& site, int number, const std::string& name, int rank,
                   Computation* computation) {
  const auto& late = site.samples.front().late;
  const auto is_member = [](double one) { return one >= 0; };
  const auto first =
      static_cast<int>(std::find_if(late.begin(), late.end(), is_member) - late.begin());
  const bool member = is_member(late[static_cast<std::size_t>(rank)]);
  MPI_Comm members;
  MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, rank, &members);
  std::string text;
  if (member) {
    text = lines_of(number, name, Replay(site, members, computation).run());
    MPI_Comm_free(&members);
  }
  return brought_to_rank_0(text, first, rank);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc == 4) {
    Computation computation;
    std::ofstream out;
    if (rank == 0) out.open(argv[3], std::ios::app);
    int number = 0;
    for (const Site& site : parse(read_at_rank_0(argv[2], rank), ranks)) {
      const std::string text = replay(site, number++, argv[1], rank, &computation);
      if (rank == 0) out << text << std::flush;
    }
  }
  MPI_Finalize();
  return argc == 4 ? 0 : 2;
}
