// Exchanges rows of a matrix with an irregular set of ranks, the same ones each time, as sparse
// tensor codes do. MPI has no call for that, so several forms are compared: an Alltoallv of packed
// rows, a neighborhood collective, messages, and weft_exchange_rows_init, which needs no packing
// and exists only if Weft is loaded.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

#include "trials.h"
#include "weft.h"

namespace rows {

// For each rank of the communicator, the rows of `from` that it gets, and the rows of `to` that it
// sends.
struct Lists {
  std::vector<std::vector<int>> sent, received;
};

// Says how a variant exchanges rows. Only `rows` needs Weft.
enum class How { blocking, alltoallv, neighbours, messages, rows };

inline bool there(How how) {
  return how != How::rows || weft_exchange_rows_init != nullptr;
}

class Exchange {
 public:
  Exchange(How how, const Lists& lists, int length, const double* from, double* to,
           MPI_Comm communicator, trials::Variant* variant)
      : how_(how), lists_(lists), length_(length), from_(from), to_(to), variant_(variant) {
    MPI_Type_contiguous(length, MPI_DOUBLE, &row_);
    MPI_Type_commit(&row_);
    count(lists.sent, &peers_, &send_), count(lists.received, &sources_, &receive_);
    if (how == How::neighbours) {
      MPI_Dist_graph_create_adjacent(communicator, degree(sources_), sources_.data(),
                                     MPI_UNWEIGHTED, degree(peers_), peers_.data(), MPI_UNWEIGHTED,
                                     MPI_INFO_NULL, 0, &comm_);
    } else {
      MPI_Comm_dup(communicator, &comm_);
    }
    trials::use_engine(comm_, *variant);
    if (how == How::rows) {
      arrange();
      return;
    }
    sent_.resize(size(send_.total)), received_.resize(size(receive_.total));
    requests_.assign(how == How::messages ? peers_.size() + sources_.size() : 1, MPI_REQUEST_NULL);
  }
  ~Exchange() {
    if (how_ == How::rows) MPI_Request_free(requests_.data());
    MPI_Type_free(&row_), MPI_Comm_free(&comm_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void begin() {
    if (how_ == How::rows) {
      MPI_Start(requests_.data());
      return;
    }
    pack();
    if (how_ == How::blocking) {
      const double begin = MPI_Wtime();
      MPI_Alltoallv(sent_.data(), send_.counts.data(), send_.places.data(), row_, received_.data(),
                    receive_.counts.data(), receive_.places.data(), row_, comm_);
      variant_->communicating_s += MPI_Wtime() - begin;
    } else if (how_ == How::alltoallv) {
      MPI_Ialltoallv(sent_.data(), send_.counts.data(), send_.places.data(), row_, received_.data(),
                     receive_.counts.data(), receive_.places.data(), row_, comm_, requests_.data());
    } else if (how_ == How::neighbours) {
      MPI_Ineighbor_alltoallv(sent_.data(), send_.near_counts.data(), send_.near_places.data(),
                              row_, received_.data(), receive_.near_counts.data(),
                              receive_.near_places.data(), row_, comm_, requests_.data());
    } else {
      send_messages();
    }
  }
  void end() {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    if (how_ == How::rows) return;
    const double* next = received_.data();
    for (const std::vector<int>& list : lists_.received) {
      for (const int row : list) std::copy_n(next, length_, to_ + at(row)), next += length_;
    }
  }

 private:
  // Counts and places in rows: for all ranks, and for those ranks only with which rows are
  // exchanged.
  struct Layout {
    std::vector<int> counts, places, near_counts, near_places;
    int total = 0;
  };
  std::ptrdiff_t at(int row) const { return std::ptrdiff_t{row} * length_; }
  std::size_t size(int rows) const { return static_cast<std::size_t>(at(rows)); }
  static int degree(const std::vector<int>& ranks) { return static_cast<int>(ranks.size()); }

  static void count(const std::vector<std::vector<int>>& lists, std::vector<int>* ranks,
                    Layout* layout) {
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      const int rows = static_cast<int>(lists[rank].size());
      layout->counts.push_back(rows), layout->places.push_back(layout->total);
      if (rows) {
        ranks->push_back(static_cast<int>(rank));
        layout->near_counts.push_back(rows), layout->near_places.push_back(layout->total);
      }
      layout->total += rows;
    }
  }

  void pack() {
    double* next = sent_.data();
    for (const std::vector<int>& list : lists_.sent) {
      for (const int row : list) next = std::copy_n(from_ + at(row), length_, next);
    }
  }

  void send_messages() {
    MPI_Request* next = requests_.data();
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      MPI_Irecv(received_.data() + at(receive_.near_places[i]), receive_.near_counts[i], row_,
                sources_[i], 0, comm_, next++);
    }
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      MPI_Isend(sent_.data() + at(send_.near_places[i]), send_.near_counts[i], row_, peers_[i], 0,
                comm_, next++);
    }
  }

  void arrange() {
    const auto lists_of = [](const std::vector<std::vector<int>>& lists) {
      std::vector<weft_rows> made;
      for (std::size_t rank = 0; rank < lists.size(); ++rank) {
        made.push_back(
            {static_cast<int>(rank), static_cast<int>(lists[rank].size()), lists[rank].data()});
      }
      return made;
    };
    const std::vector<weft_rows> sent = lists_of(lists_.sent), received = lists_of(lists_.received);
    requests_.resize(1);
    weft_exchange_rows_init(from_, static_cast<int>(sent.size()), sent.data(), to_,
                            static_cast<int>(received.size()), received.data(), row_, comm_,
                            requests_.data());
  }

  How how_;
  const Lists& lists_;
  int length_;
  const double* from_;
  double* to_;
  trials::Variant* variant_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Datatype row_ = MPI_DATATYPE_NULL;
  std::vector<int> peers_, sources_;
  Layout send_, receive_;
  std::vector<double> sent_, received_;
  std::vector<MPI_Request> requests_;
};

}  // namespace rows
