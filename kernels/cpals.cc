// cpals: decomposes a sparse tensor into a sum of few products of vectors (CP decomposition by
// alternating least squares). For each mode's factor matrix it multiplies over all entries
// (MTTKRP); then rows are sent to the ranks that own them, which solve for them and send them to
// the ranks that use them. MPI's collectives do not directly support this exchange of rows
// (jh250041). Here several forms of the exchange are compared, and it is overlapped: on the way to
// the users with the part of the next mode's product that needs only owned rows, on the way to the
// owners with the product of rows that stay. The tensor is distributed and stored as in SPLATT
// (medium grain; compressed sparse fibres): Smith, Ravindran, Sidiropoulos, Karypis, IPDPS 2015 and
// 2016.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "fibres.h"
#include "layer_traffic.h"
#include "row_exchange.h"
#include "rows_memory.h"
#include "skewed.h"
#include "stream.h"
#include "tensor.h"
#include "trials.h"

namespace {

using fibres::Which;
using rows::Exchange;
using rows::How;
using tensor::at;
using tensor::Part;
using traffic::Traffic;

struct Settings {
  tensor::Problem problem;
  // Number of blocks of ranks along each mode; empty if the program chooses.
  std::vector<int> blocks;
  int rank = 16, iterations = 5;
  std::string exchange = "all";  // form of the exchange to measure, or "all"
  // Name of the file to which the factors are written; empty for none.
  std::string factors;
};

// ---- The decomposition --------------------------------------------------------------------------

struct Outcome {
  // Fit: 1 if the decomposition is exact; square: squared norm of the rest.
  double fit = 0, square = 0;
  std::string end;  // why the iteration has ended early; empty if it has not
};

class Decomposition {
 public:
  Decomposition(const Settings& settings, const Part& part)
      : settings_(settings), part_(part), length_(settings.rank) {
    for (int mode = 0; mode < modes(); ++mode) {
      const tensor::Mode& one = part.modes[at(mode)];
      trees_.push_back(fibres::tree_of(part, mode));
      traffic_.push_back(traffic::of(one));
      factor_.emplace_back(size(one.rows())), product_.emplace_back(size(one.rows()));
      in_.emplace_back(size(traffic_.back().waiting));
    }
    grams_.resize(at(modes()), Square(at(length_ * length_)));
    begin_anew();
    start_grams_ = grams_;
  }
  ~Decomposition() {
    for (Traffic& one : traffic_) MPI_Comm_free(&one.layer);
  }
  Decomposition(const Decomposition&) = delete;
  Decomposition& operator=(const Decomposition&) = delete;

  int modes() const { return part_.tensor.order(); }

  // Sets all factors to their initial values, which depend only on the numbers of the rows.
  void begin_anew() {
    for (int mode = 0; mode < modes(); ++mode) {
      const tensor::Mode& one = part_.modes[at(mode)];
      rows::Matrix& factor = factor_[at(mode)];
      for (int row = 0; row < one.rows(); ++row) {
        for (int r = 0; r < length_; ++r) {
          factor[size(row) + at(r)] =
              tensor::random_at(at(1000 + mode), at(std::int64_t{one.global(row)} * length_ + r));
        }
      }
      if (start_grams_.empty()) {
        const Square mine = gram_of(mode);
        MPI_Allreduce(mine.data(), grams_[at(mode)].data(), length_ * length_, MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
      }
    }
    if (!start_grams_.empty()) grams_ = start_grams_;
  }

  // How one variant exchanges the rows of each mode.
  struct Ways {
    trials::Variant* variant;
    bool overlapped;
    std::vector<std::unique_ptr<Exchange>> to_owners, to_users;
  };
  Ways ways(How how, trials::Variant* variant) {
    Ways made{variant, how != How::blocking, {}, {}};
    for (std::size_t mode = 0; mode < traffic_.size(); ++mode) {
      const Traffic& one = traffic_[mode];
      made.to_owners.push_back(std::make_unique<Exchange>(how, one.to_owners, length_,
                                                          product_[mode].data(), in_[mode].data(),
                                                          one.layer, variant));
      made.to_users.push_back(std::make_unique<Exchange>(how, one.to_users, length_,
                                                         factor_[mode].data(), factor_[mode].data(),
                                                         one.layer, variant));
    }
    return made;
  }

  Outcome carry_out(Ways* ways) {
    Outcome outcome;
    // Whether the product of rows that stay on this rank was computed in advance.
    bool begun = false;
    if (ways->overlapped) begun = begin_product(0, false);
    const int steps = settings_.iterations * modes();
    for (int step = 0; step < steps && outcome.end.empty(); ++step) {
      const int mode = step % modes(), next = (step + 1) % modes();
      const int rows = trees_[at(mode)].nodes(0), foreign = trees_[at(mode)].foreign_row;
      if (ways->overlapped) {
        multiply(mode, foreign, rows, Which::foreign);
        ways->to_owners[at(mode)]->begin();
        multiply(mode, 0, foreign, begun ? Which::foreign : Which::any);
      } else {
        multiply(mode, 0, rows, Which::any);
        ways->to_owners[at(mode)]->begin();
      }
      ways->to_owners[at(mode)]->end();
      Square sums = solve(mode, &outcome.end);
      ways->to_users[at(mode)]->begin();
      MPI_Request request = add_over_ranks(ways, &sums);
      if (ways->overlapped && step + 1 < steps) begun = begin_product(next, travels_from(mode));
      ways->to_users[at(mode)]->end();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      std::copy_n(sums.begin(), length_ * length_, grams_[at(mode)].begin());
      if (next == 0) judge(sums.back(), &outcome);
      if (!outcome.end.empty()) {
        outcome.end += " in iteration " + std::to_string(step / modes() + 1);
      }
    }
    return outcome;
  }

  // Returns the squared norm of what the decomposition leaves of the tensor, computed entry by
  // entry.
  double square_of_rest() const {
    double sum = 0;
    for (std::int64_t e = 0; e < part_.tensor.entries(); ++e) {
      const int* entry = part_.tensor.entry(e);
      for (int r = 0; r < length_; ++r) {
        double term = part_.tensor.value[at(e)];
        for (int mode = 0; mode < modes(); ++mode) {
          term *= factor_[at(mode)][size(entry[mode]) + at(r)];
        }
        sum += term;
      }
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return part_.square - 2 * sum + square_of_model();
  }

  // product() computes the product of one mode without communication. bytes_of_product() returns
  // how many bytes it moves if a cache holds `cache` bytes of a factor.
  void product(int mode) { multiply(mode, 0, trees_[at(mode)].nodes(0), Which::any); }
  double bytes_of_product(int mode, double cache) const {
    return fibres::bytes_of(trees_[at(mode)], factor_, length_, cache);
  }

  // Writes the factors to a file, row by row, one mode after the other. It is for one rank. Returns
  // false on failure.
  bool write(const std::string& path) const {
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (!file) return false;
    for (const rows::Matrix& one : factor_) {
      for (std::size_t i = 0; i < one.size(); ++i) {
        std::fprintf(file, "%.17g%c", one[i], (i + 1) % at(length_) ? ' ' : '\n');
      }
    }
    return std::fclose(file) == 0;
  }
  std::vector<double> result() const {
    std::vector<double> all;
    for (const auto& one : factor_) all.insert(all.end(), one.begin(), one.end());
    return all;
  }

 private:
  // Matrix of length_ x length_ numbers, perhaps with one more number behind it.
  using Square = std::vector<double>;
  std::size_t size(int rows) const { return at(std::int64_t{rows} * length_); }
  const double* row(int mode, int number) const {
    return factor_[at(mode)].data() + std::ptrdiff_t{number} * length_;
  }

  // ---- The product over all entries

  // Computes the part of a product that needs no rows of other ranks, while these rows are on their
  // way. If none are, it leaves the rows that stay for later, when others are on their way to their
  // owners.
  bool begin_product(int mode, bool others_travel) {
    const int foreign = trees_[at(mode)].foreign_row;
    multiply(mode, foreign, trees_[at(mode)].nodes(0), Which::owned);
    if (others_travel) multiply(mode, 0, foreign, Which::owned);
    return others_travel;
  }
  bool travels_from(int mode) const {
    const tensor::Mode& one = part_.modes[at(mode)];
    return !one.foreign.empty() || traffic_[at(mode)].waiting > 0;
  }
  void multiply(int mode, int first, int last, Which which) {
    fibres::multiply(trees_[at(mode)], factor_, length_, first, last, which,
                     product_[at(mode)].data());
  }

  // ---- The least squares

  // Adds the partial rows in the order of the ranks, and solves for the owned rows of the factor.
  // Returns this rank's part of the factor's Gram matrix and of its product with the tensor. *end
  // gets the reason if it fails.
  Square solve(int mode, std::string* end) {
    const tensor::Mode& one = part_.modes[at(mode)];
    const Traffic& traffic = traffic_[at(mode)];
    std::vector<double> total(size(one.owned), 0.0);
    for (int rank = 0; rank < static_cast<int>(traffic.to_users.sent.size()); ++rank) {
      if (rank == one.place) {
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += product_[at(mode)][i];
        continue;
      }
      const std::vector<int>& here = traffic.to_users.sent[at(rank)];
      const std::vector<int>& there = traffic.to_owners.received[at(rank)];
      for (std::size_t i = 0; i < here.size(); ++i) {
        const double* in = in_[at(mode)].data() + std::ptrdiff_t{there[i]} * length_;
        for (int r = 0; r < length_; ++r) total[size(here[i]) + at(r)] += in[r];
      }
    }
    Square matrix(at(length_ * length_), 1.0);
    for (int other = 0; other < modes(); ++other) {
      if (other == mode) continue;
      for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] *= grams_[at(other)][i];
    }
    if (!decompose(&matrix)) *end = "breakdown: the components are linearly dependent";
    rows::Matrix& factor = factor_[at(mode)];
    std::copy(total.begin(), total.end(), factor.begin());
    substitute(matrix, one.owned, factor.data());
    std::array<double, fibres::most_components> inner{};  // inner product of each component
    for (int i = 0; i < one.owned; ++i) {
      for (int r = 0; r < length_; ++r) {
        inner[at(r)] += factor[size(i) + at(r)] * total[size(i) + at(r)];
      }
    }
    Square sums = gram_of(mode);
    sums.push_back(std::accumulate(inner.begin(), inner.end(), 0.0));
    return sums;
  }

  // Cholesky decomposition, in the lower half of the matrix. Returns false if the matrix is not
  // positive definite within rounding errors.
  bool decompose(Square* matrix) const {
    const auto a = [&](int i, int j) -> double& { return (*matrix)[at(i * length_ + j)]; };
    bool good = true;
    for (int j = 0; j < length_; ++j) {
      const double diagonal = a(j, j);
      for (int k = 0; k < j; ++k) a(j, j) -= a(j, k) * a(j, k);
      good &= a(j, j) > 4 * length_ * std::numeric_limits<double>::epsilon() * diagonal;
      a(j, j) = std::sqrt(good ? a(j, j) : 1.0);
      for (int i = j + 1; i < length_; ++i) {
        for (int k = 0; k < j; ++k) a(i, j) -= a(i, k) * a(j, k);
        a(i, j) /= a(j, j);
      }
    }
    return good;
  }
  // Solves for some rows. As many as `lanes` go side by side, each in the order of one alone.
  void substitute(const Square& lower, int rows, double* values) const {
    constexpr int lanes = 8;
    std::vector<double> block(at(length_ * lanes));
    const auto x = [&](int i) { return block.data() + i * lanes; };
    const auto take = [&](int i, int k, double factor) {
      for (int lane = 0; lane < lanes; ++lane) x(i)[lane] -= factor * x(k)[lane];
    };
    const auto divide = [&](int i) {
      for (int lane = 0; lane < lanes; ++lane) x(i)[lane] /= lower[at(i * length_ + i)];
    };
    for (int first = 0; first < rows; first += lanes, values += lanes * length_) {
      const int count = std::min(lanes, rows - first);  // the other lanes keep what they had
      for (int lane = 0; lane < count; ++lane) {
        for (int i = 0; i < length_; ++i) x(i)[lane] = values[lane * length_ + i];
      }
      for (int i = 0; i < length_; ++i) {
        for (int k = 0; k < i; ++k) take(i, k, lower[at(i * length_ + k)]);
        divide(i);
      }
      for (int i = length_ - 1; i >= 0; --i) {
        for (int k = i + 1; k < length_; ++k) take(i, k, lower[at(k * length_ + i)]);
        divide(i);
      }
      for (int lane = 0; lane < count; ++lane) {
        for (int i = 0; i < length_; ++i) values[lane * length_ + i] = x(i)[lane];
      }
    }
  }

  // Returns this rank's part of the factor's Gram matrix. The squares of each row are added in
  // turn, for several rows to the same row of the matrix.
  Square gram_of(int mode) const {
    constexpr int together = 32;
    const int rows = part_.modes[at(mode)].owned;
    Square made(at(length_ * length_), 0.0);
    std::array<double, fibres::most_components> sum;
    for (int first = 0; first < rows; first += together) {
      const int last = std::min(rows, first + together);
      for (int r = 0; r < length_; ++r) {
        double* out = made.data() + r * length_;
        std::copy_n(out, length_, sum.begin());
        for (int i = first; i < last; ++i) {
          const double* values = row(mode, i);
          for (int s = 0; s < length_; ++s) sum[at(s)] += values[r] * values[s];
        }
        std::copy_n(sum.begin(), length_, out);
      }
    }
    return made;
  }

  MPI_Request add_over_ranks(Ways* ways, Square* sums) const {
    MPI_Request request = MPI_REQUEST_NULL;
    const int count = static_cast<int>(sums->size());
    if (ways->overlapped) {
      MPI_Iallreduce(MPI_IN_PLACE, sums->data(), count, MPI_DOUBLE, MPI_SUM, ways->variant->comm,
                     &request);
      return request;
    }
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, sums->data(), count, MPI_DOUBLE, MPI_SUM, ways->variant->comm);
    ways->variant->communicating_s += MPI_Wtime() - begin;
    return request;
  }

  double square_of_model() const {
    double sum = 0;
    for (int r = 0; r < length_; ++r) {
      for (int s = 0; s < length_; ++s) {
        double term = 1;
        for (const Square& one : grams_) term *= one[at(r * length_ + s)];
        sum += term;
      }
    }
    return sum;
  }
  void judge(double inner, Outcome* outcome) const {
    outcome->square = part_.square - 2 * inner + square_of_model();
    outcome->fit = 1 - std::sqrt(std::max(0.0, outcome->square) / part_.square);
    if (outcome->end.empty() && !std::isfinite(outcome->square)) outcome->end = "diverged";
  }

  const Settings& settings_;
  const Part& part_;
  const int length_;  // length of a row: the rank of the decomposition
  std::vector<fibres::Tree> trees_;
  std::vector<Traffic> traffic_;
  std::vector<rows::Matrix> factor_, product_, in_;
  std::vector<Square> grams_, start_grams_;
};

// ---- The program --------------------------------------------------------------------------------

constexpr double tolerance = 1e-10;  // relative to the square of the tensor's norm

const char* name_of(How how) {
  if (how == How::neighbours) return "neighbours";
  if (how == How::messages) return "messages";
  return how == How::rows ? "rows" : "overlapped";
}

int measure(const Settings& settings, const trials::Settings& trial, const Part& part) {
  std::vector<trials::Variant> all = {trials::variant("blocking", "", "native")};
  std::vector<How> how = {How::blocking};
  for (const How one : {How::alltoallv, How::neighbours, How::rows, How::messages}) {
    const std::string name = name_of(one);
    if (!rows::there(one) || (settings.exchange != "all" && settings.exchange != name)) continue;
    if (!trial.has_overlapped()) continue;
    // Messages are not carried by an engine of Weft.
    const trials::Words engines = one == How::messages ? trials::Words{""} : trial.engines;
    for (const std::string& engine : engines) {
      all.push_back(trials::variant(name, engine)), how.push_back(one);
    }
  }

  int status = 1;
  {
    Decomposition decomposition(settings, part);
    std::vector<Decomposition::Ways> ways;
    for (std::size_t i = 0; i < all.size(); ++i) {
      ways.push_back(decomposition.ways(how[i], &all[i]));
    }
    Outcome outcome = decomposition.carry_out(&ways[0]);
    const std::vector<double> first = decomposition.result();
    const double rest = decomposition.square_of_rest(), found = outcome.square;
    if (trials::rank_in(MPI_COMM_WORLD) == 0) {
      std::printf("%d components, %d iterations: ", settings.rank, settings.iterations);
      if (outcome.end.empty()) {
        std::printf("fit %.12f, no breakdown\n", outcome.fit);
      } else {
        std::printf("%s\n", outcome.end.c_str());
      }
    }
    if (!settings.factors.empty() && !decomposition.write(settings.factors)) {
      trials::give_up("cpals", "cannot write " + settings.factors);
    }
    if (outcome.end.empty()) {
      const bool agrees = std::fabs(rest - found) <= tolerance * part.square;
      const int wrong = trials::measure(
          trial, &all, [&](trials::Variant&) { decomposition.begin_anew(); },
          [&](trials::Variant& one) {
            outcome = decomposition.carry_out(&ways[at(&one - all.data())]);
          },
          [&](trials::Variant& one) {
            const std::vector<double> result = decomposition.result();
            trials::compare_bits(
                &one, std::memcmp(result.data(), first.data(), first.size() * sizeof(double)) == 0);
            return std::fabs(outcome.square - found) <= tolerance * part.square;
          });
      std::string blocks;
      for (const int one : part.blocks) blocks += (blocks.empty() ? "" : "x") + std::to_string(one);
      const std::string text = std::to_string(settings.rank) + " components, " +
                               settings.problem.in_words() + ", blocks " + blocks;
      status = trials::report(trial, "cpals", text, all, wrong + (agrees ? 0 : 1));
    }
  }
  trials::release(&all);
  return status;
}

// Compares the bandwidth of the products of all modes with that of STREAM's triad, on one rank. It
// assumes that a factor which fits into half of the last-level cache stays there.
int speed(const Settings& settings, const Part& part, int repetitions) {
  Decomposition decomposition(settings, part);
  for (int mode = 0; mode < decomposition.modes(); ++mode) {
    const std::string what = "product of mode " + std::to_string(mode + 1);
    const double all = decomposition.bytes_of_product(mode, 0);
    const double needed = decomposition.bytes_of_product(mode, stream::last_cache() / 2);
    const double share =
        stream::compare(what.c_str(), all, repetitions, [&] { decomposition.product(mode); });
    std::printf("  of these bytes %.0f %% must be moved: share %.2f\n", 100 * needed / all,
                share * needed / all);
  }
  return 0;
}

// Sets what the command line leaves open: a tenth of the real tensor's rows in each mode, and the
// real tensor's density.
void complete(tensor::Problem* problem) {
  const bool skewed = problem->is_skewed();
  std::vector<int>& extents = problem->dimensions;
  if (extents.empty() && !skewed) extents = {400, 300, 200};
  if (extents.empty()) {
    for (const int extent : skewed::dimensions) extents.push_back(extent / 10);
  }
  if (problem->entries == 0) problem->entries = skewed ? skewed::entries_of(extents) : 200000;
}

// This rank's entries at the beginning; all ranks get the sentence that says what is wrong.
std::string begin(const tensor::Problem& problem, tensor::Tensor* begun) {
  if (!problem.file.empty() && !problem.is_skewed()) return tensor::read(problem.file, begun);
  *begun = problem.is_skewed() ? skewed::generate(problem.dimensions, problem.entries)
                               : tensor::generate(problem);
  return "";
}

int run(int argc, char** argv) {
  Settings settings;
  std::string what = "measure";
  trials::Settings trial;
  trials::Options options;
  options.text("tensor", &settings.problem.file);
  options.extents("dimensions", &settings.problem.dimensions);
  options.number("entries", &settings.problem.entries, 1, 1 << 26);
  options.real("skew", &settings.problem.skew);
  options.extents("blocks", &settings.blocks);
  options.number("rank", &settings.rank, 1, 256);
  options.number("iterations", &settings.iterations);
  options.choice("exchange", &settings.exchange,
                 {"all", "overlapped", "neighbours", "rows", "messages"});
  options.text("factors", &settings.factors);
  options.choice("what", &what, {"measure", "speed", "pattern"});
  trial.offer(&options);
  trial.offer_blocking(&options);
  std::string wrong = options.read(argc, argv);
  complete(&settings.problem);
  const std::size_t order = settings.problem.dimensions.size();
  if (wrong.empty() && (order < 3 || order > 8)) wrong = "--dimensions takes 3 to 8 numbers";
  Part part;
  if (wrong.empty()) {
    tensor::Tensor begun;
    wrong = begin(settings.problem, &begun);
    if (wrong.empty()) wrong = tensor::distribute(begun, settings.blocks, &part);
  }
  if (wrong.empty()) {
    double rows = 0;  // numbers of rows of all factors; as many rows of products are written
    for (const tensor::Mode& one : part.modes) rows += one.rows();
    wrong = trials::more_than_memory(16.0 * settings.rank * rows, "choose a smaller --rank");
  }
  const bool alone = trials::size_of(MPI_COMM_WORLD) == 1;
  if (wrong.empty() && what == "speed" && !alone) wrong = "--what speed is for one rank";
  if (wrong.empty() && !settings.factors.empty() && !alone) wrong = "--factors is for one rank";
  if (wrong.empty() && !settings.factors.empty() && !std::ofstream(settings.factors)) {
    wrong = "cannot write " + settings.factors;
  }
  if (wrong.empty() && what != "measure" && !trial.json.empty()) {
    wrong = "--what " + what + " writes no file; leave out --json";
  }
  if (wrong.empty() && settings.exchange == "rows" && !rows::there(How::rows)) {
    wrong = "--exchange rows needs Weft, which is not loaded: run it by weft run, or leave it out";
  }
  if (wrong.empty()) wrong = trial.cannot_write();
  if (!wrong.empty()) return trials::refuse("cpals", wrong);
  if (what == "speed") return speed(settings, part, trial.repetitions);
  if (what == "pattern") return traffic::show(part);
  return measure(settings, trial, part);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
