// StagedTransport: carries out an operation on copies of buffers that the processor cannot access,
// such as those in GPU memory. A copy moves in pieces. A step starts once the pieces that it uses
// have arrived, and a piece leaves when the last step that writes it is over. Copies, messages and
// reductions thus overlap, as far as the schedule uses the data one part after the other. Other
// ranks are not affected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/operands.h"
#include "transport/transport.h"

namespace weft {

// PieceMover: copies pieces between a buffer and its copy. In each direction they arrive in the
// order in which they were sent off. After a failure all pieces count as arrived, so that the
// operation continues for the sake of the other ranks.
class PieceMover {
 public:
  virtual ~PieceMover() = default;
  // Starts to copy a piece from the buffer, or to the buffer.
  virtual void bring_in(int piece) = 0;
  virtual void take_out(int piece) = 0;
  // Returns how many pieces have arrived since the operation began.
  virtual int brought_in() = 0;
  virtual int taken_out() = 0;
  // Waits until all pieces have arrived.
  virtual void wait() = 0;
};

// StagedBuffer: describes a buffer of an operation that is replaced by a copy.
struct StagedBuffer {
  Buffer buffer;
  PieceMover* mover;
  Range bytes;               // what the copy holds, in bytes from the beginning of the buffer
  std::int64_t piece_bytes;  // size of all pieces but the last
  bool is_read;              // whether the copy needs the buffer's contents
  bool is_written;           // whether the buffer needs the copy's contents afterwards

  int pieces() const {
    return static_cast<int>((bytes.end - bytes.begin + piece_bytes - 1) / piece_bytes);
  }
};

class StagedTransport final : public Transport {
 public:
  // others: carries out the steps on the copies. operands: if given, copies and reductions of
  // contiguous data do not need `others`. schedule: must use only this rank's buffers, and must not
  // consist of a collective of the MPI library. All arguments must outlive the object.
  StagedTransport(Transport& others, const Operands* operands, const Schedule& schedule,
                  const std::vector<StagedBuffer>& staged);

  // Sends off the input in the order in which the steps use it. Must precede the first step of each
  // run of the schedule.
  void begin();
  void wait_for_input();
  // Copies what has not left yet if the operation has succeeded, and waits for all copies. Must
  // follow the last step of each run.
  void end(bool has_succeeded);

  // The transport is asked for all steps, also for copies and reductions in memory.
  Result<bool> start(const Step& step) override;
  // Returns true in the last round only when the output has arrived.
  Result<bool> test() override;

 private:
  static constexpr int kNever = -1;

  struct Leaving {
    int piece, after;  // `after` is the index of the last step that writes the piece
  };
  struct Staged : StagedBuffer {
    explicit Staged(const StagedBuffer& described) : StagedBuffer(described) {}

    std::vector<int> place;        // by piece: its place in the order of arrival, or kNever
    std::vector<Leaving> leaving;  // the pieces that leave, in order
    std::size_t left = 0;          // how many of these have been sent off
    int arrived = 0;               // how many pieces have arrived, when last asked
  };
  struct Pieces {
    int first, end;
  };
  struct Arriving {
    std::size_t buffer;
    int piece, before;  // `before` is the index of the first step that uses the piece
  };

  static Pieces pieces_of(const StagedBuffer& staged, const Range& bytes);
  void plan(std::size_t number);
  bool has_arrived(const Operand& operand);
  bool may_start(const Step& step);
  void send_off_output();
  bool has_output_arrived();

  Transport& others_;
  const Operands* const operands_;
  const Schedule& schedule_;
  std::vector<Staged> staged_;
  std::vector<Arriving> arriving_;  // the input in the order in which it is sent off
  int last_step_ = kNever;  // index of the last step of which the transport is told; kNever if the
                            // schedule continues in another batch
  int started_ = kNever;    // index of the last step that was started
};

}  // namespace weft
