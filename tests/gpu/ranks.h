// Several ranks within one process. Each has a runtime of its own. All share one stand-in for an
// MPI library, which checks that the ranks' collectives match.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "driver_calls.h"
#include "elements.h"
#include "gpu/runtime.h"

namespace weft::gpu {

enum class What { sum, broadcast, rotate };  // rotate: each rank gets the next rank's contribution

// Returns what one rank must get, given all ranks' contributions.
Bytes outcome(weft_gpu_type type, What what, int root, int rank, const std::vector<Bytes>& given);

class Library {
 public:
  explicit Library(int ranks) : ranks_(ranks), ordered_(static_cast<std::size_t>(ranks)) {}

  int ranks() const { return ranks_; }
  // Identifies a collective by its number, chunk and round. Ordered collectives are numbered as
  // they start.
  using Key = std::tuple<int, std::size_t, int>;
  Key next_ordered(int rank);
  void contribute(const Key& key, int rank, const std::string& description, Bytes given);
  // Returns all ranks' contributions; empty if some are missing.
  std::vector<Bytes> all_of(const Key& key);
  std::string problem();

 private:
  struct InternalCollective {
    std::string description;
    std::map<int, Bytes> given;
    int asked = 0;
  };
  const int ranks_;
  std::mutex mutex_;
  std::vector<int> ordered_;
  std::map<Key, InternalCollective> internal_collectives_;
  std::string problem_;
};

// A range of the buffers of a collective, in host memory.
struct Range {
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};

class Planned : public Collective {
 public:
  // number: -1 for an ordered collective.
  Planned(Library* library, int rank, int number, What what, int root, std::vector<Range> chunks,
          unsigned seed, weft_gpu_type type = WEFT_GPU_INT64)
      : library_(*library),
        rank_(rank),
        number_(number),
        type_(type),
        what_(what),
        root_(root),
        chunks_(std::move(chunks)),
        keys_(chunks_.size()),
        rounds_(chunks_.size()),
        random_(seed) {}

  Result<bool> start(std::size_t chunk) override;
  Result<bool> test(std::size_t chunk) override;
  // Makes the collective fail with this error when it starts, or later. Must be called before the
  // start. struck: set to true when the collective fails.
  void plant(const std::string& error, bool at_start, std::atomic<bool>* struck = nullptr) {
    planted_ = error, fails_at_start_ = at_start, struck_ = struck;
  }

 private:
  Error failure() const {
    if (struck_) struck_->store(true);
    return {planted_};
  }

  Library& library_;
  const int rank_, number_;
  const weft_gpu_type type_;
  const What what_;
  const int root_;
  const std::vector<Range> chunks_;
  std::vector<Library::Key> keys_;
  std::vector<int> rounds_;
  std::minstd_rand random_;
  std::string planted_;
  bool fails_at_start_ = false;
  std::atomic<bool>* struck_ = nullptr;
};

// Device or pinned memory with elements of one type, by default of type Number.
class Buffer {
 public:
  Buffer(const Numbers& content, bool on_device)
      : Buffer(WEFT_GPU_INT64, elements_of(WEFT_GPU_INT64, content), on_device) {}
  Buffer(weft_gpu_type type, const Bytes& content, bool on_device);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Address address() const { return address_; }
  bool on_device() const { return on_device_; }
  weft_gpu_type type() const { return type_; }
  std::size_t count() const { return bytes_ / element_bytes(type_); }
  Bytes bytes() const;
  Numbers content() const;

 private:
  const weft_gpu_type type_;
  const std::size_t bytes_;
  const bool on_device_;
  Address address_ = 0;
};

void use_device();  // makes the device current on the calling thread

// A collective from `from` to `to` in `chunks` chunks, as Weft's MPI part prepares it. buffers:
// number of pinned buffers that the chunks use in turn; 0: each chunk has pinned memory of its own.
struct Made {
  Operation* operation;
  Planned* collective;
};
Made make_collective(Runtime* runtime, Library* library, int rank, int number, What what, int root,
                     const Buffer& from, const Buffer& to, std::size_t chunks, unsigned seed,
                     std::shared_ptr<Order> order, std::size_t buffers = 0);
// Like make_collective(), but returns an error if it fails.
Result<Made> try_collective(Runtime* runtime, Library* library, int rank, int number, What what,
                            int root, const Buffer& from, const Buffer& to, std::size_t chunks,
                            unsigned seed, std::shared_ptr<Order> order, std::size_t buffers = 0);

// Computes to = to * factor + addend for all elements. Returns the driver's code.
int launch_affine(const Buffer& buffer, Number factor, Number addend, Stream stream);
void enqueue_affine(const Buffer& buffer, Number factor, Number addend, Stream stream);

}  // namespace weft::gpu
