// Endpoint: carries out one rank's steps in the simulator. It is a Transport for the same Execution
// that runs rounds over MPI. If a step takes time, it reports the work to be done.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/messages.h"
#include "sim/stages.h"
#include "transport/transport.h"

namespace weft::sim {

// Levels: lets a tree run level by level: messages of a level start only after all messages of the
// previous level were received.
class Levels {
 public:
  Levels(int ranks, Kind kind, Told& told);

  bool is_open(int level) const { return level == open_; }
  void wait(int rank) { waiting_.push_back(rank); }
  void taken_in(int level, double now_us);

 private:
  void skip_empty();

  const bool up_;
  Told& told_;
  // Number of messages that were not received yet, indexed by level.
  std::vector<std::int64_t> left_;
  int open_;
  std::vector<int> waiting_;
};

class Endpoint final : public Transport {
 public:
  // levels: nullptr if messages may start as soon as they can. All arguments must outlive this
  // object.
  Endpoint(const Machine& machine, Messages& messages, const Schedule& schedule, Levels* levels)
      : machine_(machine), messages_(messages), schedule_(schedule), levels_(levels) {}

  // Sets the virtual time at which the operation is advanced next.
  void at(double now_us) {
    now_us_ = now_us;
    look_at_us_ = kNever;
    is_at_limit_ = false;
  }
  // Makes the endpoint stop before `step`, since another thread carries out the steps from there
  // on.
  void end_stage_at(std::uint32_t step) { limit_ = step; }
  void no_more_stages() { limit_ = kNoLimit; }

  Result<bool> start(const Step& step) override;
  Result<bool> test() override;

  // job_bytes() returns how many bytes the thread must copy before the operation can be advanced
  // further; 0 if there are none. job_done() reports that they were copied.
  double job_bytes() const { return job_ == Job::none ? 0 : job_bytes_; }
  void job_done(double now_us);
  double look_at_us() const { return look_at_us_; }
  // Returns whether the endpoint has stopped before the steps of another thread, and all its
  // messages are complete.
  bool stage_is_over() const { return is_at_limit_ && posted_.empty(); }
  // take_debt_us() returns how many microseconds this rank's core must still spend on what was done
  // since at(), and resets the number.
  double take_debt_us() { return std::exchange(debt_us_, 0); }
  double debt_us() const { return debt_us_; }
  void owe(double us) { debt_us_ += us; }

 private:
  enum class Job : std::uint8_t { none, local, message };
  struct Posted {
    Messages::Id id;
    Messages::Side side;
    int level;
  };
  static constexpr std::uint32_t kNoLimit = ~0u;

  bool may_start(const Step& step);
  bool local(const Step& step);
  void post(const Step& step);

  const Machine& machine_;
  Messages& messages_;
  const Schedule& schedule_;
  Levels* const levels_;
  std::vector<Posted> posted_;
  double now_us_ = 0, debt_us_ = 0, look_at_us_ = kNever;
  std::uint32_t limit_ = kNoLimit;
  bool is_at_limit_ = false;
  Job job_ = Job::none;
  double job_bytes_ = 0;
  bool local_done_ = false;
  Posted job_of_{};
  int last_level_ = 0;
};

}  // namespace weft::sim
