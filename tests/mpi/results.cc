// Results: each collective × counts × types × operators × in place or not × roots, against the
// library's blocking call with the same arguments on a communicator of its own, and against the
// known values.
// Why both: the blocking call knows the standard's corners, but some libraries get a few of these
// cases wrong; then the known value decides, and the library's fault is counted, not hidden.
#include <chrono>
#include <vector>

#include "conformance.h"
#include "typecase.h"

namespace conformance {
namespace {

struct Operator {
  const char* name;
  MPI_Op op;
};

double clock_s() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Sizes a block so that what all ranks send stays bounded.
int block(int count, int size) {
  return count > 1000 ? count / size : count;
}

class Checker {
 public:
  Checker(const Options& options, Tally* tally) : options_(options), tally_(*tally) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_dup(MPI_COMM_WORLD, &oracle_);
    rank_ = rank_of(comm_);
    size_ = size_of(comm_);
  }
  ~Checker() {
    MPI_Comm_free(&comm_);
    MPI_Comm_free(&oracle_);
  }

  void all();

 private:
  bool wanted(const char* collective) const {
    return options_.only.empty() || options_.only == collective;
  }
  std::vector<int> counts() const;
  std::vector<int> roots(int count) const;
  static std::vector<Operator> operators(const TypeCase& type);
  void begin(const char* collective, const TypeCase& type, int count, const std::string& rest);

  void allreduce(const TypeCase& type, int count, const Operator& op, bool in_place);
  void scan(const TypeCase& type, int count, const Operator& op, bool in_place);
  void reduce(const TypeCase& type, int count, const Operator& op, bool in_place, int root);
  void bcast(const TypeCase& type, int count, int root);
  void allgather(const TypeCase& type, int count, bool in_place);
  void alltoall(const TypeCase& type, int count, bool in_place);
  void mixed_types(int count);
  void barrier();
  // The known results: the contributions of ranks 0 to `last`, combined in rank order.
  Buffer folded(const TypeCase& type, int count, const Operator& op, int last) const;
  void judge(const Buffer& got, const Buffer& blocking, const Buffer& known, bool send_kept);

  Options options_;
  Tally& tally_;
  TypeCases types_;
  MPI_Comm comm_, oracle_;
  int rank_, size_, salt_ = 0;
};

std::vector<int> Checker::counts() const {
  std::vector<int> result;
  for (int count : {0, 1, 7, 1000, 100003}) {
    if (count <= options_.largest_count) result.push_back(count);
  }
  return result;
}

std::vector<int> Checker::roots(int count) const {
  if (count > 7) return size_ > 1 ? std::vector<int>{0, size_ - 1} : std::vector<int>{0};
  std::vector<int> result(size_);
  for (int i = 0; i < size_; ++i) result[i] = i;
  return result;
}

// The standard defines its own operators on its own types only, and no order of complex numbers.
std::vector<Operator> Checker::operators(const TypeCase& type) {
  std::vector<Operator> result = {{"compose", type.user_compose}};
  result.push_back(type.predefined ? Operator{"sum", MPI_SUM}
                                   : Operator{"user sum", type.user_sum});
  if (type.name == "int" || type.name == "double") result.push_back({"max", MPI_MAX});
  return result;
}

void Checker::begin(const char* collective, const TypeCase& type, int count,
                    const std::string& rest) {
  ++salt_;
  tally_.begin(std::string(collective) + " " + type.name + " x " + std::to_string(count) + rest);
}

Buffer Checker::folded(const TypeCase& type, int count, const Operator& op, int last) const {
  Buffer result(type, count);
  result.fill(0, salt_);
  for (int from = 1; from <= last; ++from) {
    Buffer higher(type, count);
    higher.fill(from, salt_);
    MPI_Reduce_local(result.data(), higher.data(), count, type.type, op.op);
    result = higher;
  }
  return result;
}

void Checker::judge(const Buffer& got, const Buffer& blocking, const Buffer& known,
                    bool send_kept) {
  if (!(blocking == known)) tally_.library_fault("the blocking call");
  if (!send_kept) return tally_.end(false, "the send buffer was changed");
  tally_.end(got == known || got == blocking);
}

std::string words(const Operator& op, bool in_place) {
  return std::string(" ") + op.name + (in_place ? " in place" : "");
}

void Checker::allreduce(const TypeCase& type, int count, const Operator& op, bool in_place) {
  begin("allreduce", type, count, words(op, in_place));
  Buffer send(type, count), got(type, count), want(type, count);
  send.fill(rank_, salt_);
  if (in_place) got = want = send;
  const Buffer kept = send;
  MPI_Request request;
  MPI_Iallreduce(in_place ? MPI_IN_PLACE : send.data(), got.data(), count, type.type, op.op, comm_,
                 &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allreduce(in_place ? MPI_IN_PLACE : send.data(), want.data(), count, type.type, op.op,
                oracle_);
  judge(got, want, folded(type, count, op, size_ - 1), send == kept);
}

void Checker::scan(const TypeCase& type, int count, const Operator& op, bool in_place) {
  begin("scan", type, count, words(op, in_place));
  Buffer send(type, count), got(type, count), want(type, count);
  send.fill(rank_, salt_);
  if (in_place) got = want = send;
  const Buffer kept = send;
  MPI_Request request;
  MPI_Iscan(in_place ? MPI_IN_PLACE : send.data(), got.data(), count, type.type, op.op, comm_,
            &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Scan(in_place ? MPI_IN_PLACE : send.data(), want.data(), count, type.type, op.op, oracle_);
  judge(got, want, folded(type, count, op, rank_), send == kept);
}

void Checker::reduce(const TypeCase& type, int count, const Operator& op, bool in_place, int root) {
  begin("reduce", type, count, words(op, in_place) + " root " + std::to_string(root));
  Buffer send(type, count), got(type, count), want(type, count);
  const Buffer untouched = got;
  send.fill(rank_, salt_);
  in_place = in_place && rank_ == root;
  if (in_place) got = want = send;
  const Buffer kept = send;
  MPI_Request request;
  MPI_Ireduce(in_place ? MPI_IN_PLACE : send.data(), got.data(), count, type.type, op.op, root,
              comm_, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Reduce(in_place ? MPI_IN_PLACE : send.data(), want.data(), count, type.type, op.op, root,
             oracle_);
  judge(got, want, rank_ == root ? folded(type, count, op, size_ - 1) : untouched, send == kept);
}

void Checker::bcast(const TypeCase& type, int count, int root) {
  begin("bcast", type, count, " root " + std::to_string(root));
  Buffer got(type, count), want(type, count), known(type, count);
  known.fill(root, salt_);
  if (rank_ == root) got.fill(rank_, salt_);
  if (rank_ == root) want.fill(rank_, salt_);
  MPI_Request request;
  MPI_Ibcast(got.data(), count, type.type, root, comm_, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Bcast(want.data(), count, type.type, root, oracle_);
  judge(got, want, known, true);
}

void Checker::allgather(const TypeCase& type, int count, bool in_place) {
  count = block(count, size_);
  begin("allgather", type, count, in_place ? " in place" : "");
  Buffer send(type, count), got(type, long{count} * size_), want(type, long{count} * size_);
  send.fill(rank_, salt_);
  if (in_place) got.fill_part(rank_ * long{count}, count, rank_, 0, salt_);
  if (in_place) want = got;
  const Buffer kept = send;
  MPI_Request request;
  MPI_Iallgather(in_place ? MPI_IN_PLACE : send.data(), count, type.type, got.data(), count,
                 type.type, comm_, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allgather(in_place ? MPI_IN_PLACE : send.data(), count, type.type, want.data(), count,
                type.type, oracle_);
  Buffer known(type, long{count} * size_);
  for (int r = 0; r < size_; ++r) known.fill_part(r * long{count}, count, r, 0, salt_);
  judge(got, want, known, send == kept);
}

void Checker::alltoall(const TypeCase& type, int count, bool in_place) {
  count = block(count, size_);
  begin("alltoall", type, count, in_place ? " in place" : "");
  const long all = long{count} * size_;
  Buffer send(type, all), got(type, all), want(type, all);
  send.fill(rank_, salt_);
  if (in_place) got = want = send;
  const Buffer kept = send;
  MPI_Request request;
  MPI_Ialltoall(in_place ? MPI_IN_PLACE : send.data(), count, type.type, got.data(), count,
                type.type, comm_, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Alltoall(in_place ? MPI_IN_PLACE : send.data(), count, type.type, want.data(), count,
               type.type, oracle_);
  Buffer known(type, all);
  const long from = rank_ * long{count};
  for (int r = 0; r < size_; ++r) known.fill_part(r * long{count}, count, r, from, salt_);
  judge(got, want, known, send == kept);
}

// Types that match (two ints each) but differ: between sender and receiver, and between ranks.
void Checker::mixed_types(int count) {
  count = block(count, size_);
  const TypeCase& pair = types_.named("vector");
  const TypeCase& single = types_.named("int");
  const long all = long{count} * size_;
  Buffer send(pair, all), got(single, 2 * all), want(single, 2 * all);
  MPI_Request request;
  send.fill(rank_, salt_);
  if (wanted("allgather")) {
    begin("allgather", pair, count, " to ints");
    MPI_Iallgather(send.data(), count, pair.type, got.data(), 2 * count, MPI_INT, comm_, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allgather(send.data(), count, pair.type, want.data(), 2 * count, MPI_INT, oracle_);
    tally_.end(got == want);
  }
  if (wanted("alltoall")) {
    begin("alltoall", pair, count, " to ints");
    MPI_Ialltoall(send.data(), count, pair.type, got.data(), 2 * count, MPI_INT, comm_, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Alltoall(send.data(), count, pair.type, want.data(), 2 * count, MPI_INT, oracle_);
    tally_.end(got == want);
  }
  if (wanted("bcast")) {
    begin("bcast", pair, count, " to ints");
    const bool root = rank_ == 0;
    Buffer ints(single, 2L * count), ints_wanted(single, 2L * count);
    MPI_Ibcast(root ? send.data() : ints.data(), root ? count : 2 * count,
               root ? pair.type : MPI_INT, 0, comm_, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(root ? send.data() : ints_wanted.data(), root ? count : 2 * count,
              root ? pair.type : MPI_INT, 0, oracle_);
    tally_.end(ints == ints_wanted);
  }
}

// Nobody leaves before the last has come; the ranks share one machine and so one clock.
void Checker::barrier() {
  for (int late = 0; late < size_; ++late) {
    tally_.begin("barrier, late rank " + std::to_string(late));
    for (int i = 0; rank_ == late && i < 20; ++i) rest();
    const double entered = clock_s();
    MPI_Request request;
    MPI_Ibarrier(comm_, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double left = clock_s();
    double last_entered = 0;
    MPI_Allreduce(&entered, &last_entered, 1, MPI_DOUBLE, MPI_MAX, oracle_);
    tally_.end(left >= last_entered, "a rank left before the last had come");
  }
}

void Checker::all() {
  for (int count : counts()) {
    for (const auto& type : types_.all()) {
      if (options_.left_out(type.name)) continue;
      for (bool in_place : {false, true}) {
        for (const auto& op : operators(type)) {
          if (wanted("allreduce")) allreduce(type, count, op, in_place);
          if (wanted("scan")) scan(type, count, op, in_place);
          if (!wanted("reduce")) continue;
          for (int root : roots(count)) reduce(type, count, op, in_place, root);
        }
        if (wanted("allgather")) allgather(type, count, in_place);
        if (wanted("alltoall")) alltoall(type, count, in_place);
      }
      if (!wanted("bcast")) continue;
      for (int root : roots(count)) bcast(type, count, root);
    }
    if (!options_.left_out("mixed")) mixed_types(count);
  }
  if (wanted("barrier")) barrier();
}

}  // namespace

void check_results(const Options& options, Tally* tally) {
  Checker(options, tally).all();
}

}  // namespace conformance
