// Implements Sampling. All ranks have the same samples (the slowest rank's), so they agree without
// further messages on what has settled and when to stop.
#include "sampling.h"

#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

namespace bench {
namespace {

constexpr int kWarmUps = 3;
// With fewer samples, no two of them enclose the median with a probability of 95 %.
constexpr std::size_t kFewest = 6;
constexpr double kCalibrationUs = 20000;
constexpr long kMostIterations = 1L << 40;  // limit for work that takes no time at all

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

int nodes(int ranks) {
  char mine[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(mine, &length);
  std::vector<char> all(static_cast<std::size_t>(ranks) * sizeof mine);
  MPI_Allgather(mine, sizeof mine, MPI_CHAR, all.data(), sizeof mine, MPI_CHAR, MPI_COMM_WORLD);
  std::set<std::string> names;
  for (int i = 0; i < ranks; ++i) names.insert(&all[static_cast<std::size_t>(i) * sizeof mine]);
  return static_cast<int>(names.size());
}

}  // namespace

double relative_half_width(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  double probability = std::pow(0.5, static_cast<double>(n)), below = 0;
  std::size_t place = 0;
  for (std::size_t k = 0; k < n / 2; ++k) {
    below += probability;
    if (2 * below > 0.05) break;
    place = k;
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  const double median = (samples[(n - 1) / 2] + samples[n / 2]) / 2;
  return (samples[n - 1 - place] - samples[place]) / 2 / median;
}

Sampling::Sampling(const SamplingOptions& options, Communication* communication, Work* work)
    : options_(options), communication_(communication), work_(work), order_(options.seed) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) out_ = options.samples.empty() ? stdout : std::fopen(options.samples.c_str(), "a");
}

void Sampling::add_cells() {
  cells_.push_back({Kind::blocking});
  for (std::size_t i = 0; i < options_.engines.size(); ++i) cells_.push_back({Kind::immediate, i});
  for (const long iterations : options_.iterations) {
    cells_.push_back({Kind::computation, 0, iterations});
    for (std::size_t i = 0; i < options_.engines.size(); ++i) {
      cells_.push_back({Kind::overlapped, i, iterations});
    }
  }
}

Sampling::Times Sampling::timed(const Cell& cell) {
  const double begin = MPI_Wtime();
  double computation = 0;
  switch (cell.kind) {
    case Kind::blocking:
      communication_->blocking();
      break;
    case Kind::immediate:
      communication_->start(cell.engine);
      communication_->wait();
      break;
    case Kind::computation:
      work_->run(cell.iterations);
      break;
    case Kind::overlapped: {
      communication_->start(cell.engine);
      const double started = MPI_Wtime();
      work_->run(cell.iterations);
      computation = MPI_Wtime() - started;
      communication_->wait();
      break;
    }
  }
  return {(MPI_Wtime() - begin) * 1e6, computation * 1e6, true};
}

// Measures once. The pause before it lets the token bucket of a traffic shaper refill, so that all
// measurements find it equally full.
Sampling::Times Sampling::once(const Cell& cell) {
  write_begin(cell);
  communication_->prepare(++salt_ % 97);
  if (options_.pause_us) std::this_thread::sleep_for(std::chrono::microseconds(options_.pause_us));
  MPI_Barrier(MPI_COMM_WORLD);
  const Times mine = timed(cell);
  const bool computes = cell.kind == Kind::computation || cell.kind == Kind::overlapped;
  const bool right = (cell.kind == Kind::computation || communication_->correct()) &&
                     (!computes || work_->correct());
  const double late = MPI_Wtime() - begin_ > options_.seconds ? 1.0 : 0.0;
  double in[4] = {mine.total_us, mine.computation_us, right ? 0.0 : 1.0, late}, out[4];
  MPI_Allreduce(in, out, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  ++checks_;
  if (out[2] > 0) ++wrong_;
  out_of_time_ = out[3] > 0;
  return {out[0], out[1], out[2] == 0};
}

void Sampling::warm_up() {
  const long largest = options_.iterations.empty() ? 0 : options_.iterations.back();
  for (const auto& cell : cells_) {
    const bool communicates = cell.kind == Kind::blocking || cell.kind == Kind::immediate;
    if (communicates) {
      for (int i = 0; i < kWarmUps; ++i) once(cell);
    } else if (cell.iterations == largest) {
      once(cell);
    }
  }
}

bool Sampling::all_settled() const {
  return std::all_of(cells_.begin(), cells_.end(), [](const Cell& cell) { return cell.settled; });
}

void Sampling::repetition() {
  std::vector<Cell*> order;
  for (auto& cell : cells_) {
    if (!cell.settled) order.push_back(&cell);
  }
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[order_() % i]);
  for (Cell* cell : order) {
    const Times times = once(*cell);
    cell->samples_us.push_back(times.total_us);
    write_sample(*cell, times);
    // Every combination gets at least one sample before time can run out.
    if (out_of_time_ && cell->samples_us.size() > 1) return;
    cell->settled = cell->samples_us.size() >= kFewest &&
                    relative_half_width(cell->samples_us) <= options_.tolerance;
  }
}

// Measures how long one iteration of the computation takes while all ranks compute, and writes it.
void Sampling::calibrate() {
  Cell cell{Kind::computation, 0, 1};
  double time_us = once(cell).total_us;
  for (; time_us < kCalibrationUs && cell.iterations < kMostIterations;
       time_us = once(cell).total_us) {
    cell.iterations *= 2;
  }
  std::vector<double> times_us;
  for (int i = 0; i < 5; ++i) times_us.push_back(once(cell).total_us);
  // The shortest time counts, since a moment of disturbance must not make all amounts of
  // computation smaller.
  const double least_us = *std::min_element(times_us.begin(), times_us.end());
  if (!out_) return;
  std::fprintf(out_, "{\"iteration_us\": %.9g}\n", least_us / static_cast<double>(cell.iterations));
}

int Sampling::run() {
  int cannot = 0, rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  cannot = rank == 0 && !out_;
  MPI_Bcast(&cannot, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (cannot) {
    if (rank == 0) std::fprintf(stderr, "nbceff: cannot write %s\n", options_.samples.c_str());
    return 1;
  }
  write_job();
  add_cells();
  begin_ = MPI_Wtime();
  warm_up();
  if (options_.iterations.empty()) calibrate();
  begin_ = MPI_Wtime();
  out_of_time_ = false;
  for (int i = 0; i < options_.repetitions && !out_of_time_ && !all_settled(); ++i) repetition();
  write_end();
  return wrong_ ? 1 : 0;
}

std::string Sampling::name_of(const Cell& cell) const {
  constexpr const char* names[] = {"blocking", "immediate", "computation", "overlapped"};
  std::string text = in_quotes(names[static_cast<int>(cell.kind)]);
  if (cell.kind == Kind::immediate || cell.kind == Kind::overlapped) {
    text += ", \"engine\": " + in_quotes(options_.engines[cell.engine]);
  }
  if (cell.kind == Kind::computation || cell.kind == Kind::overlapped) {
    text += ", \"iterations\": " + std::to_string(cell.iterations);
  }
  return text;
}

void Sampling::write_job() {
  int ranks = 0, length = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int node_count = nodes(ranks);
  if (!out_) return;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  MPI_Get_library_version(version, &length);
  const auto weft = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "weft_version"));
  std::fprintf(out_,
               "{\"job\": %s, \"bytes\": %ld, \"ranks\": %d, \"nodes\": %d, \"mpi\": %s, "
               "\"weft\": %s, \"pause_us\": %ld, \"seed\": %u}\n",
               in_quotes(options_.collective).c_str(), options_.bytes, ranks, node_count,
               in_quotes(std::string(version, std::strcspn(version, "\n"))).c_str(),
               weft ? in_quotes(weft()).c_str() : "null", options_.pause_us, options_.seed);
  std::fflush(out_);
}

void Sampling::write_begin(const Cell& cell) {
  if (!out_) return;
  std::fprintf(out_, "{\"begin\": %s}\n", name_of(cell).c_str());
  std::fflush(out_);
}

void Sampling::write_sample(const Cell& cell, const Times& times) {
  if (!out_) return;
  std::fprintf(out_, "{\"sample\": %s, \"us\": %.9g", name_of(cell).c_str(), times.total_us);
  if (cell.kind == Kind::overlapped) {
    std::fprintf(out_, ", \"computation_us\": %.9g", times.computation_us);
  }
  std::fprintf(out_, "%s}\n", times.right ? "" : ", \"right\": false");
  std::fflush(out_);
}

void Sampling::write_end() {
  if (!out_) return;
  std::fprintf(out_, "{\"end\": \"%s\", \"checks\": %ld, \"wrong\": %ld}\n",
               all_settled() ? "settled" : "budget", checks_, wrong_);
  std::fflush(out_);
}

}  // namespace bench
