// replay: stretches of the collectives that weft advise has recorded, with the computation between
// them, in the forms between which a program may choose. Why an ordinary MPI program: what it
// measures is what the changed program gets. Computation is counted in iterations, so that who
// takes its core shows. What a call sends is written before, as in a program: memory that another
// core has read and nobody has written since would be read again from that core's cache.
// replay NAME PLAN OUT: the plan (python/weft/advise/stretches.py) is read by
// rank 0; NAME library: its first form alone, which is as it was. OUT gets lines "stretch form
// microseconds": the time of the last rank. Stretch -1 is the very first run of stretch 0, in which
// requests are initialised and Weft has learnt nothing. PLAN.rates keeps how fast each rank
// computes, so that all jobs of a plan compute the same: measured by the first, read by those after
// it.
//   groups; each: size, ranks                             communicators
//   operations; each: collective, bytes, group, operator
//   stretches, forms; for each stretch, form and rank: number of steps, steps
//   c US: computes; b K: makes call K; s K SLOT: starts it; p K SLOT: starts it as a persistent
//   request, which is initialised when it is started first; w SLOT: waits
// The root is the first member.
#include <mpi.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "operation.h"
#include "replay_blocks.h"

namespace {

using bench::Blocks;
using bench::Operation;

struct Step {
  char what = 0;
  double us = 0;
  std::size_t call = 0, slot = 0;
};

struct CallShape {
  std::string collective;
  long bytes = 0;
  std::size_t group = 0;
  std::string op;
};

struct Plan {
  std::vector<std::vector<int>> groups;
  std::vector<CallShape> calls;
  std::size_t stretches = 0, forms = 0;
  // This rank's steps for each stretch and, within it, for each form.
  std::vector<std::vector<Step>> steps;

  const std::vector<Step>& of(std::size_t stretch, std::size_t form) const {
    return steps[stretch * forms + form];
  }
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

Step read_step(std::istream& in) {
  Step step;
  in >> step.what;
  if (step.what == 'c') in >> step.us;
  if (step.what == 'b' || step.what == 's' || step.what == 'p') in >> step.call;
  if (step.what == 's' || step.what == 'p' || step.what == 'w') in >> step.slot;
  return step;
}

Plan parse(const std::string& text, int rank, int ranks) {
  std::istringstream in(text);
  Plan plan;
  std::size_t count = 0;
  in >> count;
  plan.groups.resize(count);
  for (std::vector<int>& group : plan.groups) {
    in >> count;
    group.resize(count);
    for (int& member : group) in >> member;
  }
  in >> count;
  plan.calls.resize(count);
  for (CallShape& call : plan.calls) in >> call.collective >> call.bytes >> call.group >> call.op;
  in >> plan.stretches >> plan.forms;
  for (std::size_t i = 0; i < plan.stretches * plan.forms; ++i) {
    std::vector<Step> mine;
    for (int one = 0; one < ranks; ++one) {
      for (in >> count; count > 0; --count) {
        const Step step = read_step(in);
        if (one == rank) mine.push_back(step);
      }
    }
    plan.steps.push_back(std::move(mine));
  }
  return plan;
}

class Computation {
 public:
  void run(double us) { iterate(static_cast<long>(us * per_us_)); }

  // Finds how many iterations of the computation this rank makes in a microsecond: the most of
  // several tries, or what the file says.
  void take_rate(const std::string& path, int rank, int ranks) {
    std::vector<double> rates(static_cast<std::size_t>(ranks));
    int known = rank == 0 && read_rates(path, &rates) ? 1 : 0;
    MPI_Bcast(&known, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!known) {
      const double mine = measured();
      MPI_Gather(&mine, 1, MPI_DOUBLE, rates.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      if (rank == 0) write_rates(path, rates);
    }
    MPI_Scatter(rates.data(), 1, MPI_DOUBLE, &per_us_, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }

 private:
  static bool read_rates(const std::string& path, std::vector<double>* rates) {
    std::ifstream in(path);
    for (double& rate : *rates) in >> rate;
    return static_cast<bool>(in);
  }

  static void write_rates(const std::string& path, const std::vector<double>& rates) {
    std::ofstream out(path);
    for (const double rate : rates) out << rate << '\n';
  }

  double measured() {
    constexpr long kTry = 200'000;
    double most = 0;
    for (int i = 0; i < 10; ++i) {
      const double began = MPI_Wtime();
      iterate(kTry);
      most = std::max(most, kTry / ((MPI_Wtime() - began) * 1e6));
    }
    return most;
  }

  void iterate(long count) {
    double x = value_;
    for (long i = 0; i < count; ++i) x = x * 0.999999 + 1e-6;
    value_ = x;
  }

  volatile double value_ = 1;
  double per_us_ = 0;
};

using AnyCall = std::variant<Operation, Blocks>;

MPI_Op operator_of(const std::string& name) {
  if (name == "min") return MPI_MIN;
  if (name == "max") return MPI_MAX;
  return name == "prod" ? MPI_PROD : MPI_SUM;
}

AnyCall call_of(const CallShape& shape, MPI_Comm members) {
  int rank = 0, size = 1;
  MPI_Comm_rank(members, &rank);
  MPI_Comm_size(members, &size);
  const auto collective = bench::find_collective(shape.collective);
  if (!collective) return Blocks(shape.collective, shape.bytes, rank, size);
  Operation operation(*collective, shape.bytes, rank, size);
  operation.prepare(1);
  operation.reduce_by(operator_of(shape.op));
  return operation;
}

MPI_Comm communicator_of(const std::vector<int>& group, int rank) {
  const bool member = std::find(group.begin(), group.end(), rank) != group.end();
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, rank, &comm);
  return comm;
}

// Calls, indexed by their number in the plan; nullptr if this rank does not take part.
using Calls = std::vector<std::unique_ptr<AnyCall>>;

// Form: carries out the steps of one form, on communicators of its own. All forms share their
// calls' buffers.
class Form {
 public:
  Form(const Plan& plan, int rank, Computation* computation, Calls* calls)
      : computation_(computation), calls_(*calls) {
    for (const std::vector<int>& group : plan.groups)
      groups_.push_back(communicator_of(group, rank));
    for (const CallShape& shape : plan.calls) comms_.push_back(groups_[shape.group]);
    for (std::size_t i = calls_.size(); i < plan.calls.size(); ++i)
      calls_.push_back(comms_[i] == MPI_COMM_NULL
                           ? nullptr
                           : std::make_unique<AnyCall>(call_of(plan.calls[i], comms_[i])));
    planned_.resize(calls_.size(), MPI_REQUEST_NULL);
  }
  ~Form() {
    for (MPI_Request& request : planned_)
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    for (MPI_Comm& comm : groups_)
      if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
  Form(const Form&) = delete;
  Form& operator=(const Form&) = delete;

  // Carries out these steps. Returns the slowest rank's time in microseconds on rank 0.
  double run(const std::vector<Step>& steps) {
    written_us_ = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (const Step& step : steps) take(step);
    double mine = (MPI_Wtime() - began) * 1e6, last = 0;
    MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return last;
  }

 private:
  void take(const Step& step) {
    if (step.what == 'c') {
      const double taken_us = std::min(step.us, written_us_);
      written_us_ -= taken_us;
      computation_->run(step.us - taken_us);
    } else if (step.what == 'b') {
      rewrite(step.call);
      std::visit([&](auto& call) { call.blocking(comms_[step.call]); }, *calls_[step.call]);
    } else if (step.what == 's') {
      rewrite(step.call);
      MPI_Request* const request = slot(step.slot);
      std::visit([&](auto& call) { call.start(comms_[step.call], request); }, *calls_[step.call]);
    } else if (step.what == 'p') {
      rewrite(step.call);
      MPI_Request* const request = slot(step.slot);
      *request = planned(step.call);
      MPI_Start(request);
    } else {
      MPI_Wait(&requests_[step.slot], MPI_STATUS_IGNORE);
    }
  }

  // A program writes what it sends within the time between two calls, so the next computation is
  // that much shorter.
  void rewrite(std::size_t number) {
    const double began = MPI_Wtime();
    std::visit([](auto& call) { call.rewrite(); }, *calls_[number]);
    written_us_ += (MPI_Wtime() - began) * 1e6;
  }

  MPI_Request* slot(std::size_t number) {
    if (number >= requests_.size()) requests_.resize(number + 1, MPI_REQUEST_NULL);
    return &requests_[number];
  }

  MPI_Request planned(std::size_t number) {
    MPI_Request* const request = &planned_[number];
    const auto initialise = [&](auto& call) { call.initialise(comms_[number], request); };
    if (*request == MPI_REQUEST_NULL) std::visit(initialise, *calls_[number]);
    return *request;
  }

  Computation* const computation_;
  Calls& calls_;
  std::vector<MPI_Comm> groups_, comms_;
  std::vector<MPI_Request> requests_;  // by slot
  std::vector<MPI_Request> planned_;   // by call
  double written_us_ = 0;              // time of writing that no computation is shorter by yet
};

// Runs the first stretch in this form repeatedly, so that caches are warm, the link is as busy as
// in a running program, and Weft has learnt its engine. Returns the first run's time, in
// microseconds.
double warm_up(Form* form, const std::vector<Step>& steps) {
  constexpr double kLeast_us = 300'000;
  constexpr int kMost = 60;
  double first_us = 0, spent_us = 0;
  for (int i = 0; i < kMost && spent_us < kLeast_us; ++i) {
    spent_us += form->run(steps);
    if (i == 0) first_us = spent_us;
    MPI_Bcast(&spent_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }
  return first_us;
}

// Returns the slowest rank's time for these steps on rank 0, in microseconds. Short stretches run
// several times, and the median counts, since another process may disturb one run for a moment.
double timed(Form* form, const std::vector<Step>& steps) {
  constexpr double kLong_us = 50'000;
  constexpr int kMost = 9;
  std::vector<double> us{form->run(steps)};
  MPI_Bcast(us.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const int runs = us[0] * kMost < kLong_us ? kMost : static_cast<int>(kLong_us / us[0]) | 1;
  while (static_cast<int>(us.size()) < runs) us.push_back(form->run(steps));
  const auto middle = us.begin() + runs / 2;
  std::nth_element(us.begin(), middle, us.end());
  return *middle;
}

// Each form runs a stretch once before it is timed, since a link that was idle takes more at once
// than one in the midst of a program.
void replay(const Plan& plan, std::size_t count, int rank, Computation* computation,
            std::ostream& out) {
  Calls calls;
  std::vector<std::unique_ptr<Form>> forms;
  for (std::size_t i = 0; i < count; ++i)
    forms.push_back(std::make_unique<Form>(plan, rank, computation, &calls));
  const auto write = [&](long stretch, std::size_t form, double us) {
    if (rank == 0) out << stretch << ' ' << form << ' ' << us << '\n' << std::flush;
  };
  for (std::size_t stretch = 0; stretch < plan.stretches; ++stretch) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t form = (stretch + i) % count;
      const std::vector<Step>& steps = plan.of(stretch, form);
      if (stretch == 0)
        write(-1, form, warm_up(forms[form].get(), steps));
      else
        forms[form]->run(steps);
      write(static_cast<long>(stretch), form, timed(forms[form].get(), steps));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc == 4) {
    std::ofstream out;
    if (rank == 0) out.open(argv[3], std::ios::app);
    const std::string text = read_at_rank_0(argv[2], rank);
    if (text.empty()) {
      if (rank == 0) std::cerr << "replay: rank 0 finds no " << argv[2] << " on its node\n";
      MPI_Finalize();
      return 3;
    }
    const Plan plan = parse(text, rank, ranks);
    const bool as_it_was = std::string(argv[1]) == "library";
    Computation computation;
    computation.take_rate(std::string(argv[2]) + ".rates", rank, ranks);
    if (plan.stretches > 0) replay(plan, as_it_was ? 1 : plan.forms, rank, &computation, out);
  }
  MPI_Finalize();
  return argc == 4 ? 0 : 2;
}
