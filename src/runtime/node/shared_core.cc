// Creates shared memory on each node with a mailbox for each of its ranks.
#include "runtime/node/shared_core.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/node/node_segment.h"
#include "shm/other_process.h"
#include "shm/segment_allocator.h"

namespace weft {
namespace {

// Creates memory that the node's ranks share; collective over `node`. Returns nullptr on all ranks
// if that fails.
std::shared_ptr<std::byte> memory_of_node(MPI_Comm node, int local_rank, std::int64_t bytes) {
  LibraryExchange talk(node);
  auto segment = agree_on_segment(talk, local_rank, bytes, 0);
  return segment ? SegmentAllocator(std::move(*segment)).take(bytes) : nullptr;
}

constexpr std::uint64_t kTrial = 0x7765'6674'6465'736b;
// The core agent reads this variable, to find out whether it can access this process.
const std::uint64_t trial = kTrial;

void fill(MailboxMemory& mailbox) {
  mailbox.process = getpid();
  library_calls.Comm_rank(handles.comm_world, &mailbox.rank);
  mailbox.trial = reinterpret_cast<std::uintptr_t>(&trial);
}

bool can_reach(const MailboxMemory& mailbox) {
  std::uint64_t read = 0;
  const auto moved = OtherProcess(mailbox.process)
                         .read(reinterpret_cast<std::byte*>(&read), mailbox.trial, sizeof read);
  return moved == OtherProcess::Moved::all && read == kTrial;
}

// Makes the progress thread of this process the agent of its core; it serves before this returns.
// Without a thread the agent never serves.
std::unique_ptr<CoreAgent> start_agent(const std::shared_ptr<void>& memory, MailboxMemory* own,
                                       const std::vector<MailboxMemory*>& mailboxes,
                                       Progress& progress, int ranks_of_node,
                                       bool leaves_commands) {
  for (MailboxMemory* mailbox : mailboxes) mailbox->is_reachable.store(can_reach(*mailbox) ? 1 : 0);
  auto agent = std::make_unique<CoreAgent>(memory, own, mailboxes, ranks_of_node);
  progress.serve(*agent);
  if (leaves_commands) progress.use(Mailbox(memory, own, own));
  if (progress.start()) agent->wait_until_it_serves();
  return agent;
}

// Returns why a rank leaves nothing to an agent; "" if it does. mailboxes: those of its core, of
// which the first has the agent.
std::string why_none(const MailboxMemory* own, const std::vector<MailboxMemory*>& mailboxes,
                     bool sees_completions) {
  if (mailboxes.size() < 2) return AgentOfCore::kNoCoreIsShared;
  if (own->is_reachable.load() == 0)
    return "processes of this node may not reach each other's memory (process_vm_readv)";
  if (mailboxes.front()->serves.load() != MailboxMemory::Serves::yes)
    return "the system has no thread for an agent of its core (ulimit -u)";
  return sees_completions ? "" : "another tool is before Weft";
}

}  // namespace

AgentOfCore agent_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread,
                      Progress& progress, bool sees_completions) {
  const auto ranks = static_cast<std::int64_t>(core_of_thread.size());
  const auto memory =
      memory_of_node(node, local_rank, ranks * static_cast<std::int64_t>(sizeof(MailboxMemory)));
  auto* const all = reinterpret_cast<MailboxMemory*>(memory.get());
  std::vector<MailboxMemory*> mailboxes;
  const int core = core_of_thread[static_cast<std::size_t>(local_rank)];
  for (std::size_t other = 0; all && core >= 0 && other < core_of_thread.size(); ++other)
    if (core_of_thread[other] == core) mailboxes.push_back(&all[other]);
  MailboxMemory* const own = all ? &all[local_rank] : nullptr;
  if (own) fill(*own);
  library_calls.Barrier(node);
  AgentOfCore found;
  const bool serves = mailboxes.size() > 1 && mailboxes.front() == own;
  if (serves)
    found.agent =
        start_agent(memory, own, mailboxes, progress, static_cast<int>(ranks), sees_completions);
  library_calls.Barrier(node);
  found.why_none = why_none(own, mailboxes, sees_completions);
  if (!serves && found.why_none.empty()) progress.use(Mailbox(memory, own, mailboxes.front()));
  return found;
}

}  // namespace weft
