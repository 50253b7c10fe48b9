// Many collectives in flight at once, completed in every way of the standard, mixed with the
// library's own requests and null requests, and from several threads. An application's array of
// requests does not tell which requests are Weft's.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "conformance.h"

namespace conformance {
namespace {

constexpr int kPerComm = 8;
constexpr int kCollectives = 2 * kPerComm;
constexpr int kMessages = 2;  // one is sent, one is received
constexpr int kRequests = kCollectives + kMessages + 1;
constexpr int kCount = 300;
constexpr int kTag = 77;

int value(int rank, int index, int salt) {
  return rank * 1000 + index % 1000 + salt;
}

// A small collective with its buffers. `which` selects its kind.
class Piece {
 public:
  Piece(int which, int count, MPI_Comm comm) : which_(which), count_(count), comm_(comm) {
    rank_ = rank_of(comm);
    size_ = size_of(comm);
    const int blocks = kind() == 2 || kind() == 3 ? size_ : 1;
    send_.resize(static_cast<std::size_t>(count) * size_);
    receive_.assign(static_cast<std::size_t>(count) * blocks, -1);
    for (std::size_t i = 0; i < send_.size(); ++i) {
      send_[i] = value(rank_, static_cast<int>(i), which);
    }
    if (kind() == 1 && rank_ == root()) std::copy_n(send_.begin(), count, receive_.begin());
  }

  void start(MPI_Request* request) {
    int *in = send_.data(), *out = receive_.data(), n = count_;
    if (kind() == 0) MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm_, request);
    if (kind() == 1) MPI_Ibcast(out, n, MPI_INT, root(), comm_, request);
    if (kind() == 2) MPI_Iallgather(in, n, MPI_INT, out, n, MPI_INT, comm_, request);
    if (kind() == 3) MPI_Ialltoall(in, n, MPI_INT, out, n, MPI_INT, comm_, request);
    if (kind() == 4) MPI_Ireduce(in, out, n, MPI_INT, MPI_MAX, root(), comm_, request);
    if (kind() == 5) MPI_Iscan(in, out, n, MPI_INT, MPI_SUM, comm_, request);
    if (kind() == 6) MPI_Ibarrier(comm_, request);
  }

  bool correct() const {
    for (int i = 0; i < static_cast<int>(receive_.size()); ++i) {
      if (receive_[i] != expected(i)) return false;
    }
    return true;
  }

 private:
  int kind() const { return which_ % 7; }
  int root() const { return which_ % size_; }
  int sum(int ranks, int index) const {
    int total = 0;
    for (int r = 0; r < ranks; ++r) total += value(r, index, which_);
    return total;
  }
  int expected(int i) const {
    switch (kind()) {
      case 0:
        return sum(size_, i);
      case 1:
        return value(root(), i, which_);
      case 2:
        return value(i / count_, i % count_, which_);
      case 3:
        return value(i / count_, rank_ * count_ + i % count_, which_);
      case 4:
        return rank_ == root() ? value(size_ - 1, i, which_) : -1;
      case 5:
        return sum(rank_ + 1, i);
      default:
        return -1;
    }
  }

  int which_, count_, rank_ = 0, size_ = 1;
  MPI_Comm comm_;
  std::vector<int> send_, receive_;
};

using Requests = std::vector<MPI_Request>;
using Statuses = std::vector<MPI_Status>;

// The functions below complete all requests and store the statuses at their indices.
void by_wait(Requests& requests, Statuses& statuses) {
  for (int i = static_cast<int>(requests.size()) - 1; i >= 0; --i) {
    MPI_Wait(&requests[i], &statuses[i]);
  }
}

void by_waitall(Requests& requests, Statuses& statuses) {
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
}

void by_waitany(Requests& requests, Statuses& statuses) {
  for (;;) {
    int index;
    MPI_Status status;
    MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, &status);
    if (index == MPI_UNDEFINED) return;
    statuses[index] = status;
  }
}

void scatter(int done, const std::vector<int>& indices, const Statuses& some, Statuses* all) {
  for (int i = 0; i < done; ++i) (*all)[indices[i]] = some[i];
}

void by_waitsome(Requests& requests, Statuses& statuses) {
  std::vector<int> indices(requests.size());
  Statuses some(requests.size());
  for (;;) {
    int done;
    MPI_Waitsome(static_cast<int>(requests.size()), requests.data(), &done, indices.data(),
                 some.data());
    if (done == MPI_UNDEFINED) return;
    scatter(done, indices, some, &statuses);
  }
}

void by_test(Requests& requests, Statuses& statuses) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (int done = 0; !done;) {
      MPI_Test(&requests[i], &done, &statuses[i]);
      if (!done) rest();
    }
  }
}

void by_testall(Requests& requests, Statuses& statuses) {
  for (int done = 0; !done;) {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data());
    if (!done) rest();
  }
}

void by_testany(Requests& requests, Statuses& statuses) {
  for (;;) {
    int index, done;
    MPI_Status status;
    MPI_Testany(static_cast<int>(requests.size()), requests.data(), &index, &done, &status);
    if (done && index == MPI_UNDEFINED) return;
    if (done) statuses[index] = status;
    if (!done) rest();
  }
}

void by_testsome(Requests& requests, Statuses& statuses) {
  std::vector<int> indices(requests.size());
  Statuses some(requests.size());
  for (;;) {
    int done;
    MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &done, indices.data(),
                 some.data());
    if (done == MPI_UNDEFINED) return;
    scatter(done, indices, some, &statuses);
    if (done == 0) rest();
  }
}

void by_get_status(Requests& requests, Statuses& statuses) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (int done = 0; !done;) {
      MPI_Request_get_status(requests[i], &done, &statuses[i]);
      if (!done) rest();
    }
    MPI_Wait(&requests[i], &statuses[i]);
  }
}

struct Way {
  const char* name;
  void (*complete)(Requests&, Statuses&);
};

constexpr Way kWays[] = {
    {"Wait", by_wait},         {"Waitall", by_waitall},   {"Waitany", by_waitany},
    {"Waitsome", by_waitsome}, {"Test", by_test},         {"Testall", by_testall},
    {"Testany", by_testany},   {"Testsome", by_testsome}, {"Request_get_status", by_get_status}};

// Returns on which communicator a rank starts next: even ranks start all of communicator 0 first,
// odd ranks all of communicator 1, others alternate. This is legal, since all ranks have the same
// order on each communicator.
int communicator_at(int step, int rank) {
  if (rank % 3 == 2) return step % 2;
  return (step / kPerComm + rank) % 2;
}

bool requests_null(const Requests& requests) {
  return std::all_of(requests.begin(), requests.end(),
                     [](MPI_Request request) { return request == MPI_REQUEST_NULL; });
}

// Returns whether the received message has the right status at its index. Statuses of collectives
// are undefined.
bool message_status(MPI_Status status, int source) {
  int elements = 0;
  MPI_Get_count(&status, MPI_INT, &elements);
  return status.MPI_SOURCE == source && status.MPI_TAG == kTag && elements == 1;
}

void sixteen(const Way& way, const MPI_Comm comms[2], Tally* tally) {
  tally->begin(std::string("16 in flight on two communicators, completed by ") + way.name);
  const int rank = rank_of(comms[0]), size = size_of(comms[0]);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  std::vector<Piece> pieces;
  for (int i = 0; i < kCollectives; ++i) pieces.emplace_back(i, kCount, comms[i / kPerComm]);
  Requests requests(kRequests, MPI_REQUEST_NULL);
  Statuses statuses(kRequests);
  int got = -1;
  MPI_Irecv(&got, 1, MPI_INT, left, kTag, comms[0], &requests[kCollectives]);
  int next[2] = {0, 0};
  for (int step = 0; step < kCollectives; ++step) {
    int comm = communicator_at(step, rank);
    const int which = comm * kPerComm + next[comm]++;
    pieces[which].start(&requests[which]);
  }
  MPI_Isend(&rank, 1, MPI_INT, right, kTag, comms[0], &requests[kCollectives + 1]);
  way.complete(requests, statuses);
  const bool right_results =
      std::all_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.correct(); });
  if (!requests_null(requests)) return tally->end(false, "a request is not null afterwards");
  if (got != left) return tally->end(false, "the message is wrong");
  if (!message_status(statuses[kCollectives], left)) return tally->end(false, "status is wrong");
  tally->end(right_results);
}

// Calls that complete requests, with arrays that contain no active request.
void nothing_active(Tally* tally) {
  tally->begin("completion of null requests");
  Requests requests(3, MPI_REQUEST_NULL);
  Statuses statuses(3);
  int index = 0, done = 0, count = 0, indices[3];
  bool good = MPI_Waitany(3, requests.data(), &index, statuses.data()) == MPI_SUCCESS;
  good = good && index == MPI_UNDEFINED;
  MPI_Testall(3, requests.data(), &done, statuses.data());
  good = good && done;
  MPI_Waitsome(3, requests.data(), &count, indices, statuses.data());
  good = good && count == MPI_UNDEFINED;
  MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE);
  MPI_Status status;
  MPI_Wait(&requests[0], &status);
  good = good && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG;
  tally->end(good);
}

void thousand(MPI_Comm comm, Tally* tally) {
  tally->begin("1000 in flight");
  std::vector<Piece> pieces;
  for (int i = 0; i < 1000; ++i) pieces.emplace_back(i, 2, comm);
  Requests requests(1000, MPI_REQUEST_NULL);
  for (int i = 0; i < 1000; ++i) pieces[i].start(&requests[i]);
  MPI_Waitall(1000, requests.data(), MPI_STATUSES_IGNORE);
  tally->end(requests_null(requests) &&
             std::all_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.correct(); }));
}

// Short collectives start while a long one is in flight, and could overtake it.
void mixed_sizes(MPI_Comm comm, Tally* tally) {
  tally->begin("48 in flight, short and long");
  constexpr int kCounts[] = {1, 50'000, 30, 2'000, 90'000};
  std::vector<Piece> pieces;
  for (int i = 0; i < 48; ++i) pieces.emplace_back(i, kCounts[i % 5], comm);
  Requests requests(pieces.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i].start(&requests[i]);
  for (std::size_t i = pieces.size(); i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  tally->end(std::all_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.correct(); }));
}

// A rank waits in a collective for another rank, which enters the collective only after its long
// message to the first rank was received. So the wait must let the MPI library progress.
void message_meanwhile(MPI_Comm comm, const char* form, void (*collective)(MPI_Comm),
                       Tally* tally) {
  const int rank = rank_of(comm), partner = rank ^ 1;
  std::vector<double> message(1 << 17, rank % 2);
  MPI_Request request = MPI_REQUEST_NULL;
  tally->begin(std::string("a message taken while waiting in ") + form);
  if (partner < size_of(comm)) {
    const int count = static_cast<int>(message.size());
    if (rank % 2 == 0)
      MPI_Irecv(message.data(), count, MPI_DOUBLE, partner, 7, comm, &request);
    else
      MPI_Ssend(message.data(), count, MPI_DOUBLE, partner, 7, comm);
  }
  collective(comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  tally->end(partner >= size_of(comm) || message.back() == 1.0);
}

void blocking_sum(MPI_Comm comm) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
}

void awaited_sum(MPI_Comm comm) {
  int one = 1, sum = 0;
  MPI_Request request;
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void from_threads(Tally* tally) {
  tally->begin("three threads, each with a communicator");
  constexpr int kThreads = 3;
  MPI_Comm comms[kThreads];
  for (auto& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::atomic<int> wrong{0};  // written by all threads; read after they are joined
  std::vector<std::thread> threads;
  for (MPI_Comm comm : comms) {
    threads.emplace_back([comm, &wrong] {
      for (int i = 0; i < 21; i += 3) {
        std::vector<Piece> pieces;
        for (int k = 0; k < 3; ++k) pieces.emplace_back(i + k, kCount, comm);
        Requests requests(3, MPI_REQUEST_NULL);
        for (int k = 0; k < 3; ++k) pieces[k].start(&requests[k]);
        MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
        for (const auto& piece : pieces) wrong += !piece.correct();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (auto& comm : comms) MPI_Comm_free(&comm);
  tally->end(wrong == 0);
}

}  // namespace

void check_flight(bool threads, Tally* tally) {
  MPI_Comm comms[2];
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  for (const auto& way : kWays) sixteen(way, comms, tally);
  nothing_active(tally);
  thousand(comms[0], tally);
  mixed_sizes(comms[0], tally);
  message_meanwhile(comms[0], "MPI_Allreduce", blocking_sum, tally);
  message_meanwhile(comms[0], "MPI_Wait", awaited_sum, tally);
  MPI_Comm_free(&comms[0]);
  MPI_Comm_free(&comms[1]);
  if (threads) {
    from_threads(tally);
  } else {
    tally->skip("three threads", "the library does not grant MPI_THREAD_MULTIPLE");
  }
}

}  // namespace conformance
