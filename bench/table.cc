// table: measures the time of every collective call in every form, and of point-to-point calls
// besides. It answers whether Weft makes any call slower: two jobs, one with and one without Weft,
// take turns often. Each figure is the median over samples, each of which is the slowest rank's
// mean over several calls. All calls are sampled in turn, so that a change of the machine's state
// affects all of them. It prints "call form bytes least median", with times in microseconds per
// call, one line for each call, form and size.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calls.h"
#include "options.h"
#include "persistent.h"

namespace {

using calls::Call;
using calls::Collective;
using calls::collectives;
using calls::Data;
using calls::Start;

#define WORLD MPI_COMM_WORLD
#define REAL MPI_DOUBLE
#define IN d.in.data()
#define OUT d.out.data()

struct Settings {
  std::vector<long> bytes = {8, 1024, 64 * 1024, 1024 * 1024};
  std::vector<std::string> calls;  // calls to measure; empty for all
  std::vector<std::string> forms;  // forms to measure; empty for all
  int samples = 5;
  double sample_ms = 1;
  int least_calls = 4;
};

const char kUsage[] =
    "table [--bytes N,N,...] [--calls allreduce,...]\n"
    "      [--forms blocking,nonblocking,persistent,point]\n"
    "      [--samples 5] [--sample-ms 1] [--least-calls 4]\n";

// Between rank 0 and rank 1; the others have no part in it.
void ping_pong(Data& d) {
  if (d.rank == 0) MPI_Send(IN, d.n, REAL, 1, 0, WORLD);
  if (d.rank < 2) MPI_Recv(OUT, d.n, REAL, 1 - d.rank, 0, WORLD, MPI_STATUS_IGNORE);
  if (d.rank == 1) MPI_Send(IN, d.n, REAL, 0, 0, WORLD);
}

int neighbor(const Data& d, int way) {
  return (d.rank + d.ranks + way) % d.ranks;
}

void exchange(Data& d) {
  MPI_Sendrecv(IN, d.n, REAL, neighbor(d, 1), 0, OUT, d.n, REAL, neighbor(d, -1), 0, WORLD,
               MPI_STATUS_IGNORE);
}

void exchange_by_requests(Data& d) {
  MPI_Request requests[2];
  MPI_Irecv(OUT, d.n, REAL, neighbor(d, -1), 0, WORLD, &requests[0]);
  MPI_Isend(IN, d.n, REAL, neighbor(d, 1), 0, WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

// Point: one call in one form, with one size, and its samples.
class Point {
 public:
  Point(const char* name, const char* form, Data& data, Call call)
      : name_(name), form_(form), data_(data), call_(std::move(call)) {}
  // Makes the point of a persistent call, which frees its request.
  Point(const char* name, Data& data, const Start& initialise)
      : name_(name), form_("persistent"), data_(data) {
    initialise(data, &request_);
    call_ = [this](Data&) {
      MPI_Start(&request_);
      MPI_Wait(&request_, MPI_STATUS_IGNORE);
    };
  }
  ~Point() {
    if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
  }
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  // Makes calls to warm up, and finds how many calls a sample of `sample_us` needs. The first calls
  // may take far longer than later ones.
  void warm_up(double sample_us, int least_calls) {
    mean_us(least_calls);
    const double call_us = std::max(mean_us(least_calls), 0.01);
    calls_ = static_cast<int>(std::clamp(sample_us / call_us, double(least_calls), 1e6));
    mean_us(calls_);
  }
  void add_sample() { times_us_.push_back(mean_us(calls_)); }
  void print() {
    std::sort(times_us_.begin(), times_us_.end());
    std::printf("%s %s %ld %.4f %.4f\n", name_, form_, data_.bytes, times_us_[0],
                times_us_[times_us_.size() / 2]);
  }

 private:
  // Returns the slowest rank's mean time of a call.
  double mean_us(int calls) {
    MPI_Barrier(WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < calls; ++i) call_(data_);
    const double own_us = (MPI_Wtime() - begin) * 1e6 / calls;
    double slowest_us = 0;
    MPI_Allreduce(&own_us, &slowest_us, 1, MPI_DOUBLE, MPI_MAX, WORLD);
    return slowest_us;
  }

  const char* const name_;
  const char* const form_;
  Data& data_;
  Call call_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int calls_ = 1;  // number of calls per sample
  std::vector<double> times_us_;
};

bool wanted(const std::vector<std::string>& words, const std::string& word) {
  return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

using Points = std::vector<std::unique_ptr<Point>>;

void add_collectives(const Settings& settings, Data& data, Points* points) {
  for (const Collective& one : collectives()) {
    const bool again = one.name == std::string("barrier") && data.bytes != settings.bytes[0];
    if (again || !wanted(settings.calls, one.name)) continue;
    const auto add = [&](auto&&... words) {
      points->push_back(std::make_unique<Point>(one.name, words...));
    };
    if (wanted(settings.forms, "blocking")) add("blocking", data, one.blocking);
    if (wanted(settings.forms, "nonblocking"))
      add("nonblocking", data, [&one](Data& d) {
        MPI_Request request;
        one.start(d, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      });
    if (wanted(settings.forms, "persistent")) add(data, one.initialise);
  }
}

void add_point_to_point(const Settings& settings, Data& data, Points* points) {
  const std::pair<const char*, Call> calls[] = {
      {"ping-pong", ping_pong}, {"sendrecv", exchange}, {"isend", exchange_by_requests}};
  for (const auto& [name, call] : calls)
    if (wanted(settings.calls, name))
      points->push_back(std::make_unique<Point>(name, "point", data, call));
}

void measure(const Settings& settings, int rank, int ranks) {
  std::vector<std::unique_ptr<Data>> sizes;
  Points points;
  if (wanted(settings.forms, "persistent")) bench::need_persistent();
  for (const long bytes : settings.bytes) {
    sizes.push_back(std::make_unique<Data>(bytes, rank, ranks));
    add_collectives(settings, *sizes.back(), &points);
    if (wanted(settings.forms, "point")) add_point_to_point(settings, *sizes.back(), &points);
  }
  for (const auto& point : points) point->warm_up(settings.sample_ms * 1e3, settings.least_calls);
  for (int i = 0; i < settings.samples; ++i)
    for (const auto& point : points) point->add_sample();
  for (const auto& point : points)
    if (rank == 0) point->print();
}

bool set(Settings* settings, const std::string& name, const std::string& value) {
  if (name == "--bytes") {
    settings->bytes.clear();
    for (const std::string& word : bench::list(value)) {
      const auto bytes = bench::size_in_bytes(word);
      if (!bytes || *bytes < 8) return false;
      settings->bytes.push_back(*bytes);
    }
    return !settings->bytes.empty();
  }
  if (name == "--calls") settings->calls = bench::list(value);
  if (name == "--forms") settings->forms = bench::list(value);
  if (name == "--calls" || name == "--forms") return true;
  const auto amount = bench::number(value, 0.01, 1e4);
  if (name == "--samples" && amount) settings->samples = static_cast<int>(*amount);
  if (name == "--sample-ms" && amount) settings->sample_ms = *amount;
  if (name == "--least-calls" && amount) settings->least_calls = static_cast<int>(*amount);
  const bool known = name == "--samples" || name == "--sample-ms" || name == "--least-calls";
  return amount && known && settings->samples > 0 && settings->least_calls > 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &ranks);
  Settings settings;
  bool usable = ranks > 1 && argc % 2 == 1;
  for (int i = 1; usable && i < argc; i += 2) usable = set(&settings, argv[i], argv[i + 1]);
  if (usable) measure(settings, rank, ranks);
  if (!usable && rank == 0)
    std::fprintf(stderr, "table: run it on two ranks or more, with these options\n%s", kUsage);
  MPI_Finalize();
  return usable ? 0 : 2;
}
