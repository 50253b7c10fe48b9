// Implements report.h: computes and prints the results of a measurement.
#include "report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iomanip>

namespace bench {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

void put(std::ostream& out, const char* name, const Statistic& value) {
  out << in_quotes(name) << ": {\"median\": " << value.median << ", \"low\": " << value.low
      << ", \"high\": " << value.high << ", \"n\": " << value.samples.size() << ", \"samples\": [";
  for (std::size_t i = 0; i < value.samples.size(); ++i) {
    out << (i ? ", " : "") << value.samples[i];
  }
  out << "]}";
}

void put_engine(std::ostream& out, const Figures& figures, const EngineFigures& engine) {
  out << "    {\"engine\": " << in_quotes(engine.engine) << ",\n     ";
  put(out, "immediate_us", engine.immediate_us);
  if (!figures.options.latency) {
    out << ",\n     ";
    put(out, "total_us", engine.total_us);
    out << ",\n     \"hidden\": {\"median\": " << figures.hidden(engine.total_us.median)
        << ", \"low\": " << figures.hidden(engine.total_us.high)
        << ", \"high\": " << figures.hidden(engine.total_us.low) << "}";
  }
  out << "}";
}

}  // namespace

Statistic statistic(std::vector<double> samples) {
  Statistic result;
  result.samples = samples;
  if (samples.empty()) return result;
  std::sort(samples.begin(), samples.end());
  result.median = quantile(samples, 0.5);
  result.low = quantile(samples, 0.25);
  result.high = quantile(samples, 0.75);
  return result;
}

double Figures::communication_us(std::string* by) const {
  double best = blocking_us.median;
  if (by) *by = "blocking";
  for (const auto& engine : engines) {
    if (engine.immediate_us.median >= best) continue;
    best = engine.immediate_us.median;
    if (by) *by = engine.engine;
  }
  return best;
}

double Figures::hidden(double total_us) const {
  const double communication = communication_us(), computation = computation_us.median;
  return (communication + computation - total_us) / std::min(communication, computation);
}

void print(const Figures& figures) {
  const Options& options = figures.options;
  std::printf("%s, %ld bytes, %d ranks, %s, %s\n", options.collective_name.c_str(), options.bytes,
              figures.ranks, figures.mpi.c_str(),
              figures.weft.empty() ? "without Weft" : ("Weft " + figures.weft).c_str());
  std::string by;
  const double communication = figures.communication_us(&by);
  std::printf("communication alone %.3f us (%s)", communication, by.c_str());
  if (!options.latency) {
    std::printf(", computation alone %.1f us [%.1f, %.1f]", figures.computation_us.median,
                figures.computation_us.low, figures.computation_us.high);
  }
  std::printf("\n%-10s %14s %14s %10s\n", "engine", "start+wait us", "total us", "hidden");
  std::printf("%-10s %14.3f\n", "blocking", figures.blocking_us.median);
  for (const auto& engine : figures.engines) {
    std::printf("%-10s %14.3f", engine.engine.c_str(), engine.immediate_us.median);
    if (!options.latency) {
      std::printf(" %14.1f %8.1f %%  [%.1f, %.1f]", engine.total_us.median,
                  100 * figures.hidden(engine.total_us.median), engine.total_us.low,
                  engine.total_us.high);
    }
    std::printf("\n");
  }
  std::printf("%ld results checked, %ld wrong; medians of %d, quartiles in brackets\n",
              figures.checks, figures.wrong, options.repetitions);
}

bool write_json(const Figures& figures, const std::string& path) {
  const Options& options = figures.options;
  std::ofstream out(path);
  std::string by;
  const double communication = figures.communication_us(&by);
  out << std::setprecision(9);
  out << "{\"schema\": \"weft-overlap/1\",\n \"mode\": "
      << (options.latency ? "\"latency\"" : "\"overlap\"")
      << ",\n \"collective\": " << in_quotes(options.collective_name)
      << ",\n \"bytes\": " << options.bytes << ",\n \"ranks\": " << figures.ranks
      << ",\n \"mpi\": " << in_quotes(figures.mpi)
      << ",\n \"weft\": " << (figures.weft.empty() ? "null" : in_quotes(figures.weft))
      << ",\n \"repetitions\": " << options.repetitions << ",\n \"ratio\": " << options.ratio
      << ",\n \"seed\": " << options.seed << ",\n \"pause_us\": " << options.pause_us
      << ",\n \"spread\": \"quartiles\",\n \"communication_us\": " << communication
      << ",\n \"communication_by\": " << in_quotes(by) << ",\n \"checks\": " << figures.checks
      << ",\n \"wrong\": " << figures.wrong << ",\n ";
  if (options.latency) {
    out << "\"batch\": " << options.batch << ",\n ";
  } else {
    out << "\"iterations\": " << figures.iterations << ",\n ";
    put(out, "computation_us", figures.computation_us);
    out << ",\n ";
  }
  put(out, "blocking_us", figures.blocking_us);
  out << ",\n \"engines\": [\n";
  for (std::size_t i = 0; i < figures.engines.size(); ++i) {
    if (i) out << ",\n";
    put_engine(out, figures, figures.engines[i]);
  }
  out << "\n ]}\n";
  return static_cast<bool>(out.flush());
}

}  // namespace bench
