// osu: the overlap of every non-blocking collective, by the method of OSU's benchmarks (osu_i*):
// how long the call takes alone, then around a loop that computes until its clock says so; times
// are means over repetitions and over ranks. Why: those who know OSU's figures can set Weft's
// engines beside their library by them. docs/benchmarking.md says what these figures do not show.
// Engines are chosen per communicator with an info hint, which MPI libraries ignore. Each call's
// result is compared with that of the library's blocking call.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "calls.h"
#include "kernel.h"
#include "options.h"

namespace {

using calls::Collective;
using calls::Data;

constexpr int kWarmUps = 2;

const char kUsage[] =
    "usage: osu [--bytes 256KiB] [--calls allreduce,...] [--engines native,thread,...]\n"
    "           [--repetitions 10] [--pause-us 0] [--json FILE]\n";

struct Settings {
  long bytes = 256 * 1024;
  std::vector<std::string> calls;  // none: all
  std::vector<std::string> engines = {"native"};
  int repetitions = 10;
  long pause_us = 0;
  std::string json;
};

// Means over repetitions and ranks, in microseconds.
struct Row {
  std::string call, engine;
  double alone_us = 0, computation_us = 0, total_us = 0;

  // In per cent, as OSU prints it: never below 0.
  double overlap() const {
    return std::max(0.0, 100 - (total_us - computation_us) / alone_us * 100);
  }
};

class Measurement {
 public:
  Measurement(const Settings& settings, int rank, int ranks) : settings_(settings), rank_(rank) {
    for (const std::string& engine : settings.engines) {
      MPI_Info info;
      MPI_Info_create(&info);
      MPI_Info_set(info, "weft_engine", engine.c_str());
      MPI_Comm comm;
      MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
      MPI_Info_free(&info);
      data_.push_back(std::make_unique<Data>(settings.bytes, rank, ranks, comm));
    }
    plain_ = std::make_unique<Data>(settings.bytes, rank, ranks);
  }
  ~Measurement() {
    for (auto& one : data_) {
      MPI_Comm comm = one->comm;
      MPI_Comm_free(&comm);
    }
  }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  // An engine after the other for each call.
  std::vector<Row> take() {
    std::vector<Row> rows;
    for (const Collective& call : calls::collectives()) {
      const auto& wanted = settings_.calls;
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), call.name) == wanted.end()) {
        continue;
      }
      for (std::size_t i = 0; i < data_.size(); ++i) {
        check(call, *data_[i]);
        rows.push_back(measure(call, *data_[i]));
        rows.back().call = std::string("i") + call.name;
        rows.back().engine = settings_.engines[i];
      }
    }
    return rows;
  }
  long checks() const { return checks_; }
  long wrong() const { return wrong_; }

 private:
  void fill(Data& data) const {
    for (std::size_t i = 0; i < data.in.size(); ++i) {
      data.in[i] = rank_ + static_cast<double>(i % 1009);
    }
    std::fill(data.out.begin(), data.out.end(), rank_ == 0 ? 7.0 : -1.0);
  }

  void check(const Collective& call, Data& data) {
    fill(*plain_), fill(data);
    call.blocking(*plain_);
    once(call, data, 0);
    int wrong = data.out != plain_->out;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    ++checks_, wrong_ += wrong;
  }

  // Computes until `until_us` have passed; returns how long it has computed.
  double compute(double until_us) {
    const double begin = MPI_Wtime();
    double passed_us = 0;
    while (until_us > 0 && passed_us < until_us) {
      kernel_.run(1);
      passed_us = (MPI_Wtime() - begin) * 1e6;
    }
    return passed_us;
  }

  struct Times {
    double total_us, computation_us;
  };
  Times once(const Collective& call, Data& data, double computation_us) {
    MPI_Request request;
    const double begin = MPI_Wtime();
    call.start(data, &request);
    const double computed_us = compute(computation_us);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return {(MPI_Wtime() - begin) * 1e6, computed_us};
  }

  // This rank's means.
  Times repeat(const Collective& call, Data& data, double computation_us) {
    Times sum{0, 0};
    for (int i = -kWarmUps; i < settings_.repetitions; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(settings_.pause_us));
      MPI_Barrier(MPI_COMM_WORLD);
      const Times one = once(call, data, computation_us);
      if (i < 0) continue;
      sum.total_us += one.total_us, sum.computation_us += one.computation_us;
    }
    return {sum.total_us / settings_.repetitions, sum.computation_us / settings_.repetitions};
  }

  Row measure(const Collective& call, Data& data) {
    const Times alone = repeat(call, data, 0);
    const Times both = repeat(call, data, alone.total_us);
    const double mine[3] = {alone.total_us, both.computation_us, both.total_us};
    double sums[3];
    MPI_Allreduce(mine, sums, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (double& sum : sums) sum /= data.ranks;
    return {"", "", sums[0], sums[1], sums[2]};
  }

  const Settings& settings_;
  const int rank_;
  std::vector<std::unique_ptr<Data>> data_;  // of each engine
  std::unique_ptr<Data> plain_;              // on the communicator without a hint
  bench::Kernel kernel_;
  long checks_ = 0, wrong_ = 0;
};

std::string library() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string words(version, static_cast<std::size_t>(length));
  words = words.substr(0, words.find('\n'));
  for (char& letter : words) {
    if (letter == '"' || letter == '\\' || static_cast<unsigned char>(letter) < ' ') letter = ' ';
  }
  return words;
}

bool write_json(const Settings& settings, int ranks, const std::vector<Row>& rows) {
  std::ofstream out(settings.json);
  out << "{\"schema\": \"weft-osu-run/1\", \"mpi\": \"" << library() << "\", \"ranks\": " << ranks
      << ", \"bytes\": " << settings.bytes << ", \"repetitions\": " << settings.repetitions
      << ",\n \"rows\": [";
  for (const Row& row : rows) {
    out << (&row == rows.data() ? "\n" : ",\n") << "  {\"call\": \"" << row.call
        << "\", \"engine\": \"" << row.engine << "\", \"alone_us\": " << row.alone_us
        << ", \"computation_us\": " << row.computation_us << ", \"total_us\": " << row.total_us
        << ", \"overlap\": " << row.overlap() << "}";
  }
  out << "\n ]}\n";
  return static_cast<bool>(out.flush());
}

void print(const Settings& settings, int ranks, const std::vector<Row>& rows) {
  std::printf("%s, %d ranks, %ld bytes\n", library().c_str(), ranks, settings.bytes);
  std::printf("%-22s %-9s %12s %12s %12s %10s\n", "call", "engine", "overall us", "compute us",
              "alone us", "overlap %");
  for (const Row& row : rows) {
    std::printf("%-22s %-9s %12.2f %12.2f %12.2f %10.2f\n", row.call.c_str(), row.engine.c_str(),
                row.total_us, row.computation_us, row.alone_us, row.overlap());
  }
}

bool set(Settings* settings, const std::string& name, const std::string& value) {
  if (value.empty()) return false;
  if (name == "--json") settings->json = value;
  if (name == "--calls") settings->calls = bench::list(value);
  if (name == "--engines") settings->engines = bench::list(value);
  if (name == "--json" || name == "--calls" || name == "--engines") return true;
  if (name == "--bytes") {
    settings->bytes = bench::size_in_bytes(value).value_or(0);
    return settings->bytes >= 8 && settings->bytes <= 1L << 30;
  }
  const auto amount = bench::number(value, 0, 1e7);
  if (name == "--repetitions" && amount) settings->repetitions = static_cast<int>(*amount);
  if (name == "--pause-us" && amount) settings->pause_us = static_cast<long>(*amount);
  const bool known = name == "--repetitions" || name == "--pause-us";
  return known && amount && settings->repetitions > 0;
}

int measure(const Settings& settings, int rank, int ranks) {
  Measurement measurement(settings, rank, ranks);
  const std::vector<Row> rows = measurement.take();
  if (rank == 0) {
    print(settings, ranks, rows);
    std::printf("%ld results checked, %ld wrong\n", measurement.checks(), measurement.wrong());
    if (!settings.json.empty() && !write_json(settings, ranks, rows)) {
      std::fprintf(stderr, "osu: cannot write %s\n", settings.json.c_str());
      return 1;
    }
  }
  return measurement.wrong() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Settings settings;
  bool usable = ranks > 1 && argc % 2 == 1;
  for (int i = 1; usable && i < argc; i += 2) usable = set(&settings, argv[i], argv[i + 1]);
  if (!usable && rank == 0) {
    std::fprintf(stderr, "osu: run it on two ranks or more, with these options\n%s", kUsage);
  }
  const int status = usable ? measure(settings, rank, ranks) : 2;
  MPI_Finalize();
  return status;
}
