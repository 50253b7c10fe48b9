// Sends the ranks' records to rank 0 on a communicator of the advisor's own. The ranks communicate
// only inside MPI_Init and MPI_Finalize, which are collective anyway. No shared file system is
// needed.
#include "advise/job.h"

#include <dlfcn.h>
#include <mpi.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "advise/call_times.h"
#include "advise/check.h"
#include "advise/guard.h"
#include "advise/recorder.h"
#include "advise/requests.h"
#include "advise/touches.h"
#include "advise/variables.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/started.h"
#include "library/end_together.h"
#include "library/failures.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "library/in_finalize.h"
#include "library/search.h"
#include "library/session_communicators.h"

namespace weft::advise {
namespace {

std::atomic<bool> running{false};
MPI_Comm own{};
bool continues = false;  // whether MPI errors are returned and the job may outlive a rank (ULFM)
bool some_are_lost = false;  // whether ranks have failed, so that each record stays on its node
int rank = 0, ranks = 1;
enum Part : std::uint64_t { kCannotRecord, kRecords, kRefused };
// Describes a rank: its host, the clock of that host, and whether the advisor can record the rank.
struct Node {
  std::uint64_t host, clock;
  Part part;
};
std::vector<Node> nodes;

std::uint64_t hash(const char* text) {
  std::uint64_t value = 1469598103934665603u;
  for (; *text; ++text) value = (value ^ static_cast<unsigned char>(*text)) * 1099511628211u;
  return value;
}

// Returns a hash of the kernel's boot ID. Processes with equal values have the same clock.
std::uint64_t boot() {
  char text[64] = "";
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (!std::fgets(text, sizeof text, file)) text[0] = '\0';
    std::fclose(file);
  }
  return hash(text);
}

bool bind_all() {
  std::vector<const char*> missing;
  if (const auto family = check_family(); !family) {
    say("advise records nothing: " + family.error().message);
    return false;
  }
  if (!bind_library_calls(find_behind_weft, missing) || !bind_handles(find_variable)) {
    say("advise records nothing: the MPI library lacks calls that it needs");
    return false;
  }
  note_library();
  return true;
}

std::string host_name() {
  utsname names{};
  uname(&names);
  return names.nodename;
}

void describe_this_rank(Header& header) {
  std::copy_n(kMagic, sizeof kMagic, header.magic);
  header.layout = kLayout;
  header.calls = kCalls;
  for (int i = 0; i < kCalls; ++i)
    std::snprintf(header.totals[i].name, sizeof header.totals[i].name, "%s",
                  call_name(static_cast<CallId>(i)));
  header.rank = static_cast<std::uint32_t>(rank);
  header.ranks = static_cast<std::uint32_t>(ranks);
  header.cores = static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  std::snprintf(header.host, sizeof header.host, "%.63s", host_name().c_str());
  header.node = hash(host_name().c_str());
  const ssize_t length = readlink("/proc/self/exe", header.program, sizeof header.program - 1);
  if (length > 0) header.program[length] = '\0';
  const auto library = reinterpret_cast<std::uintptr_t>(library_calls.Comm_rank);
  std::snprintf(header.library, sizeof header.library, "%s", place_of(library).file);
  header.began_ns = header.ended_ns = now_ns();
}

bool any_has(Part part) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node& n) { return n.part == part; });
}

// Calls the MPI_Finalize that comes next after the advisor's. This is Weft's, if Weft's library is
// loaded, too.
int finalize() {
  using Finalize = int();
  for (void* const found : {dlsym(RTLD_NEXT, "MPI_Finalize"), find_behind_weft("PMPI_Finalize")})
    if (auto* const call = reinterpret_cast<Finalize*>(found)) return call();
  return MPI_SUCCESS;
}

// Lets all ranks know on which node each of them runs, and whether it can be recorded. Returns true
// if all can. Does not return if any rank's command line was refused.
bool learn_nodes(Part part) {
  const Node here{hash(host_name().c_str()), boot(), part};
  nodes.resize(static_cast<std::size_t>(ranks));
  library_calls.Allgather(&here, sizeof here, handles.byte, nodes.data(), sizeof here, handles.byte,
                          own);
  if (any_has(kRefused)) {
    recorder.give_up();
    end_together(finalize, 2);
  }
  return !any_has(kCannotRecord);
}

void count_nodes(Header& header) {
  std::vector<std::uint64_t> hosts;
  for (const Node& node : nodes) hosts.push_back(node.host);
  header.node_ranks =
      static_cast<std::uint32_t>(std::count(hosts.begin(), hosts.end(), header.node));
  std::sort(hosts.begin(), hosts.end());
  header.nodes =
      static_cast<std::uint32_t>(std::unique(hosts.begin(), hosts.end()) - hosts.begin());
}

// kQuestions: the number of times that rank 0 asks a rank for its clock. The answer with the
// shortest round trip is used, and half of that time is its error. kTag: the tag of these messages.
constexpr int kQuestions = 24, kTag = 1;
void answer_clock() {
  for (int i = 0; i < kQuestions; ++i) {
    char question;
    library_calls.Recv(&question, 1, handles.byte, 0, kTag, own, MPI_STATUS_IGNORE);
    const std::int64_t now = now_ns();
    library_calls.Send(&now, sizeof now, handles.byte, 0, kTag, own);
  }
}

struct Offset {
  std::int64_t ns, error_ns;
};
Offset ask_clock(int other) {
  Offset best{0, INT64_MAX};
  for (int i = 0; i < kQuestions; ++i) {
    const std::int64_t before = now_ns();
    std::int64_t there = 0;
    library_calls.Send("", 1, handles.byte, other, kTag, own);
    library_calls.Recv(&there, sizeof there, handles.byte, other, kTag, own, MPI_STATUS_IGNORE);
    const std::int64_t half = (now_ns() - before) / 2;
    if (half < best.error_ns) best = {before + half - there, half};
  }
  return best;
}

// Measures the difference between each rank's clock and that of rank 0. Only one rank is asked for
// each different clock; the other ranks with the same clock get the same result.
void compare_clocks(Header& header) {
  std::vector<Offset> offsets(static_cast<std::size_t>(ranks), Offset{0, 0});
  for (int i = 1; i < ranks; ++i) {
    const auto same = [&](const Node& node) {
      return node.clock == nodes[static_cast<std::size_t>(i)].clock;
    };
    const auto first =
        static_cast<int>(std::find_if(nodes.begin(), nodes.end(), same) - nodes.begin());
    const auto at = static_cast<std::size_t>(i);
    if (first < i)
      offsets[at] = offsets[static_cast<std::size_t>(first)];
    else if (rank == 0)
      offsets[at] = ask_clock(i);
    else if (rank == i)
      answer_clock();
  }
  library_calls.Bcast(offsets.data(), static_cast<int>(offsets.size() * sizeof(Offset)),
                      handles.byte, 0, own);
  header.clock_ns = offsets[static_cast<std::size_t>(rank)].ns;
  header.clock_error_ns = offsets[static_cast<std::size_t>(rank)].error_ns;
}

// Returns the CPU time of a thread in ns; 0 if it is unknown. task: the thread's ID as text.
std::int64_t processor_ns_of(const std::string& task) {
  std::ifstream in("/proc/self/task/" + task + "/schedstat");
  std::int64_t ns = 0;
  return in >> ns ? ns : 0;
}

// Returns the number of the application's threads that have used at least a tenth of a core.
// Threads that some libraries start and leave idle are thus not counted.
std::uint32_t threads_that_compute(std::int64_t elapsed_ns) {
  constexpr int kPart = 10;
  std::uint32_t found = 0;
  for (const Thread& thread : known_threads())
    found += thread.used && !thread.of_library &&
             processor_ns_of(std::to_string(thread.number)) * kPart >= elapsed_ns;
  return found;
}

std::int64_t copied_per_ms() {
  constexpr std::size_t kBytes = 4 << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t began = now_ns();
    std::memcpy(to.data(), from.data(), kBytes);
    from[0] = to[kBytes - 1];
    best = std::min(best, std::max<std::int64_t>(1, now_ns() - began));
  }
  return static_cast<std::int64_t>(kBytes) * 1'000'000 / best;
}

// Returns how many entries of a table each rank may keep: at most `most`, and fewer in large jobs,
// so that the sum over all ranks is bounded.
int of_all_ranks(int most) {
  constexpr int kLeast = 64, kAll = 1 << 20;
  return std::clamp(kAll / ranks, kLeast, most);
}

// Returns the rank's record as bytes, without the unused entries of its tables.
std::vector<char> packed(const Record& record) {
  const Header& header = record.header;
  std::vector<char> bytes;
  const auto add = [&](const void* from, std::size_t count) {
    const char* const begin = static_cast<const char*>(from);
    bytes.insert(bytes.end(), begin, begin + count);
  };
  add(&header, sizeof header);
  add(record.modules, header.modules * sizeof record.modules[0]);
  add(record.sites, header.sites * sizeof(Site));
  add(record.message_waits, header.message_waits * sizeof(MessageWait));
  add(record.arrivals, header.arrivals * sizeof(Arrival));
  add(record.events, std::min<std::uint64_t>(header.events, header.event_room) * sizeof(Event));
  return bytes;
}

// The file with the records of all ranks, which rank 0 writes. It gets its final name only when it
// is complete. The unfinished file exists from MPI_Init on, so that a program which this one spawns
// finds the name taken.
class JobFile {
 public:
  // Creates the file. Returns false if that fails, with the reason in `why`.
  bool open(std::string* why) {
    const char* const directory = std::getenv(kDirectoryVariable);
    if (!directory) return *why = "it has no directory for its record", false;
    name_ = std::string(directory) + "/job";
    file_ = std::fopen((name_ + ".part").c_str(), "wbxe");
    if (!file_) *why = errno == EEXIST ? "another job is being recorded" : std::strerror(errno);
    return file_ != nullptr;
  }
  void add(const std::vector<char>& bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) good_ = false;
  }
  // Closes the file and gives it its final name. Returns false if not all of it could be written.
  bool close() {
    const bool written = std::fclose(file_) == 0 && good_;
    if (written && std::rename((name_ + ".part").c_str(), name_.c_str()) == 0) {
      say_where();
      return true;
    }
    say("advise could not write all of " + name_ + ": is the disk full?");
    return false;
  }

 private:
  // Tells the user on which node the record is, if the `weft advise` command runs on another node.
  // In that case the file that the command creates in the directory is missing here.
  void say_where() const {
    const std::string directory = name_.substr(0, name_.rfind('/'));
    if (access((directory + "/" + kHere).c_str(), F_OK) == 0) return;
    say("advise has written its record on " + host_name() + ", where rank 0 ran: copy " +
        directory + " from there and run weft advise --from " + directory);
  }

  std::string name_;
  std::FILE* file_ = nullptr;
  bool good_ = true;
};
JobFile file;

// Receives the records of the other ranks one after the other, so that rank 0 holds only one of
// them at a time, and adds them to the file. mine: the record of rank 0.
void collect(const std::vector<char>& mine) {
  file.add(mine);
  std::vector<char> theirs;
  for (int other = 1; other < ranks; ++other) {
    std::int64_t count = 0;
    library_calls.Send(&count, sizeof count, handles.byte, other, kTag, own);
    library_calls.Recv(&count, sizeof count, handles.byte, other, kTag, own, MPI_STATUS_IGNORE);
    theirs.resize(static_cast<std::size_t>(count));
    library_calls.Recv(theirs.data(), static_cast<int>(count), handles.byte, other, kTag, own,
                       MPI_STATUS_IGNORE);
    file.add(theirs);
  }
}

void hand_over(const std::vector<char>& mine) {
  std::int64_t turn = 0;
  library_calls.Recv(&turn, sizeof turn, handles.byte, 0, kTag, own, MPI_STATUS_IGNORE);
  const auto count = static_cast<std::int64_t>(mine.size());
  library_calls.Send(&count, sizeof count, handles.byte, 0, kTag, own);
  library_calls.Send(mine.data(), static_cast<int>(count), handles.byte, 0, kTag, own);
}

// Sends the records of all ranks to rank 0, which writes the job's file. It is collective over all
// ranks.
void hand_over_records() {
  if (!recorder.recording() || own == handles.comm_null || some_are_lost) return;
  const std::vector<char> mine = packed(recorder.record());
  if (rank == 0)
    collect(mine);
  else
    hand_over(mine);
  int written = rank == 0 && file.close();
  library_calls.Bcast(&written, sizeof written, handles.byte, 0, own);
  library_calls.Comm_free(&own);
  // If the job's file could not be written, the ranks' own files are kept.
  if (written) recorder.remove_file();
}

// Ends the recording, and sends the record to rank 0. It must run in MPI_Finalize after the
// application's delete callbacks of MPI_COMM_SELF. These may complete operations, and other ranks
// may wait for them.
void end_record() {
  if (!job_running()) return;
  const bool checked = checking;
  if (checked) check_ends();
  running.store(false, std::memory_order_release);
  release_all_guards(Unknown::never_touched);
  some_are_lost = continues && !all_are_left(own);
  if (some_are_lost) return;
  Record& record = recorder.record();
  Header& header = record.header;
  for (std::uint32_t i = 0; i < header.sites; ++i) note_touches(record.sites[i]);
  for (int i = 0; i < kCalls; ++i) count_rest(header.totals[i], static_cast<CallId>(i));
  header.threads = threads_that_compute(now_ns() - header.began_ns);
  header.windows_off = static_cast<std::uint32_t>(guards_off());
  header.guarding_ns = guarding_ns();
  if (!checked) header.copy_bytes_per_ms = copied_per_ms();
  header.finalized = 1;
  recorder.keep_arrivals(of_all_ranks(kArrivals));
  hand_over_records();
}

// A delete callback of MPI_COMM_SELF that ends the recording. The MPI library calls it in
// MPI_Finalize. If a session is still open then, MPICH calls it in the last MPI_Session_finalize.
int end_within(MPI_Comm, int, void*, void*) {
  end_record();
  return MPI_SUCCESS;
}
// True if end_within() is registered, so that the MPI library will call it.
bool ends_in_callback = false;

// Returns what the advisor knows about each existing communicator, by its handle. An entry stays
// until the communicator is freed. If it were made a second time, the communicator would get
// another identity. The map is never destroyed, since it may be used while the process exits.
std::unordered_map<std::uint64_t, Communicator>& seen() {
  static auto& all = *new std::unordered_map<std::uint64_t, Communicator>;
  return all;
}

// Returns how many communicators with the same members have been made from each parent. This number
// is part of a communicator's identity: all members make the communicators in the same order, but
// may use them for the first time in different orders.
std::unordered_map<std::uint64_t, std::uint32_t>& made() {
  static auto& all = *new std::unordered_map<std::uint64_t, std::uint32_t>;
  return all;
}

std::vector<int> world_ranks(MPI_Comm comm, int size) {
  std::vector<int> here(static_cast<std::size_t>(size)), there(here.size(), -1);
  if (is_of_session(comm)) return there;
  for (std::size_t i = 0; i < here.size(); ++i) here[i] = static_cast<int>(i);
  MPI_Group group{}, world{};
  library_calls.Comm_group(comm, &group);
  library_calls.Comm_group(handles.comm_world, &world);
  library_calls.Group_translate_ranks(group, size, here.data(), world, there.data());
  library_calls.Group_free(&group);
  library_calls.Group_free(&world);
  return there;
}

// Mixes the bits of a number (the finaliser of SplitMix64; Steele, Lea, Flood, OOPSLA 2014). It
// makes the identities of communicators differ if these have different members, or were made at
// different times.
std::uint64_t mixed(std::uint64_t word) {
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  return word ^ word >> 31;
}

void identify(Communicator& facts, std::uint64_t parent) {
  const std::uint64_t key = mixed(parent) + facts.members;
  facts.identity = mixed(key + mixed(++made()[key])) & ~kWhichPlan;
}

// Returns whether a grid's border lies at this rank: then it has fewer neighbours than blocks.
bool is_at_border(MPI_Comm comm, int dimensions) {
  for (int i = 0; i < dimensions; ++i) {
    int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
    library_calls.Cart_shift(comm, i, 1, &below, &above);
    if (below == MPI_PROC_NULL || above == MPI_PROC_NULL) return true;
  }
  return false;
}

void count_neighbours(Communicator& facts, MPI_Comm comm) {
  int topology = MPI_UNDEFINED, dimensions = 0, weighted = 0;
  library_calls.Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    library_calls.Cartdim_get(comm, &dimensions);
    if (!is_at_border(comm, dimensions)) facts.sources = facts.targets = 2 * dimensions;
  } else if (topology == MPI_GRAPH) {
    library_calls.Graph_neighbors_count(comm, facts.rank, &facts.sources);
    facts.targets = facts.sources;
  } else if (topology == MPI_DIST_GRAPH) {
    library_calls.Dist_graph_neighbors_count(comm, &facts.sources, &facts.targets, &weighted);
  }
}

// Returns the facts about a communicator except its identity.
Communicator facts_of(MPI_Comm comm) {
  Communicator facts;
  int inter = 0;
  library_calls.Comm_rank(comm, &facts.rank);
  library_calls.Comm_size(comm, &facts.size);
  library_calls.Comm_test_inter(comm, &inter);
  facts.inter = inter != 0;
  if (!facts.inter) count_neighbours(facts, comm);
  facts.kind = comm == handles.comm_world ? 0 : comm == handles.comm_self ? 1 : 2;
  facts.members = 7;
  std::vector<std::uint64_t> hosts;
  for (const int member : world_ranks(comm, facts.size)) {
    facts.members = facts.members * 1000003 + static_cast<std::uint64_t>(member);
    if (member >= 0 && member < ranks)
      hosts.push_back(nodes[static_cast<std::size_t>(member)].host);
  }
  std::sort(hosts.begin(), hosts.end());
  facts.nodes = static_cast<int>(std::unique(hosts.begin(), hosts.end()) - hosts.begin());
  return facts;
}

}  // namespace

Communicator& communicator(MPI_Comm comm) {
  const auto [found, is_new] = seen().try_emplace(number_of(comm));
  if (is_new) {
    found->second = facts_of(comm);
    identify(found->second, 0);
  }
  return found->second;
}

// Records a new communicator (job.h). The two groups of an intercommunicator have different
// members, so they get different identities.
void note_communicator(MPI_Comm parent, MPI_Comm comm, bool duplicate) {
  if (comm == handles.comm_null) return;
  const Communicator above = parent == handles.comm_null ? Communicator{} : communicator(parent);
  Communicator facts = duplicate ? above : facts_of(comm);
  facts.kind = 2;
  facts.sequence = facts.plans = facts.compared = 0;
  facts.differs = false;
  identify(facts, above.inter ? 0 : above.identity);
  seen().insert_or_assign(number_of(comm), facts);
}

void forget_communicator(MPI_Comm comm) {
  seen().erase(number_of(comm));
}

bool job_running() {
  return running.load(std::memory_order_acquire);
}

// Returns whether another program has spawned this one (MPI_Comm_spawn). Only the spawning program
// is recorded.
bool is_spawned() {
  using GetParent = int(MPI_Comm*);
  auto* const get_parent = reinterpret_cast<GetParent*>(find_behind_weft("PMPI_Comm_get_parent"));
  MPI_Comm parent = handles.comm_null;
  return get_parent && get_parent(&parent) == MPI_SUCCESS && parent != handles.comm_null;
}

Part own_part() {
  if (std::getenv(kRefusedVariable)) return kRefused;
  std::string why = "there is no memory for its record";
  if (recorder.recording() && (rank > 0 || file.open(&why))) return kRecords;
  say("advise records nothing of this job: " + why);
  return kCannotRecord;
}

void job_begins() {
  restore_preload();
  if (job_running() || !bind_all() || is_spawned()) return;
  library_calls.Comm_rank(handles.comm_world, &rank);
  recorder.open();
  library_calls.Comm_size(handles.comm_world, &ranks);
  if (library_calls.Comm_split(handles.comm_world, 0, rank, &own) != MPI_SUCCESS ||
      !learn_nodes(own_part()))
    return recorder.give_up();
  continues = continues_after_failures();
  if (continues) library_calls.Comm_set_errhandler(own, handles.errors_return);
  Header& header = recorder.record().header;
  describe_this_rank(header);
  header.event_room = static_cast<std::uint32_t>(of_all_ranks(kEvents)) & ~1U;
  count_nodes(header);
  compare_clocks(header);
  const char* const overhead = std::getenv(kOverheadVariable);
  check_begins(std::getenv(kDirectoryVariable), rank, ranks);
  guards_begin((overhead ? std::atof(overhead) : 5) / 100, !checking);
  for (const MPI_Comm comm : {handles.comm_world, handles.comm_self}) communicator(comm);
  header.began_ns = header.ended_ns = now_ns();
  ends_in_callback = call_in_finalize(end_within);
  running.store(true, std::memory_order_release);
}

void job_ends() {
  release_all_guards(Unknown::never_touched);
  if (!ends_in_callback) end_record();
}

}  // namespace weft::advise
