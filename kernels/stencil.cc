// stencil: heat spreads on a grid of two or three dimensions. Each step needs the outermost planes
// of the neighbouring ranks (halo), which are exchanged while the interior is computed: by a
// blocking, non-blocking or persistent neighborhood collective, or by messages. Halo exchange is
// the most common communication pattern, and jh250041 counts it as a collective whatever calls it
// is made of. Datatypes describe the planes, so nothing is packed. The result is known: a sum of
// sines stays one, and each sine shrinks by a factor per step.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "trials.h"

namespace {

struct Settings {
  int grid[3] = {96, 96, 96};  // if the first extent is 1, the grid has two dimensions
  int blocks[3] = {0, 0, 0};   // blocks of ranks along each axis; 0 if MPI_Dims_create chooses them
  int steps = 20;
  double diffusion = 0.1;
  bool flat() const { return grid[0] == 1; }
  int first_axis() const { return flat() ? 1 : 0; }
};

std::size_t at(int place) {
  return static_cast<std::size_t>(place);
}

// This rank's points, and one layer of its neighbours' points around them.
struct Block {
  int first[3], size[3];  // first point in the whole grid and number of points, without the layer
  bool neighbour[3][2];   // whether there is a neighbour before and behind it along each axis

  int index(int i, int j, int k) const { return (i * (size[1] + 2) + j) * (size[2] + 2) + k; }
  int length() const { return (size[0] + 2) * (size[1] + 2) * (size[2] + 2); }
};

Block block_of(const Settings& settings, int rank) {
  Block made{};
  for (int axis = 2; axis >= 0; --axis) {
    const int parts = settings.blocks[axis], part = rank % parts;
    const auto begin = [&](int i) {
      return static_cast<int>(std::int64_t{settings.grid[axis]} * i / parts);
    };
    made.first[axis] = begin(part), made.size[axis] = begin(part + 1) - begin(part);
    made.neighbour[axis][0] = part > 0, made.neighbour[axis][1] = part + 1 < parts;
    rank /= parts;
  }
  return made;
}

// Points first, …, last - 1 along each axis. The block's own points begin at 1.
struct Box {
  int first[3], last[3];
};

Box whole(const Block& block) {
  return {{1, 1, 1}, {block.size[0] + 1, block.size[1] + 1, block.size[2] + 1}};
}

// Returns the box of points that do not need the halo. *outermost gets a box for each side with a
// neighbour, whose points do.
Box interior_of(const Block& block, std::vector<Box>* outermost) {
  Box rest = whole(block);
  for (int axis = 0; axis < 3; ++axis) {
    if (block.neighbour[axis][0]) {
      Box side = rest;
      side.last[axis] = std::min(rest.first[axis] + 1, rest.last[axis]);
      rest.first[axis] = side.last[axis];
      outermost->push_back(side);
    }
    if (block.neighbour[axis][1]) {
      Box side = rest;
      side.first[axis] = std::max(rest.last[axis] - 1, rest.first[axis]);
      rest.last[axis] = side.first[axis];
      outermost->push_back(side);
    }
  }
  return rest;
}

// ---- The exchange -------------------------------------------------------------------------------

enum class How { blocking, non_blocking, persistent, messages, persistent_messages };

// Exchanges the halo of two arrays, which are used in turn.
class Halo {
 public:
  Halo(const Settings& settings, const Block& block, How how, trials::Variant* variant,
       double* const (&arrays)[2])
      : how_(how), variant_(variant), arrays_{arrays[0], arrays[1]} {
    const int open[3] = {0, 0, 0};
    MPI_Cart_create(variant->comm, 3, settings.blocks, open, 0, &grid_);
    trials::use_engine(grid_, *variant);
    for (int side = 0; side < 6; ++side) {
      const int axis = side / 2, size = block.size[axis];
      const bool before = side % 2 == 0;
      sent_[at(side)] = plane(block, axis, before ? 1 : size);
      received_[at(side)] = plane(block, axis, before ? 0 : size + 1);
      if (before) MPI_Cart_shift(grid_, axis, 1, &peers_[at(side)], &peers_[at(side + 1)]);
    }
    for (int turn = 0; turn < 2; ++turn) make_requests(turn);
  }
  ~Halo() {
    for (auto& turn : requests_) {
      for (MPI_Request& one : turn) {
        if (one != MPI_REQUEST_NULL) MPI_Request_free(&one);
      }
    }
    for (MPI_Datatype& one : sent_) MPI_Type_free(&one);
    for (MPI_Datatype& one : received_) MPI_Type_free(&one);
    MPI_Comm_free(&grid_);
  }
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;

  bool overlapped() const { return how_ != How::blocking; }

  void begin(int turn) {
    double* array = arrays_[turn];
    std::vector<MPI_Request>& requests = requests_[at(turn)];
    if (how_ == How::blocking) {
      const double begin = MPI_Wtime();
      MPI_Neighbor_alltoallw(array, counts_, places_, sent_.data(), array, counts_, places_,
                             received_.data(), grid_);
      variant_->communicating_s += MPI_Wtime() - begin;
    } else if (how_ == How::non_blocking) {
      MPI_Ineighbor_alltoallw(array, counts_, places_, sent_.data(), array, counts_, places_,
                              received_.data(), grid_, requests.data());
    } else if (how_ == How::messages) {
      for (int side = 0; side < 6; ++side) {
        MPI_Irecv(array, 1, received_[at(side)], peers_[at(side)], tag_from(side), grid_,
                  &requests[at(side)]);
      }
      for (int side = 0; side < 6; ++side) {
        MPI_Isend(array, 1, sent_[at(side)], peers_[at(side)], side, grid_,
                  &requests[at(6 + side)]);
      }
    } else {
      MPI_Startall(static_cast<int>(requests.size()), requests.data());
    }
  }
  void end(int turn) {
    std::vector<MPI_Request>& requests = requests_[at(turn)];
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

 private:
  // Returns the tag of a message that arrives at this side. A message has the number of the side
  // that it leaves from, which is the opposite one.
  static int tag_from(int side) { return side ^ 1; }

  static MPI_Datatype plane(const Block& block, int axis, int place) {
    int extents[3], sizes[3], starts[3] = {1, 1, 1};
    for (int i = 0; i < 3; ++i) extents[i] = block.size[i] + 2, sizes[i] = block.size[i];
    sizes[axis] = 1, starts[axis] = place;
    MPI_Datatype made;
    MPI_Type_create_subarray(3, extents, sizes, starts, MPI_ORDER_C, MPI_DOUBLE, &made);
    MPI_Type_commit(&made);
    return made;
  }

  void make_requests(int turn) {
    const bool single = how_ == How::non_blocking || how_ == How::persistent;
    std::vector<MPI_Request>& requests = requests_[at(turn)];
    requests.assign(how_ == How::blocking ? 0 : single ? 1 : 12, MPI_REQUEST_NULL);
    double* array = arrays_[turn];
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    if (how_ == How::persistent) {
      MPI_Neighbor_alltoallw_init(array, counts_, places_, sent_.data(), array, counts_, places_,
                                  received_.data(), grid_, MPI_INFO_NULL, requests.data());
    }
#endif
    for (int side = 0; side < 6 && how_ == How::persistent_messages; ++side) {
      MPI_Recv_init(array, 1, received_[at(side)], peers_[at(side)], tag_from(side), grid_,
                    &requests[at(side)]);
      MPI_Send_init(array, 1, sent_[at(side)], peers_[at(side)], side, grid_,
                    &requests[at(6 + side)]);
    }
  }

  How how_;
  trials::Variant* variant_;
  double* arrays_[2];
  MPI_Comm grid_ = MPI_COMM_NULL;
  std::array<int, 6> peers_{};
  std::array<MPI_Datatype, 6> sent_{}, received_{};
  std::array<std::vector<MPI_Request>, 2> requests_;
  static constexpr int counts_[6] = {1, 1, 1, 1, 1, 1};
  static constexpr MPI_Aint places_[6] = {0, 0, 0, 0, 0, 0};
};

// ---- The computation ----------------------------------------------------------------------------

// Computes one row of new values. flat: whether the grid has only two dimensions.
template <bool flat>
void update_row(const Block& block, const double* in, double* out, int row, int count, double k) {
  const int plane = block.index(1, 0, 0), line = block.index(0, 1, 0);
  for (int i = row; i < row + count; ++i) {
    double around = (in[i - line] + in[i + line]) + (in[i - 1] + in[i + 1]);
    if constexpr (!flat) around += in[i - plane] + in[i + plane];
    out[i] = in[i] + k * (around - (flat ? 4 : 6) * in[i]);
  }
}

void update(const Settings& settings, const Block& block, const Box& box, const double* in,
            double* out) {
  const int count = box.last[2] - box.first[2];
  for (int i = box.first[0]; i < box.last[0]; ++i) {
    for (int j = box.first[1]; j < box.last[1]; ++j) {
      const int row = block.index(i, j, box.first[2]);
      if (settings.flat()) {
        update_row<true>(block, in, out, row, count, settings.diffusion);
      } else {
        update_row<false>(block, in, out, row, count, settings.diffusion);
      }
    }
  }
}

class Simulation {
 public:
  Simulation(const Settings& settings, const Block& block)
      : settings_(settings), block_(block), interior_(interior_of(block, &outermost_)) {
    for (int turn = 0; turn < 2; ++turn) {
      arrays_[turn].resize(at(block.length()));
      places_[turn] = arrays_[turn].data();
    }
    start_ = expected(0), expected_ = expected(settings.steps);
  }
  double* const (&arrays() const)[2] { return places_; }
  void prepare() {
    std::copy(start_.begin(), start_.end(), places_[0]);
    std::fill(arrays_[1].begin(), arrays_[1].end(), 0.0);
  }

  // Carries out all steps: the interior while the halo is exchanged, then the points that need the
  // halo.
  void carry_out(Halo* halo) {
    for (int step = 0; step < settings_.steps; ++step) {
      const int turn = step % 2;
      const double* in = places_[turn];
      double* out = places_[1 - turn];
      halo->begin(turn);
      if (!halo->overlapped()) {
        update(settings_, block_, whole(block_), in, out);
        continue;
      }
      update(settings_, block_, interior_, in, out);
      halo->end(turn);
      for (const Box& side : outermost_) update(settings_, block_, side, in, out);
    }
  }

  // Returns the values without the halo, which is not exchanged after the last step.
  std::vector<double> result() { return points(arrays_[settings_.steps % 2]); }
  // Returns the largest difference from the expected values.
  double error() {
    const std::vector<double> found = result(), right = points(expected_);
    double most = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      most = trials::greater(most, std::fabs(found[i] - right[i]));
    }
    return most;
  }

 private:
  std::vector<double> points(const std::vector<double>& array) const {
    std::vector<double> found;
    for (int i = 1; i <= block_.size[0]; ++i) {
      for (int j = 1; j <= block_.size[1]; ++j) {
        const auto row = array.begin() + block_.index(i, j, 1);
        found.insert(found.end(), row, row + block_.size[2]);
      }
    }
    return found;
  }

  // Returns the expected values: two products of sines, each of which is an eigenvector of a step.
  std::vector<double> expected(int steps) const {
    constexpr int waves[2][3] = {{1, 1, 1}, {2, 3, 2}};
    std::vector<double> values(at(block_.length()));
    for (const auto& wave : waves) {
      double spreading = 0;
      const auto angle = [&](int axis) { return M_PI * wave[axis] / (settings_.grid[axis] + 1); };
      for (int axis = settings_.first_axis(); axis < 3; ++axis) {
        const double half = std::sin(angle(axis) / 2);
        spreading += 4 * half * half;
      }
      // If a step loses hardly anything, 1 - lost has too few digits for many steps, so log1p() is
      // used.
      const double lost = settings_.diffusion * spreading;
      const double size =
          lost < 0.5 ? std::exp(steps * std::log1p(-lost)) : std::pow(1 - lost, steps);
      const auto sine = [&](int axis, int place) {
        if (axis < settings_.first_axis()) return 1.0;
        return std::sin(angle(axis) * (block_.first[axis] + place));
      };
      for (int i = 1; i <= block_.size[0]; ++i) {
        for (int j = 1; j <= block_.size[1]; ++j) {
          for (int k = 1; k <= block_.size[2]; ++k) {
            values[at(block_.index(i, j, k))] += size * sine(0, i) * sine(1, j) * sine(2, k);
          }
        }
      }
    }
    return values;
  }

  const Settings& settings_;
  const Block& block_;
  std::vector<Box> outermost_;
  const Box interior_;
  std::vector<double> arrays_[2], start_, expected_;
  double* places_[2];
};

// ---- The program --------------------------------------------------------------------------------

// Returns the greatest permitted error: each step may round each value.
double tolerance(int steps) {
  return std::max(1e-12, 2 * steps * std::numeric_limits<double>::epsilon());
}

std::string in_words(const int (&extents)[3]) {
  return std::to_string(extents[0]) + "x" + std::to_string(extents[1]) + "x" +
         std::to_string(extents[2]);
}

// Chooses the blocks if they are not given. Returns "" or a sentence that says what does not fit.
std::string does_not_fit(Settings* settings) {
  const int ranks = trials::size_of(MPI_COMM_WORLD);
  const int* grid = settings->grid;
  const double points = 1.0 * grid[0] * grid[1] * grid[2];
  if (points > 1 << 28) return "--grid has more than 2^28 points: choose a smaller one";
  if (points < ranks) {
    return "--grid " + in_words(settings->grid) + " has fewer points than there are ranks";
  }
  if (settings->blocks[0] == 0) {
    for (int axis = 0; axis < 3; ++axis) settings->blocks[axis] = grid[axis] == 1;
    MPI_Dims_create(ranks, 3, settings->blocks);
  }
  const int* blocks = settings->blocks;
  if (1.0 * blocks[0] * blocks[1] * blocks[2] != ranks) {
    return "--blocks " + in_words(settings->blocks) + " is for another number than " +
           std::to_string(ranks) + " ranks";
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] >= blocks[axis]) continue;
    return "--grid " + in_words(settings->grid) + " has too few points for blocks of " +
           in_words(settings->blocks) + " ranks: choose a larger one, fewer ranks or --blocks";
  }
  const double most = 0.5 / (3 - settings->first_axis());
  if (settings->diffusion > most) {
    return "--diffusion makes the values grow without bound: choose at most " +
           std::to_string(most).substr(0, 5);
  }
  return trials::more_than_memory(7 * 8 * points / ranks, "choose a smaller --grid");
}

int run(int argc, char** argv) {
  Settings settings;
  trials::Settings trial;
  trials::Options options;
  options.grid("grid", &settings.grid);
  options.grid("blocks", &settings.blocks);
  options.number("steps", &settings.steps, 1, 100000);
  options.real("diffusion", &settings.diffusion);
  trial.offer(&options);
  trial.offer_blocking(&options);
  std::string wrong = options.read(argc, argv);
  if (wrong.empty()) wrong = does_not_fit(&settings);
  if (wrong.empty()) wrong = trial.cannot_write();
  if (!wrong.empty()) return trials::refuse("stencil", wrong);

  std::vector<trials::Variant> all = trials::blocking_and_overlapped(trial);
  std::vector<How> how = {How::blocking};
  how.resize(all.size(), How::non_blocking);
  const auto add = [&](const char* name, const std::string& engine, How one) {
    if (!trial.has_overlapped()) return;
    all.push_back(trials::variant(name, engine)), how.push_back(one);
  };
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
  for (const std::string& engine : trial.engines) add("persistent", engine, How::persistent);
#endif
  add("messages", "", How::messages);
  add("persistent messages", "", How::persistent_messages);

  // All variants use the same two arrays.
  const Block block = block_of(settings, trials::rank_in(MPI_COMM_WORLD));
  Simulation simulation(settings, block);
  std::vector<std::unique_ptr<Halo>> halos;
  for (std::size_t i = 0; i < all.size(); ++i) {
    halos.push_back(std::make_unique<Halo>(settings, block, how[i], &all[i], simulation.arrays()));
  }
  simulation.prepare();
  simulation.carry_out(halos[0].get());
  const std::vector<double> first = simulation.result();
  double error = simulation.error();
  MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (trials::rank_in(MPI_COMM_WORLD) == 0) {
    std::printf("blocking: error %.1e (exact solution)\n", error);
  }
  const int failures = trials::measure(
      trial, &all, [&](trials::Variant&) { simulation.prepare(); },
      [&](trials::Variant& one) { simulation.carry_out(halos[at(&one - all.data())].get()); },
      [&](trials::Variant& one) {
        const std::vector<double> found = simulation.result();
        const bool same = trials::compare_bits(
            &one, std::memcmp(found.data(), first.data(), first.size() * sizeof(double)) == 0);
        return same && simulation.error() < tolerance(settings.steps);
      });
  const std::string text = std::to_string(settings.steps) + " steps, " + in_words(settings.grid) +
                           ", blocks " + in_words(settings.blocks);
  const int status = trials::report(trial, "stencil", text, all, failures);
  halos.clear();
  trials::release(&all);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
