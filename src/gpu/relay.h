// Relay: a collective with many chunks that use a few pinned buffers one after the other. A stream
// could not free a buffer for a later chunk: work behind the start would wait for the other ranks.
// So the agent makes the copies in Weft's own streams: chunk k + 1 is copied in while chunk k is
// transferred and chunk k - 1 is copied out.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "gpu/agent.h"
#include "gpu/context.h"
#include "gpu/operation.h"

namespace weft::gpu {

// Relay: for the agent, it looks like a collective with a single chunk.
class Relay : public Collective {
 public:
  // Creates a relay for these chunks. Chunks n and n + `buffers` use the same pinned memory.
  static Result<std::unique_ptr<Relay>> create(Context* context, Agent* agent,
                                               std::vector<Chunk> chunks,
                                               std::unique_ptr<Collective> collective,
                                               std::size_t buffers);
  ~Relay() override;

  Result<bool> start(std::size_t chunk) override;
  Result<bool> test(std::size_t chunk) override;
  bool lets_next_start() const override { return begun_ == chunks_.size(); }
  bool is_quiet() override;
  bool has_released_buffers() override;

 private:
  enum class Stage { free, coming, here, travelling, leaving };
  struct StagingBuffer {
    Event event = nullptr;  // event behind the last copies of this buffer
    Stage stage = Stage::free;
    std::size_t chunk = 0;
  };

  Relay(Context* context, Agent* agent, std::vector<Chunk> chunks,
        std::unique_ptr<Collective> collective, CopyStreams streams)
      : context_(context),
        agent_(agent),
        chunks_(std::move(chunks)),
        collective_(std::move(collective)),
        streams_(streams) {}
  Result<bool> progress();
  Result<bool> advance(StagingBuffer* buffer);
  Result<bool> come(StagingBuffer* buffer);
  Result<bool> leave(StagingBuffer* buffer);
  using CopyOne = Result<bool> (Context::*)(const Copy& one, Stream stream) const;
  Result<bool> copy(const StagingBuffer& buffer, const std::vector<Copy>& copies, CopyOne one,
                    Stream stream) const;
  Result<bool> record(const StagingBuffer& buffer, Stream stream) const;
  Result<bool> have_passed(const StagingBuffer& buffer) const;

  Context* const context_;
  Agent* const agent_;
  const std::vector<Chunk> chunks_;
  const std::unique_ptr<Collective> collective_;
  const CopyStreams streams_;
  std::vector<StagingBuffer> buffers_;
  // Numbers of chunks: whose copies in have begun, which have started, and which have ended.
  std::size_t next_ = 0, begun_ = 0, ended_ = 0;
  bool has_failed_ = false;  // whether something has failed, so that nothing more may start
};

}  // namespace weft::gpu
