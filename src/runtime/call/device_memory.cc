// Finds out which of a call's buffers lie in GPU memory, and which parts of them the collective
// reads and writes.
#include "runtime/call/device_memory.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/call/shape.h"

namespace weft {
namespace {

// The size of a piece: long enough that its copy takes longer than starting it, and at most
// kMostPieces of them in a buffer.
constexpr std::int64_t kLeastPiece_bytes = 512 * 1024;
constexpr std::int64_t kMostPieces = 64;

std::int64_t piece_of(std::int64_t bytes) {
  const std::int64_t least = (bytes + kMostPieces - 1) / kMostPieces;
  return std::max(kLeastPiece_bytes, (least + kPageBytes - 1) / kPageBytes * kPageBytes);
}

// Returns whether the output's datatypes may have gaps between elements. The contents of gaps must
// not change.
bool has_holes(const Shape& shape) {
  return !shape.recv.plain || !std::all_of(shape.types.begin(), shape.types.end(),
                                           [](const Layout& one) { return one.plain; });
}

// A buffer of a call in GPU memory; driver is nullptr if the CPU can access the buffer, or if the
// call does not use it.
struct DeviceBuffer {
  const DeviceDriver* driver = nullptr;
  std::byte* device = nullptr;
  std::vector<Operand> runs{};  // what the collective uses
};

DeviceBuffer found_in(const Call& call, const Shape& shape, Buffer buffer) {
  const void* const given = buffer == Buffer::send ? call.sendbuf : call.recvbuf;
  if (given == MPI_IN_PLACE) return {};
  DeviceBuffer found;
  found.device = static_cast<std::byte*>(const_cast<void*>(given));
  for (const Operand& run : buffer_runs(shape, buffer)) {
    const Range touched = touched_bytes(shape, run);
    if (run.at.buffer == buffer && touched.end > touched.begin) found.runs.push_back(run);
  }
  if (!found.runs.empty())
    found.driver = driver_of(found.device + touched_bytes(shape, found.runs[0]).begin);
  return found;
}

}  // namespace

std::unique_ptr<DeviceCopy> DeviceCopy::of(const Call& call, const Shape& shape, Buffer buffer) {
  const DeviceBuffer found = found_in(call, shape, buffer);
  if (!found.driver) return nullptr;
  return std::unique_ptr<DeviceCopy>(
      new DeviceCopy(*found.driver, found.device, shape, buffer, found.runs));
}

DeviceCopy::DeviceCopy(const DeviceDriver& driver, std::byte* device, const Shape& shape,
                       Buffer buffer, const std::vector<Operand>& runs)
    : device_(device),
      buffer_(buffer),
      is_read_(is_input(shape, buffer) || has_holes(shape)),
      is_written_(is_output(shape, buffer)),
      bytes_{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()} {
  std::vector<Part> used;
  for (const Operand& run : runs) {
    const Range touched = touched_bytes(shape, run);
    used.push_back({touched.begin, touched.end - touched.begin});
    bytes_.begin = std::min(bytes_.begin, touched.begin);
    bytes_.end = std::max(bytes_.end, touched.end);
  }
  piece_bytes_ = piece_of(bytes_.end - bytes_.begin);
  divide(std::move(used));
  std::byte* const first = device_ + bytes_.begin;
  block_ = PinnedPool::own().take(driver, first, bytes_.end - bytes_.begin);
  copies_ = driver.copies(first);
  has_failed_ = !copies_;
}

DeviceCopy::~DeviceCopy() {
  copies_.reset();  // waits for copies that have not ended, and use the memory
  PinnedPool::own().give_back(block_);
}

// Cuts what the collective uses where pieces end, and sorts it by pieces.
void DeviceCopy::divide(std::vector<Part> runs) {
  const auto piece_at = [&](std::int64_t offset) { return (offset - bytes_.begin) / piece_bytes_; };
  for (Part run : runs) {
    while (run.bytes > 0) {
      const std::int64_t end = bytes_.begin + (piece_at(run.begin) + 1) * piece_bytes_;
      const Part part{run.begin, std::min(run.bytes, end - run.begin)};
      parts_.push_back(part);
      run = {part.begin + part.bytes, run.bytes - part.bytes};
    }
  }
  std::sort(parts_.begin(), parts_.end(),
            [](const Part& one, const Part& other) { return one.begin < other.begin; });
  const int pieces = described().pieces();
  std::size_t next = 0;
  for (int piece = 0; piece <= pieces; ++piece) {
    while (next < parts_.size() && piece_at(parts_[next].begin) < piece) ++next;
    parts_of_.push_back(next);
  }
}

std::byte* DeviceCopy::origin() const {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(block_.memory) -
                                      bytes_.begin);
}

StagedBuffer DeviceCopy::described() {
  return {buffer_, this, bytes_, piece_bytes_, is_read_, is_written_};
}

void DeviceCopy::begin() {
  sent_off_ = {};
  has_failed_ = !copies_ || !copies_->begin();
}

void DeviceCopy::move(Way way, int piece) {
  ++sent_off_[static_cast<std::size_t>(way)];
  if (has_failed_) return;
  const auto at = static_cast<std::size_t>(piece);
  std::vector<DevicePart> moved;
  for (std::size_t i = parts_of_[at]; i < parts_of_[at + 1]; ++i)
    moved.push_back({device_ + parts_[i].begin, origin() + parts_[i].begin, parts_[i].bytes});
  has_failed_ = !copies_->start(way, moved);
}

int DeviceCopy::ended(Way way) {
  const auto ended = has_failed_ ? std::nullopt : copies_->ended(way);
  has_failed_ = !ended;
  return ended.value_or(sent_off_[static_cast<std::size_t>(way)]);
}

void DeviceCopy::wait() {
  if (copies_ && !copies_->wait()) has_failed_ = true;
}

void DeviceCopy::move_all(Way way) {
  for (int piece = 0; piece < described().pieces(); ++piece) move(way, piece);
  wait();
}

void DeviceCopy::bring_all_in() {
  begin();
  if (is_read_) move_all(Way::in);
}

void DeviceCopy::take_all_out() {
  if (is_written_) move_all(Way::out);
}

std::unique_ptr<StagedBuffers> StagedBuffers::of(const Call& call, const Shape& shape) {
  StagedBuffers made;
  made.send_ = DeviceCopy::of(call, shape, Buffer::send);
  made.recv_ = DeviceCopy::of(call, shape, Buffer::recv);
  if (!made.recv_ && !made.send_) return nullptr;
  return std::make_unique<StagedBuffers>(std::move(made));
}

bool StagedBuffers::are_needed(const Call& call, const Shape& shape) {
  return found_in(call, shape, Buffer::send).driver || found_in(call, shape, Buffer::recv).driver;
}

bool StagedBuffers::are_long(const Shape& shape) {
  constexpr std::int64_t kShort_bytes = 64 * 1024;
  return local_bytes(shape) > kShort_bytes;
}

bool StagedBuffers::there() const {
  return (!send_ || send_->there()) && (!recv_ || recv_->there());
}

Call StagedBuffers::staged(Call call) const {
  if (send_) call.sendbuf = send_->origin();
  if (recv_) call.recvbuf = recv_->origin();
  if (call.kind == Kind::bcast) call.sendbuf = call.recvbuf;  // MPI_Bcast has a single buffer
  return call;
}

std::vector<StagedBuffer> StagedBuffers::described() const {
  std::vector<StagedBuffer> all;
  for (const auto* one : {&send_, &recv_})
    if (*one) all.push_back((*one)->described());
  return all;
}

void StagedBuffers::begin() const {
  for (const auto* one : {&send_, &recv_})
    if (*one) (*one)->begin();
}

bool StagedBuffers::bring_in() const {
  for (const auto* one : {&send_, &recv_})
    if (*one) (*one)->bring_all_in();
  return !have_failed();
}

bool StagedBuffers::take_out() const {
  for (const auto* one : {&send_, &recv_})
    if (*one) (*one)->take_all_out();
  return !have_failed();
}

bool StagedBuffers::have_failed() const {
  return (send_ && send_->has_failed()) || (recv_ && recv_->has_failed());
}

}  // namespace weft
