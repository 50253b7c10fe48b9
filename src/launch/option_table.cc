// The table. Its choices are the library's own (base/config.h), so that help and refusals agree.
#include "launch/option_table.h"

#include "base/config.h"
#include "launch/options.h"

namespace weft::launch {
namespace {

constexpr const char* kSharedHeapBytes = "65536";

constexpr Option kOptions[] = {
    {Group::engine, "--engine", "E", kEngineChoices, "auto", "WEFT_ENGINE", nullptr,
     "Says who carries out the collectives, and when: nobody but the MPI library (native), a "
     "thread "
     "that drives the MPI library (assist), Weft when the program enters MPI (function), a thread "
     "of Weft's (thread), a thread that makes whole blocking calls (tcc), one thread for all ranks "
     "whose threads share a core, where the node's memory serves them (agent), or what suits each "
     "call (auto)."},
    {Group::engine, "--placement", "P", kPlacementChoices, "bind", "WEFT_PLACEMENT", nullptr,
     "Says on which core the thread of each rank runs: on the rank's own core (bind), on a free "
     "core of the rank's NUMA node (numa), with those of neighbouring ranks on different free "
     "cores "
     "(odd-even), with K threads on each core that is set aside (pack:K), or on the named core "
     "(list, one entry for each rank of a node)."},
    {Group::engine, "--backoff", "B", kBackoffChoices, "quiet", "WEFT_BACKOFF", nullptr,
     "Says what the thread does after a poll that found nothing: it lets others have the core "
     "(yield), polls again (spin), sleeps for US microseconds (sleep:US), sleeps for most of the "
     "time that rounds take and is called by the other threads on its core (baton), or sleeps "
     "for most of the time that rounds take and looks often near their end (quiet)."},
    {Group::engine, "--transfers", "SIZE", kTransfersChoices, "auto", "WEFT_TRANSFERS", nullptr,
     "Lets the thread bring forward the program's own messages, too, while the program computes: "
     "those of 128 KiB or more (auto), none (off), or those of SIZE or more."},
    {Group::engine, "--split", "S", kSplitChoices, "auto", "WEFT_SPLIT", nullptr,
     "Says how many levels of a tree of messages, those next to its leaves, run on the cores of "
     "the "
     "program, in the call that starts the collective or waits for it, while the threads carry out "
     "the others on theirs: as many as the model says (auto), or S, which may be more than 3."},
    {Group::engine, "--blocking", "0", "",
     "engine auto takes those that shared memory serves, and learns about the others over several "
     "nodes",
     "WEFT_BLOCKING", "1",
     "Carries out all blocking collectives by Weft's schedules; with --blocking=0, none of them."},
    {Group::engine, "--reproducible", "0", "", "off", "WEFT_REPRODUCIBLE", "1",
     "Makes reductions come out the same to the last bit, however the ranks are spread over nodes. "
     "It implies --blocking."},

    {Group::reports, "--summary", "json:FILE", "", "off", "WEFT_SUMMARY", "1",
     "Prints at the end what Weft handled and how much of it was hidden; with =json:FILE, writes "
     "that to a file."},
    {Group::reports, "--trace", "FILE", "", "off", "WEFT_TRACE", nullptr,
     "Writes a timeline to FILE, which trace viewers for Chrome's format show."},
    {Group::reports, "--watchdog", "SECONDS", "", "off", "WEFT_WATCHDOG", nullptr,
     "Says, on each rank that has waited in one MPI call for so many seconds, which call that is "
     "and for whom it waits."},
    {Group::reports, kVerboseOption, "", "", "off", "", nullptr,
     "Says which of Weft's libraries is loaded, and why."},

    {Group::memory, "--transport", "T", kTransportChoices, "auto", "WEFT_TRANSPORT", nullptr,
     "Lets ranks of one node meet in memory that they share (auto), or makes them send messages "
     "there too (mpi); under auto a job inside one node is then left to the MPI library."},
    {Group::memory, "--shared-heap", "BYTES", "", "off", "WEFT_SHARED_HEAP", kSharedHeapBytes,
     "Takes large allocations of the program (64 KiB or more, or BYTES or more, a plain number "
     "from 4096 on) from memory that "
     "the ranks of a node share, so that collectives on them need no copy."},
    {Group::memory, "--xpmem", "X", kXpmemChoices, "auto", "WEFT_XPMEM", nullptr,
     "Says whether other large buffers need no copy either: where the system has XPMEM (auto), "
     "never (off), or by the XPMEM library at /PATH."},
    {Group::memory, "--one-copy", "C", kOneCopyChoices, "auto", "WEFT_ONE_COPY", nullptr,
     "Says whether the system copies between ranks of a node, once, what Weft copies twice by way "
     "of memory that they share: where that was measured to be faster on this machine (auto), "
     "wherever the system lets it (on), or never (off)."},

    {Group::tuning, kAlgorithmOption, "KIND=NAME", "", "Weft chooses for each call",
     "WEFT_ALGORITHM_KIND", nullptr,
     "Names the algorithm of one kind of collective, such as allreduce=ring; `weft schedule "
     "--list` shows them. The option may be given several times. Its variable has the kind in "
     "capitals: WEFT_ALGORITHM_ALLREDUCE=ring."},
    {Group::tuning, "--learn", "L", kLearnChoices, "on", "WEFT_LEARN", nullptr,
     "Lets engine auto try out, while the program runs, what makes the program fastest, call by "
     "call, and keep it for later runs (on); take what earlier runs have found and try nothing "
     "(use); or go by its rule (off)."},
    {Group::tuning, "--learning-budget", "PERCENT", "", "1", "WEFT_LEARNING_BUDGET", nullptr,
     "Says how much of the time what engine auto tries may cost, against the way in use, beyond "
     "the first 20 to 30 trials of a kind of call; 0: it tries nothing, and takes what is known."},
    {Group::tuning, "--init-budget", "TIME", "", "10ms", "WEFT_INIT_BUDGET", nullptr,
     "Says how long the initialisation of a persistent collective, or the first blocking call of "
     "its kind in a node, may measure, such as 500us, 10ms or 1s; 0: nothing is measured, nor "
     "whether one copy is faster."},
    {Group::tuning, "--plan-cache", "FILE", "", "~/.cache/weft/plans", "WEFT_PLAN_CACHE", nullptr,
     "Names the file that keeps what was measured and learnt; none: every run begins anew."},

    {Group::mpi, "--mpi", "M", kMpiChoices, "found out", "WEFT_MPI", nullptr,
     "Names the MPI library of a program that does not show which one it uses."},

    {Group::general, kHelpOption, "", "", "", "", nullptr, "Shows this help."},
};

}  // namespace

std::span<const Option> option_table() {
  return kOptions;
}

}  // namespace weft::launch
