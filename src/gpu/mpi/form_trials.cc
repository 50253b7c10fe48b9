#include "gpu/mpi/form_trials.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "select/trials.h"

namespace weft::gpu {
namespace {

// A time that exceeds any budget. A rank that has failed reports it, which ends the measurements on
// all ranks.
constexpr std::int64_t kNever_ns = INT64_MAX / 4;

// FormTrials: an operation for each form, all of which use the collective's spot in turn.
class FormTrials {
 public:
  FormTrials(Runtime* runtime, Context* context, const ByKernel& collective, MPI_Comm comm)
      : runtime_(*runtime),
        context_(*context),
        collective_(collective),
        comm_(comm),
        data_bytes_(std::bit_ceil(bytes_of(collective))) {}
  ~FormTrials() {
    for (Operation* const one : operations_) runtime_.release(one);
    runtime_.collect();
    if (data_ != 0) context_.retire_region(data_, data_bytes_, 0);
    if (stream_) context_.driver().destroy_stream(stream_);
  }
  FormTrials(const FormTrials&) = delete;
  FormTrials& operator=(const FormTrials&) = delete;

  Result<Form> fastest(const std::vector<Form>& forms, std::int64_t budget_us) {
    Trials trials(forms.size(), budget_us * 1'000);
    Result<bool> good = prepare(forms);
    const std::int64_t began_ns = now_ns();
    std::optional<Trials::Trial> trial;
    std::int64_t each_ns = 0;
    while (true) {
      const auto slowest = greatest({good ? now_ns() - began_ns : kNever_ns, each_ns});
      if (!slowest) return slowest.error();
      if (!good) return good.error();
      if ((*slowest)[0] >= kNever_ns) {
        return Error{"another rank could not measure how kernels carry it out"};
      }
      if (trial) trials.add(*trial, (*slowest)[1]);
      trial = trials.next((*slowest)[0]);
      if (!trial) return forms[trials.best()];
      good = measure(*trial, &each_ns);
    }
  }

 private:
  using Times = std::array<std::int64_t, 2>;

  // Returns how many bytes the collective reads or writes at most.
  static std::size_t bytes_of(const ByKernel& collective) {
    const OneKernelCall& call = collective.call;
    const bool gathers = call.what == OneKernelCall::What::gather;
    const auto blocks = static_cast<std::size_t>(gathers ? collective.peers->ranks() : 1);
    return std::max(call.published, blocks * call.count) * element_bytes(call.type);
  }

  Result<bool> prepare(const std::vector<Form>& forms) {
    const auto data = context_.region(data_bytes_, data_bytes_);
    if (!data) return data.error();
    data_ = *data;
    if (const auto made = make_stream(); !made) return made;
    for (const Form& form : forms) {
      auto held = runtime_.hold(&context_);
      if (!held) return held.error();
      ByKernel one = collective_;
      if (one.call.in) one.call.in = reinterpret_cast<const void*>(data_);
      one.call.out = reinterpret_cast<void*>(data_);
      one.form = form;
      operations_.push_back(runtime_.add(&context_, std::move(one), std::move(*held)));
    }
    return true;
  }

  // Makes a stream of the measurement's own. In a common one, two threads that measure on two
  // communicators could wait for kernels in different orders on different ranks.
  Result<bool> make_stream() {
    const OutsideCapture now(context_.driver());
    const int code = context_.driver().create_stream(&stream_, kStreamNonBlocking);
    if (code == kSuccess) return true;
    stream_ = nullptr;
    return context_.driver().error("cuStreamCreate", code);
  }

  // Stores the time of each run on this rank. The stream is waited for after a failure, too:
  // kernels end when another rank has failed.
  Result<bool> measure(const Trials::Trial& trial, std::int64_t* each_ns) {
    Operation& operation = *operations_[trial.candidate];
    Result<bool> good = run(operation, trial.warm_ups);
    const std::int64_t began_ns = now_ns();
    if (good) good = run(operation, trial.repetitions);
    *each_ns = (now_ns() - began_ns) / trial.repetitions;
    return good ? operation.status() : good;
  }

  Result<bool> run(Operation& operation, int times) {
    Result<bool> good = true;
    for (int i = 0; i < times && good; ++i) good = operation.run(stream_);
    const int code = context_.driver().synchronise(stream_);
    if (code != kSuccess) operation.abandon();  // so that other ranks' kernels end
    if (good && code != kSuccess) return context_.driver().error("cuStreamSynchronize", code);
    return good;
  }

  Result<Times> greatest(const Times& mine) {
    Times all{};
    const int code = MPI_Allreduce(mine.data(), all.data(), 2, MPI_INT64_T, MPI_MAX, comm_);
    if (code == MPI_SUCCESS) return all;
    return Error{"the ranks could not agree on the form of a collective", code};
  }

  Runtime& runtime_;
  Context& context_;
  const ByKernel& collective_;
  MPI_Comm const comm_;
  const std::size_t data_bytes_;
  Address data_ = 0;                    // data that the trials send, and replace by their results
  Stream stream_ = nullptr;             // nullptr until it is made
  std::vector<Operation*> operations_;  // by form
};

}  // namespace

Result<Form> fastest_form(Runtime* runtime, Context* context, const ByKernel& collective,
                          const std::vector<Form>& forms, std::int64_t budget_us, MPI_Comm comm) {
  return FormTrials(runtime, context, collective, comm).fastest(forms, budget_us);
}

}  // namespace weft::gpu
