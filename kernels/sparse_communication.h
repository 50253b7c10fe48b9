// The communication of pipecg: sums of inner products, and the exchange of rows with neighbours
// (halo). Which parts overlap is chosen once. The time of blocking calls is counted.
#pragma once
#include <mpi.h>

#include <array>
#include <vector>

#include "sparse.h"
#include "trials.h"

namespace sparse {

// Says which communication overlaps with computation: none, the halo exchange, or all. master: the
// master thread makes blocking calls while the other threads multiply.
enum class Overlap { none, halo, all, master };

class Communication {
 public:
  Communication(const Matrix& matrix, Overlap overlap, trials::Variant* variant)
      : matrix_(matrix), overlap_(overlap), variant_(variant) {
    const int degree = static_cast<int>(matrix.peers.size());
    MPI_Dist_graph_create_adjacent(variant->comm, degree, matrix.peers.data(), MPI_UNWEIGHTED,
                                   degree, matrix.peers.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &graph_);
    trials::use_engine(graph_, *variant);
  }
  ~Communication() { MPI_Comm_free(&graph_); }
  Communication(const Communication&) = delete;
  Communication& operator=(const Communication&) = delete;

  Overlap overlap() const { return overlap_; }

  // Adds the values of all ranks. work() runs meanwhile if that is to overlap, otherwise
  // afterwards.
  template <class S, class Work>
  void sum(std::array<S, 3>* products, const Work& work) {
    if (overlap_ != Overlap::all) {
      sum(products);
      work();
      return;
    }
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, products->data(), 3, type<S>(), MPI_SUM, variant_->comm, &request);
    work();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  template <class S>
  void sum(std::array<S, 3>* products) {
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, products->data(), 3, type<S>(), MPI_SUM, variant_->comm);
    variant_->communicating_s += MPI_Wtime() - begin;
  }

  // Fills the halo of `vector`: begin_halo() and end_halo() in two calls, exchange_halo() in one.
  template <class T>
  void begin_halo(std::vector<T>* vector) {
    const std::vector<T>& out = packed(*vector);
    MPI_Ineighbor_alltoallv(out.data(), matrix_.send_counts.data(), matrix_.send_places.data(),
                            type<T>(), vector->data() + matrix_.rows, matrix_.receive_counts.data(),
                            matrix_.receive_places.data(), type<T>(), graph_, &halo_);
  }
  void end_halo() { MPI_Wait(&halo_, MPI_STATUS_IGNORE); }
  template <class T>
  void exchange_halo(std::vector<T>* vector) {
    const double begin = MPI_Wtime();
    const std::vector<T>& out = packed(*vector);
    MPI_Neighbor_alltoallv(out.data(), matrix_.send_counts.data(), matrix_.send_places.data(),
                           type<T>(), vector->data() + matrix_.rows, matrix_.receive_counts.data(),
                           matrix_.receive_places.data(), type<T>(), graph_);
    variant_->communicating_s += MPI_Wtime() - begin;
  }

 private:
  template <class T>
  const std::vector<T>& packed(const std::vector<T>& vector) {
    std::vector<T>& out = outgoing(T());
    out.resize(matrix_.outgoing.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = vector[static_cast<std::size_t>(matrix_.outgoing[i])];
    }
    return out;
  }
  template <class T>
  static MPI_Datatype type() {
    return sizeof(T) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
  }
  std::vector<double>& outgoing(double) { return out_double_; }
  std::vector<float>& outgoing(float) { return out_single_; }

  const Matrix& matrix_;
  Overlap overlap_;
  trials::Variant* variant_;
  MPI_Comm graph_ = MPI_COMM_NULL;
  MPI_Request halo_ = MPI_REQUEST_NULL;
  std::vector<double> out_double_;
  std::vector<float> out_single_;
};

}  // namespace sparse
