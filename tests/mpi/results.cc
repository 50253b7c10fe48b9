// Each collective in each of its forms, with various counts, types, operators, roots and
// communicators, in place or not. The result is compared with the expected value, and with that of
// the MPI library's blocking call with the same arguments on a communicator of its own. The
// blocking call follows the standard's special cases, but some libraries are wrong in a few of
// them. Then the expected value decides, and the library's error is counted.
#include <algorithm>
#include <chrono>
#include <vector>

#include "collective.h"
#include "conformance.h"

namespace conformance {
namespace {

struct Way {
  Form form;
  bool large;
};

// A communicator, and a duplicate of it for the MPI library's own blocking calls.
struct Ground {
  const char* name;
  Place place, oracle;
};

double clock_s() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

Ground ground(const char* name, MPI_Comm comm) {
  return {name, Place(comm), Place(oracle_of(comm))};
}

// Returns a ring; a line if there are too few members. Otherwise there would be two edges between
// the same two processes, which MPI libraries match differently.
MPI_Comm ring() {
  const int size = size_of(MPI_COMM_WORLD), periodic = size > 2;
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
  return comm;
}

// Returns a graph in which each process has an edge to itself and two edges to the next process.
MPI_Comm graph() {
  const int rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  const int sources[] = {left, rank, left}, destinations[] = {right, right, rank};
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources, MPI_UNWEIGHTED, 3, destinations,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  return comm;
}

MPI_Comm two_groups() {
  const int rank = rank_of(MPI_COMM_WORLD), odd = rank % 2;
  MPI_Comm mine, both;
  MPI_Comm_split(MPI_COMM_WORLD, odd, rank, &mine);
  MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 1 - odd, 4, &both);
  MPI_Comm_free(&mine);
  return both;
}

// Returns whether MPI libraries themselves are right for this kind on an intercommunicator.
bool between_groups(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::allgather || kind == Kind::alltoall;
}

class Checker {
 public:
  Checker(const Options& options, Tally* tally);
  ~Checker();

  void all();

 private:
  bool wanted(Kind kind) const {
    const std::string named = "," + options_.only + ",";
    return options_.only.empty() || named.find("," + kind_name(kind) + ",") != std::string::npos;
  }
  std::vector<int> counts() const;
  std::vector<int> roots(int count) const;
  std::vector<Way> ways(int count) const;
  std::vector<int> left_types() const;

  void kind(Kind kind, int count, const Ground& ground);
  void typed(Spec spec, const Ground& ground);
  void every_root(Spec spec, const Ground& ground);
  void check(const Spec& spec, const Ground& ground, const Way& way);
  void barrier(const Way& way);

  Options options_;
  Tally& tally_;
  TypeCases types_;
  std::vector<Ground> plain_, topologies_;
  unsigned salt_ = 0;
};

Checker::Checker(const Options& options, Tally* tally) : options_(options), tally_(*tally) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  plain_.push_back(ground("", comm));
  if (size_of(comm) > 1 && !options.left_out("groups"))
    plain_.push_back(ground(" between groups", two_groups()));
  topologies_.push_back(ground(" on a ring", ring()));
  topologies_.push_back(ground(" on a graph", graph()));
}

Checker::~Checker() {
  for (auto* grounds : {&plain_, &topologies_}) {
    for (auto& ground : *grounds) {
      MPI_Comm_free(&ground.place.comm);
      MPI_Comm_free(&ground.oracle.comm);
    }
  }
}

std::vector<int> Checker::counts() const {
  std::vector<int> result;
  for (int count : {0, 1, 7, 1000, 100003}) {
    if (count <= options_.largest_count) result.push_back(count);
  }
  return result;
}

std::vector<int> Checker::roots(int count) const {
  const int size = size_of(MPI_COMM_WORLD);
  if (count > 7) return size > 1 ? std::vector<int>{0, size - 1} : std::vector<int>{0};
  std::vector<int> result(size);
  for (int i = 0; i < size; ++i) result[i] = i;
  return result;
}

// Returns the forms to test: all for small counts, and for medium counts also the persistent ones.
std::vector<Way> Checker::ways(int count) const {
  std::vector<Way> result;
  for (Form form : {Form::blocking, Form::nonblocking, Form::persistent}) {
    if (form == Form::blocking && !options_.blocking) continue;
    for (bool large : {false, true}) {
      const bool persistent = form == Form::persistent;
      if ((large && !kLargeCounts) || (persistent && !kPersistent)) continue;
      if ((large && count > 7) || (persistent && count > 1000)) continue;
      if (persistent && options_.left_out("persistent")) continue;
      result.push_back({form, large});
    }
  }
  return result;
}

std::vector<int> Checker::left_types() const {
  std::vector<int> result;
  for (int i = 0; i < kTypes; ++i) {
    if (!options_.left_out(types_.all()[i].name)) result.push_back(i);
  }
  return result;
}

void Checker::check(const Spec& spec, const Ground& ground, const Way& way) {
  const std::string type = spec.mixed ? "vectors and ints" : types_.all()[spec.type].name;
  Collective started(spec, ground.place, types_), blocking(spec, ground.oracle, types_);
  std::string name = call_name(spec.kind, way.form, way.large) + " " + type + " x " +
                     std::to_string(spec.count) + ground.name;
  if (is_reduction(spec.kind)) name += std::string(" ") + started.operation().name;
  if (spec.in_place) name += " in place";
  if (has_root(spec.kind)) name += " root " + std::to_string(spec.root);
  MPI_Request request = MPI_REQUEST_NULL;
  const bool persistent = way.form == Form::persistent;
  if (persistent) started.call(way.form, way.large, &request);
  for (int round = 0; round < (persistent ? 2 : 1); ++round) {
    tally_.begin(name);
    ++salt_;
    started.fill(salt_);
    blocking.fill(salt_);
    if (persistent) MPI_Start(&request);
    if (!persistent) started.call(way.form, way.large, &request);
    if (way.form != Form::blocking) MPI_Wait(&request, MPI_STATUS_IGNORE);
    blocking.call(Form::blocking, false, nullptr);
    const bool faulty = !blocking.mistake().empty();
    if (faulty) tally_.library_fault(("the blocking call: " + blocking.mistake()).c_str());
    const std::string mistake = started.mistake();
    tally_.end(mistake.empty() || (faulty && started.same_result(blocking)), mistake.c_str());
  }
  if (persistent) MPI_Request_free(&request);
}

void Checker::every_root(Spec spec, const Ground& ground) {
  for (const Way& way : ways(spec.count)) {
    if (options_.left_out(call_name(spec.kind, way.form, false))) continue;
    if (ground.place.two_groups && way.form == Form::persistent) continue;
    for (int root : has_root(spec.kind) ? roots(spec.count) : std::vector<int>{0}) {
      spec.root = root;
      spec.layout = ++salt_;
      check(spec, ground, way);
    }
  }
}

void Checker::typed(Spec spec, const Ground& ground) {
  const int own = static_cast<int>(types_.all()[spec.type].operators.size());
  for (bool in_place : {false, true}) {
    if (in_place && (!has_in_place(spec.kind) || ground.place.two_groups)) continue;
    if (in_place && options_.left_out(kind_name(spec.kind) + "-in-place")) continue;
    spec.in_place = in_place;
    for (spec.op = 0; spec.op < (is_reduction(spec.kind) ? std::min(own, 3) : 1); ++spec.op) {
      every_root(spec, ground);
    }
  }
}

// Tests one kind of collective. The number of bytes that all ranks send is limited.
void Checker::kind(Kind kind, int count, const Ground& ground) {
  const bool bounded = count > 1000 && kind != Kind::bcast && kind != Kind::scan &&
                       kind != Kind::exscan && kind != Kind::reduce && kind != Kind::allreduce;
  Spec spec{kind, bounded ? count / size_of(MPI_COMM_WORLD) : count};
  spec.types = left_types();
  const bool scatters = kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_block;
  for (int type : spec.types) {
    const bool derived = !types_.all()[type].predefined;
    const bool negative = types_.all()[type].name == std::string("negative");
    if (scatters && derived && options_.left_out("scattered-derived")) continue;
    if (is_reduction(kind) && negative && options_.left_out("reduced-negative")) continue;
    if (kind == Kind::gather && negative && options_.left_out("gathered-negative")) continue;
    spec.type = type;
    typed(spec, ground);
  }
  if (is_reduction(kind) || options_.left_out("mixed") || options_.left_out("vector")) return;
  spec.type = 0;
  spec.mixed = true;
  typed(spec, ground);
}

// Checks that no rank leaves the barrier before the last one has entered it. The ranks share one
// machine and thus one clock.
void Checker::barrier(const Way& way) {
  const Place& place = plain_[0].place;
  MPI_Request request = MPI_REQUEST_NULL;
  Collective all(Spec{}, place, types_);
  const bool persistent = way.form == Form::persistent;
  if (persistent) all.call(way.form, false, &request);
  for (int late = 0; late < place.size(); ++late) {
    tally_.begin(call_name(Kind::barrier, way.form, false) + ", late rank " + std::to_string(late));
    for (int i = 0; place.rank == late && i < 20; ++i) rest();
    const double entered = clock_s();
    if (persistent) MPI_Start(&request);
    if (!persistent) all.call(way.form, false, &request);
    if (way.form != Form::blocking) MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double left = clock_s();
    double last_entered = 0;
    MPI_Allreduce(&entered, &last_entered, 1, MPI_DOUBLE, MPI_MAX, plain_[0].oracle.comm);
    tally_.end(left >= last_entered, "a rank left before the last had come");
  }
  if (persistent) MPI_Request_free(&request);
}

void Checker::all() {
  for (int count : counts()) {
    for (int k = 1; k < kKinds; ++k) {
      const Kind kind = static_cast<Kind>(k);
      if (!wanted(kind)) continue;
      for (const auto& ground : is_neighbor(kind) ? topologies_ : plain_) {
        if (ground.place.two_groups && (!between_groups(kind) || count > 7)) continue;
        this->kind(kind, count, ground);
      }
    }
  }
  if (!wanted(Kind::barrier)) return;
  for (const Way& way : ways(0)) {
    if (!way.large) barrier(way);
  }
}

}  // namespace

void check_results(const Options& options, Tally* tally) {
  Checker(options, tally).all();
}

}  // namespace conformance
