// A collective of many parts that take turns on a few places of pinned memory. A stream could not
// free a place for a later part: work behind the start would wait for the other ranks. So the agent
// copies, on streams of Weft's own: part k + 1 is copied in while part k travels and part k - 1 is
// copied out.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "gpu/agent.h"
#include "gpu/context.h"
#include "gpu/operation.h"

namespace weft::gpu {

// The agent sees a collective with one part.
class Relay : public Collective {
 public:
  // Part n uses the memory of part n + places.
  static Result<std::unique_ptr<Relay>> create(Context* context, Agent* agent,
                                               std::vector<Part> parts,
                                               std::unique_ptr<Collective> collective,
                                               std::size_t places);
  ~Relay() override;

  Result<bool> start(std::size_t part) override;
  Result<bool> test(std::size_t part) override;
  bool lets_next_start() const override { return begun_ == parts_.size(); }
  bool is_quiet() override;
  bool has_released_buffers() override;

 private:
  enum class Stage { free, coming, here, travelling, leaving };
  struct Place {
    Event event = nullptr;  // behind the last copies
    Stage stage = Stage::free;
    std::size_t part = 0;
  };

  Relay(Context* context, Agent* agent, std::vector<Part> parts,
        std::unique_ptr<Collective> collective, CopyStreams streams)
      : context_(context),
        agent_(agent),
        parts_(std::move(parts)),
        collective_(std::move(collective)),
        streams_(streams) {}
  Result<bool> progress();
  Result<bool> advance(Place* place);
  Result<bool> come(Place* place);
  Result<bool> leave(Place* place);
  using CopyOne = Result<bool> (Context::*)(const Copy& one, Stream stream) const;
  Result<bool> copy(const Place& place, const std::vector<Copy>& copies, CopyOne one,
                    Stream stream) const;
  Result<bool> record(const Place& place, Stream stream) const;
  Result<bool> have_passed(const Place& place) const;

  Context* const context_;
  Agent* const agent_;
  const std::vector<Part> parts_;
  const std::unique_ptr<Collective> collective_;
  const CopyStreams streams_;
  std::vector<Place> places_;
  std::size_t next_ = 0, begun_ = 0, ended_ = 0;  // parts of this round
  bool has_failed_ = false;                       // nothing more begins
};

}  // namespace weft::gpu
