// plan: the program that `weft plan` runs under Weft. For each size it initialises one persistent
// collective and, if asked to, starts it repeatedly. Rank 0 prints a line of JSON for each size,
// with times of the slowest rank. It is an ordinary MPI program; what Weft has decided is in Weft's
// summary.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "options.h"
#include "persistent.h"

namespace {

struct Settings {
  std::string collective = "allreduce";
  std::vector<long> bytes = {8};
  MPI_Datatype type = MPI_DOUBLE;
  MPI_Op op = MPI_SUM;
  int repetitions = 0;
};

template <class Value>
bool take(const std::map<std::string, Value>& known, const std::string& word, Value* value) {
  const auto found = known.find(word);
  if (found != known.end()) *value = found->second;
  return found != known.end();
}

bool set(Settings* settings, const std::string& name, const std::string& value) {
  const std::map<std::string, MPI_Datatype> types = {{"double", MPI_DOUBLE},
                                                     {"float", MPI_FLOAT},
                                                     {"int", MPI_INT},
                                                     {"long", MPI_LONG},
                                                     {"char", MPI_SIGNED_CHAR}};
  const std::map<std::string, MPI_Op> ops = {
      {"sum", MPI_SUM}, {"prod", MPI_PROD}, {"max", MPI_MAX}, {"min", MPI_MIN}};
  if (name == "--type") return take(types, value, &settings->type);
  if (name == "--op") return take(ops, value, &settings->op);
  if (name == "--repetitions") {
    settings->repetitions = std::atoi(value.c_str());
    return settings->repetitions >= 0;
  }
  if (name == "--collective") {
    settings->collective = value;
    return true;
  }
  if (name != "--bytes") return false;
  settings->bytes.clear();
  for (const std::string& word : bench::list(value)) {
    const auto size = bench::size_in_bytes(word);
    if (!size) return false;
    settings->bytes.push_back(*size);
  }
  return !settings->bytes.empty();
}

// Persistent: one persistent collective of `count` elements, or with blocks of `count` elements.
class Persistent {
 public:
  Persistent(const Settings& settings, int count, int size)
      : settings_(settings), count_(count), counts_(size, count), places_(size) {
    for (int i = 0; i < size; ++i) places_[static_cast<std::size_t>(i)] = i * count;
    int element = 0;
    MPI_Type_size(settings.type, &element);
    const auto bytes = static_cast<std::size_t>(element) * static_cast<std::size_t>(count);
    send_.assign(bytes * static_cast<std::size_t>(size) + 1, 0);
    recv_ = send_;
  }

  // Initialises the collective. Returns false if the MPI library lacks it.
  bool initialise(MPI_Request* request) {
    bench::need_persistent();
    return of_data(request) || of_irregular_data(request) || of_reduction(request);
  }

 private:
  bool of_data(MPI_Request* request) {
    const auto is = [&](const char* name) { return settings_.collective == name; };
    const MPI_Datatype t = settings_.type;
    const MPI_Comm c = MPI_COMM_WORLD;
    void *const in = send_.data(), *const out = recv_.data();
    if (is("barrier"))
      MPI_Barrier_init(c, MPI_INFO_NULL, request);
    else if (is("bcast"))
      MPI_Bcast_init(out, count_, t, 0, c, MPI_INFO_NULL, request);
    else if (is("gather"))
      MPI_Gather_init(in, count_, t, out, count_, t, 0, c, MPI_INFO_NULL, request);
    else if (is("scatter"))
      MPI_Scatter_init(in, count_, t, out, count_, t, 0, c, MPI_INFO_NULL, request);
    else if (is("allgather"))
      MPI_Allgather_init(in, count_, t, out, count_, t, c, MPI_INFO_NULL, request);
    else if (is("alltoall"))
      MPI_Alltoall_init(in, count_, t, out, count_, t, c, MPI_INFO_NULL, request);
    else
      return false;
    return true;
  }

  bool of_irregular_data(MPI_Request* request) {
    if (settings_.collective != "allgatherv") return false;
    MPI_Allgatherv_init(send_.data(), count_, settings_.type, recv_.data(), counts_.data(),
                        places_.data(), settings_.type, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    return true;
  }

  bool of_reduction(MPI_Request* request) {
    const auto is = [&](const char* name) { return settings_.collective == name; };
    const MPI_Datatype t = settings_.type;
    const MPI_Op op = settings_.op;
    const MPI_Comm c = MPI_COMM_WORLD;
    void *const in = send_.data(), *const out = recv_.data();
    if (is("reduce"))
      MPI_Reduce_init(in, out, count_, t, op, 0, c, MPI_INFO_NULL, request);
    else if (is("allreduce"))
      MPI_Allreduce_init(in, out, count_, t, op, c, MPI_INFO_NULL, request);
    else if (is("reduce_scatter"))
      MPI_Reduce_scatter_init(in, out, counts_.data(), t, op, c, MPI_INFO_NULL, request);
    else if (is("reduce_scatter_block"))
      MPI_Reduce_scatter_block_init(in, out, count_, t, op, c, MPI_INFO_NULL, request);
    else if (is("scan"))
      MPI_Scan_init(in, out, count_, t, op, c, MPI_INFO_NULL, request);
    else if (is("exscan"))
      MPI_Exscan_init(in, out, count_, t, op, c, MPI_INFO_NULL, request);
    else
      return false;
    return true;
  }

  const Settings& settings_;
  const int count_;
  const std::vector<int> counts_;
  std::vector<int> places_;
  std::vector<char> send_, recv_;
};

double slowest(double seconds) {
  double most = 0;
  MPI_Reduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return most;
}

// Returns the time of one start and wait in seconds: the median of several batches.
double replay_s(MPI_Request* request, int repetitions) {
  constexpr int kBatches = 7;
  std::vector<double> times;
  for (int batch = 0; batch < kBatches; ++batch) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (int i = 0; i < repetitions; ++i) {
      MPI_Start(request);
      MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    times.push_back(slowest(MPI_Wtime() - began) / repetitions);
  }
  std::sort(times.begin(), times.end());
  return times[kBatches / 2];
}

// Measures the collective for one size, and prints a line of JSON. Returns false if the MPI library
// lacks the collective.
bool plan(const Settings& settings, long bytes, int rank, int size) {
  int element = 0;
  MPI_Type_size(settings.type, &element);
  Persistent persistent(settings, static_cast<int>(bytes / element), size);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  if (!persistent.initialise(&request)) return false;
  const double init_s = slowest(MPI_Wtime() - began);
  const int repetitions = settings.repetitions;
  const double call_s = repetitions > 0 ? replay_s(&request, repetitions) : 0;
  MPI_Request_free(&request);
  if (rank == 0)
    std::printf("{\"bytes\":%ld,\"init_us\":%.1f,\"call_us\":%.3f}\n", bytes, init_s * 1e6,
                call_s * 1e6);
  return true;
}

std::optional<Settings> parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i + 1 < argc; i += 2)
    if (!set(&settings, argv[i], argv[i + 1])) return std::nullopt;
  return argc % 2 == 1 ? std::optional(settings) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto settings = parse(argc, argv);
  bool good = settings.has_value();
  if (good)
    for (const long bytes : settings->bytes) good = good && plan(*settings, bytes, rank, size);
  if (!good && rank == 0)
    std::fputs(
        "usage: plan [--collective allreduce] [--bytes 8,4KiB] [--type double|float|int|long|char] "
        "[--op sum|prod|max|min] [--repetitions 0]\n",
        stderr);
  MPI_Finalize();
  return good ? 0 : 2;
}
