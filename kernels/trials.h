// This is what all kernels share: options, a communicator for each engine, and interleaved
// measurement with a check of every result. Kernels are ordinary MPI programs: without Weft the
// hint weft_engine is ignored, and all variants run nevertheless.
#pragma once
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace trials {

inline int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

inline int size_of(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  return size;
}

// Prints a sentence on rank 0. Returns the exit status of a program that does not start.
inline int refuse(const char* program, const std::string& sentence) {
  if (rank_in(MPI_COMM_WORLD) == 0) std::fprintf(stderr, "%s: %s\n", program, sentence.c_str());
  return 2;
}

// Prints a sentence and ends the job. It waits before that, since MPICH's launcher drops output
// that it has not read when a job aborts.
[[noreturn]] inline void give_up(const char* program, const std::string& sentence) {
  std::fprintf(stderr, "%s: %s\n", program, sentence.c_str());
  std::fflush(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// Returns a sentence if the ranks of some node together need more memory than the node has;
// otherwise "". bytes: what this rank needs. choose: what the user should choose instead. All ranks
// must call it together.
inline std::string more_than_memory(double bytes, const std::string& choose) {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  double together = bytes;
  MPI_Allreduce(MPI_IN_PLACE, &together, 1, MPI_DOUBLE, MPI_SUM, node);
  MPI_Comm_free(&node);
  const double there = 1.0 * static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<double>(sysconf(_SC_PAGESIZE));
  double needed[2] = {together / there, together};
  MPI_Allreduce(MPI_IN_PLACE, needed, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (needed[0] <= 1) return "";
  char text[120];
  std::snprintf(text, sizeof text,
                "the ranks of a node need %.0f GB of memory, more than it has: ", needed[1] / 1e9);
  return text + choose;
}

using Words = std::vector<std::string>;

// Splits the text at each separator. The number of words is one more than that of separators.
inline Words split(const std::string& text, char separator) {
  Words found(1);
  for (const char letter : text) {
    if (letter == separator) found.emplace_back();
    if (letter != separator) found.back() += letter;
  }
  return found;
}

inline std::string joined(const Words& words, const char* separator = ", ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

// ---- Options: pairs of a name and a value -------------------------------------------------------

class Options {
 public:
  void number(const std::string& name, int* place, int least = 1, int most = 1 << 30) {
    add(name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
        [=](const std::string& text) { return whole(text, least, most, place); });
  }
  void real(const std::string& name, double* place) {
    add(name, "a number greater than 0", [=](const std::string& text) {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      const bool good = !text.empty() && *end == 0 && std::isfinite(value) && value > 0;
      if (good) *place = value;
      return good;
    });
  }
  void choice(const std::string& name, std::string* place, const Words& choices) {
    add(name, "one of " + joined(choices), [=](const std::string& text) {
      const bool good = std::find(choices.begin(), choices.end(), text) != choices.end();
      if (good) *place = text;
      return good;
    });
  }
  void text(const std::string& name, std::string* place) {
    add(name, "a name", [=](const std::string& text) { return !(*place = text).empty(); });
  }
  void words(const std::string& name, Words* place) {
    add(name, "names, separated by commas", [=](const std::string& text) {
      *place = split(text, ',');
      return std::find(place->begin(), place->end(), "") == place->end();
    });
  }
  void choices(const std::string& name, Words* place, const Words& known) {
    add(name, joined(known) + ", or some of them, separated by commas",
        [=](const std::string& text) {
          *place = split(text, ',');
          return std::all_of(place->begin(), place->end(), [&](const std::string& word) {
            return std::find(known.begin(), known.end(), word) != known.end();
          });
        });
  }
  // Adds an option with three extents, such as 32x32x32.
  void grid(const std::string& name, int (*place)[3]) {
    add(name, "three numbers from 1 to 4096, such as 32x32x32", [=](const std::string& text) {
      std::vector<int> found;
      if (!numbers(text, 4096, &found) || found.size() != 3) return false;
      std::copy(found.begin(), found.end(), *place);
      return true;
    });
  }
  // Adds an option with any number of extents.
  void extents(const std::string& name, std::vector<int>* place) {
    add(name, "numbers from 1 to 2^30, such as 32x32x32",
        [=](const std::string& text) { return numbers(text, 1 << 30, place); });
  }

  // Parses the command line. Returns "" or a sentence that says what is wrong.
  std::string read(int argc, char** argv) const {
    for (int i = 1; i < argc; i += 2) {
      const auto found = std::find_if(options_.begin(), options_.end(),
                                      [&](const Option& one) { return one.name == argv[i]; });
      if (found == options_.end()) {
        Words names;
        for (const Option& one : options_) names.push_back(one.name);
        return "there is no option " + std::string(argv[i]) + "; there are " + joined(names);
      }
      if (i + 1 == argc || !found->take(argv[i + 1])) {
        return found->name + " takes " + found->takes +
               (i + 1 < argc ? ", not " + std::string(argv[i + 1]) : "");
      }
    }
    return "";
  }

 private:
  struct Option {
    std::string name, takes;
    std::function<bool(const std::string&)> take;
  };
  static bool whole(const std::string& text, int least, int most, int* place) {
    char* end = nullptr;
    const long value = std::strtol(text.c_str(), &end, 10);
    const bool good = !text.empty() && *end == 0 && value >= least && value <= most;
    if (good) *place = static_cast<int>(value);
    return good;
  }
  static bool numbers(const std::string& text, int most, std::vector<int>* place) {
    place->clear();
    for (const std::string& word : split(text, 'x')) {
      int number = 0;
      if (!whole(word, 1, most, &number)) return false;
      place->push_back(number);
    }
    return true;
  }
  void add(const std::string& name, const std::string& takes,
           std::function<bool(const std::string&)> take) {
    options_.push_back({"--" + name, takes, std::move(take)});
  }
  std::vector<Option> options_;
};

// ---- Variants, each with a communicator of its own ----------------------------------------------

struct Variant {
  std::string name;    // "blocking", or the way in which it overlaps
  std::string engine;  // engine of Weft; empty for that of the job or of `hint`
  MPI_Comm comm = MPI_COMM_NULL;
  std::string hint = {};       // value of the hint weft_engine for the communicator
  double communicating_s = 0;  // time of blocking MPI calls in one step, if the kernel counts it
  std::vector<double> samples_us = {}, shares = {};
  std::string remark = {};
};

// Returns whether the variant's result is bitwise equal to the blocking one's on all ranks. The
// variant's remark says whether all of its results so far were. All ranks must call it together.
inline bool compare_bits(Variant* variant, bool same_here) {
  int same = same_here;
  MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!same || variant->remark.empty())
    variant->remark = same ? "bitwise equal" : "not bitwise equal";
  return same != 0;
}

// Returns the greater of two errors. NaN counts as greater than any number, whereas std::max would
// ignore it.
inline double greater(double error, double other) {
  if (std::isnan(other)) return std::numeric_limits<double>::infinity();
  return std::max(error, other);
}

inline Variant variant(const std::string& name, const std::string& engine = "",
                       const std::string& hint = "") {
  Variant made{name, engine};
  made.hint = engine.empty() ? hint : engine;
  if (made.hint.empty()) {
    MPI_Comm_dup(MPI_COMM_WORLD, &made.comm);
    return made;
  }
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_engine", made.hint.c_str());
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made.comm);
  MPI_Info_free(&info);
  return made;
}

// Sets the variant's engine for a communicator that was made from its communicator.
inline void use_engine(MPI_Comm comm, const Variant& variant) {
  if (variant.hint.empty()) return;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_engine", variant.hint.c_str());
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}

struct Settings {
  int repetitions = 11;
  // Pause before each step in us, in which the token bucket of a traffic shaper refills.
  int pause_us = 0;
  Words engines = {"native"};
  std::string json;
  // Amount of computation, if the program has chosen it; it is written for the next program.
  int amount = 0;
  std::string form = "all";  // form to measure: all, or one as an application would use it

  void offer(Options* options) {
    options->number("repetitions", &repetitions);
    options->number("pause-us", &pause_us, 0);
    options->choices("engines", &engines,
                     {"native", "assist", "function", "thread", "tcc", "agent", "auto"});
    options->text("json", &json);
  }
  void offer_form(Options* options) {
    options->choice("form", &form, {"all", "blocking", "overlapped"});
  }
  // Offers the option for kernels with many overlapped forms.
  void offer_blocking(Options* options) { options->choice("form", &form, {"all", "blocking"}); }
  // Returns "" or a sentence that says why the JSON file cannot be written. All ranks must call it
  // together.
  std::string cannot_write() const {
    int failed = 0;
    if (!json.empty() && rank_in(MPI_COMM_WORLD) == 0) {
      std::FILE* file = std::fopen(json.c_str(), "a");
      failed = !file;
      if (file) std::fclose(file);
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return failed ? "cannot write " + json : "";
  }
  bool has_blocking() const { return form != "overlapped"; }
  // Returns the engine of the blocking variant. If others are compared with it, it uses only the
  // MPI library, whatever the job's engine is.
  std::string hint_of_blocking() const { return form == "all" ? "native" : ""; }
  bool has_overlapped() const { return form != "blocking"; }
};

// Returns the variants that are asked for: the blocking kernel, and the overlapped one with each
// engine.
inline std::vector<Variant> blocking_and_overlapped(const Settings& settings) {
  std::vector<Variant> all;
  if (settings.has_blocking()) all.push_back(variant("blocking", "", settings.hint_of_blocking()));
  if (!settings.has_overlapped()) return all;
  for (const std::string& engine : settings.engines) all.push_back(variant("overlapped", engine));
  return all;
}

inline void release(std::vector<Variant>* all) {
  for (Variant& one : *all) MPI_Comm_free(&one.comm);
}

// ---- Measurement --------------------------------------------------------------------------------

// Measures all variants, interleaved in an order that is the same on all ranks; the times are those
// of the slowest rank. prepare() and right() are called outside the measured time. Returns the
// number of wrong results.
inline int measure(const Settings& settings, std::vector<Variant>* all,
                   const std::function<void(Variant&)>& prepare,
                   const std::function<void(Variant&)>& step,
                   const std::function<bool(Variant&)>& right) {
  MPI_Comm control;
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  std::mt19937 random(1);
  int wrong = 0;
  std::vector<std::size_t> order(all->size());
  std::iota(order.begin(), order.end(), 0);
  for (int repetition = -1; repetition < settings.repetitions; ++repetition) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (const std::size_t which : order) {
      Variant& variant = (*all)[which];
      prepare(variant);
      if (settings.pause_us) {
        std::this_thread::sleep_for(std::chrono::microseconds(settings.pause_us));
      }
      variant.communicating_s = 0;
      MPI_Barrier(control);
      const double begin = MPI_Wtime();
      step(variant);
      const double mine_s = MPI_Wtime() - begin;
      const double in[3] = {mine_s * 1e6, variant.communicating_s / mine_s,
                            right(variant) ? 0.0 : 1.0};
      double out[3];
      MPI_Allreduce(in, out, 3, MPI_DOUBLE, MPI_MAX, control);
      if (out[2] > 0) ++wrong;
      if (repetition < 0) continue;
      variant.samples_us.push_back(out[0]);
      variant.shares.push_back(out[1]);
    }
  }
  MPI_Comm_free(&control);
  return wrong;
}

inline double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  return n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

// ---- Results ------------------------------------------------------------------------------------

inline std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string line(text, std::strcspn(text, "\n"));
  for (char& c : line) {
    if (c == '\t' || c == '"' || c == '\\') c = ' ';
  }
  return line;
}

inline std::string escaped(const std::string& text) {
  std::string made;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    char hexadecimal[8];
    std::snprintf(hexadecimal, sizeof hexadecimal, "\\u%04x", code);
    made += code < 0x20 ? hexadecimal : std::string(c == '"' || c == '\\' ? "\\" : "") + c;
  }
  return made;
}

inline bool write_json(const std::string& path, const char* kernel, const std::string& problem,
                       const std::vector<Variant>& all, int amount = 0) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return false;
  std::fprintf(file, "{\"schema\": \"weft-kernel/1\", \"kernel\": \"%s\",\n", kernel);
  std::fprintf(file, " \"mpi\": \"%s\", \"ranks\": %d, \"problem\": \"%s\",\n", library().c_str(),
               size_of(MPI_COMM_WORLD), escaped(problem).c_str());
  if (amount) std::fprintf(file, " \"amount\": %d,\n", amount);
  std::fprintf(file, " \"communication_share\": %.4f,\n \"variants\": [", median(all[0].shares));
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::fprintf(file, "%s\n  {\"name\": \"%s\", \"engine\": \"%s\", \"samples_us\": [",
                 i ? "," : "", all[i].name.c_str(), all[i].engine.c_str());
    for (std::size_t k = 0; k < all[i].samples_us.size(); ++k) {
      std::fprintf(file, "%s%.3f", k ? ", " : "", all[i].samples_us[k]);
    }
    std::fprintf(file, "]}");
  }
  std::fprintf(file, "\n ]}\n");
  return std::fclose(file) == 0;
}

// Prints a line for each variant on rank 0, and writes the JSON file. Returns the exit status of
// the program.
inline int report(const Settings& settings, const char* kernel, const std::string& problem,
                  const std::vector<Variant>& all, int wrong) {
  if (rank_in(MPI_COMM_WORLD) != 0) return wrong ? 1 : 0;
  const double first_us = median(all[0].samples_us), share = median(all[0].shares);
  std::printf("%s, %d ranks, %s\n%-28s %11.1f us", library().c_str(), size_of(MPI_COMM_WORLD),
              problem.c_str(), all[0].name.c_str(), first_us);
  if (share > 0) std::printf("  communication is %.0f %% of it", 100 * share);
  std::printf("\n");
  for (std::size_t i = 1; i < all.size(); ++i) {
    const std::string name = all[i].name + (all[i].engine.empty() ? "" : ", " + all[i].engine);
    const double time_us = median(all[i].samples_us);
    std::printf("%-28s %11.1f us  %+6.1f %%  %s\n", name.c_str(), time_us,
                100 * (time_us / first_us - 1), all[i].remark.c_str());
  }
  std::printf("%d wrong results\n", wrong);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    std::fprintf(stderr, "%s: cannot write what was found to the standard output\n", kernel);
    return 1;
  }
  if (!settings.json.empty() && !write_json(settings.json, kernel, problem, all, settings.amount)) {
    std::fprintf(stderr, "%s: cannot write %s\n", kernel, settings.json.c_str());
    return 1;
  }
  return wrong ? 1 : 0;
}

}  // namespace trials
