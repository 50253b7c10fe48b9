// NCCL, which is loaded at run time. It is used only if no two ranks have the same device.
#pragma once
#include "gpu_device.h"

namespace gpu {

class Nccl {
 public:
  Nccl(const std::string& path, bool alone) {
    void* const found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    int all_alone = alone && ranks > 1;
    for (auto& [function, name] : functions()) {
      *function = symbol_of(found, name);
      if (!*function) all_alone = 0;
    }
    MPI_Allreduce(MPI_IN_PLACE, &all_alone, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all_alone) return;
    Id id{};
    if (rank == 0) good(reinterpret_cast<int (*)(Id*)>(get_id_)(&id), "ncclGetUniqueId");
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    const auto join = reinterpret_cast<int (*)(void**, int, Id, int)>(join_);
    good(join(&comm_, ranks, id, rank), "ncclCommInitRank");
  }
  bool is_there() const { return comm_ != nullptr; }

  void sum(const double* from, double* to, std::size_t count, Stream stream) const {
    using Sum = int(const void*, void*, std::size_t, int, int, void*, Stream);
    constexpr int kSum = 0;
    good(reinterpret_cast<Sum*>(allreduce_)(from, to, count, kDouble, kSum, comm_, stream),
         "ncclAllReduce");
  }

  // Exchanges `count` numbers with the rank above and with the one below, if these exist. The first
  // `count` numbers of each buffer are for the rank above, the next ones for the rank below.
  void exchange(const double* edge, double* halo, std::size_t count, Stream stream) const {
    good(reinterpret_cast<int (*)()>(begin_group_)(), "ncclGroupStart");
    for (const int side : {-1, 1}) {
      const int other = rank + side;
      if (other < 0 || other >= ranks) continue;
      const std::size_t offset = side < 0 ? 0 : count;
      using Send = int(const void*, std::size_t, int, int, void*, Stream);
      using Receive = int(void*, std::size_t, int, int, void*, Stream);
      good(reinterpret_cast<Send*>(send_)(edge + offset, count, kDouble, other, comm_, stream),
           "ncclSend");
      good(
          reinterpret_cast<Receive*>(receive_)(halo + offset, count, kDouble, other, comm_, stream),
          "ncclRecv");
    }
    good(reinterpret_cast<int (*)()>(end_group_)(), "ncclGroupEnd");
  }

 private:
  struct Id {
    char bytes[128];
  };
  struct Function {
    void** function;
    const char* name;
  };
  std::vector<Function> functions() {
    return {{&get_id_, "ncclGetUniqueId"},  {&join_, "ncclCommInitRank"},
            {&allreduce_, "ncclAllReduce"}, {&send_, "ncclSend"},
            {&receive_, "ncclRecv"},        {&begin_group_, "ncclGroupStart"},
            {&end_group_, "ncclGroupEnd"}};
  }

  static constexpr int kDouble = 8;

  void *get_id_ = nullptr, *join_ = nullptr, *allreduce_ = nullptr, *send_ = nullptr;
  void *receive_ = nullptr, *begin_group_ = nullptr, *end_group_ = nullptr;
  void* comm_ = nullptr;
};

}  // namespace gpu
