// Fills the tables of the record. Calls belong to the same site if they have the same place in the
// program, MPI function, kind of communicator and size class.
#include "advise/recorder.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "advise/variables.h"

namespace weft::advise {

constinit Recorder recorder;
static_assert(kOuter == kOuters);

namespace {

// The first arrivals at collectives may fill 1/kFirst of their table.
constexpr std::uint32_t kFirst = 8;

std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccd;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53;
  return value ^ (value >> 33);
}

void* map_file(const char* path, std::size_t bytes) {
  const int file = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  // posix_fallocate() reserves the space on the disk. Without it, a store into the mapped file
  // would end the program with SIGBUS if the disk is full.
  const bool there = posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0;
  void* const memory =
      there ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  close(file);
  if (memory != MAP_FAILED) return memory;
  unlink(path);
  return nullptr;
}

std::uint64_t key_of(const Caller& caller, CallId call, const Communicator& comm,
                     std::uint32_t size_class) {
  std::uint64_t key = caller.address + mixed(caller.way);
  for (const char* at = caller.where; *at; ++at) key = key * 131 + static_cast<unsigned char>(*at);
  key = mixed(key + (static_cast<std::uint64_t>(call) << 48));
  return mixed(key ^ (static_cast<std::uint64_t>(comm.size) << 32) ^
               (static_cast<std::uint64_t>(comm.kind) << 8) ^ size_class) |
         1;
}

}  // namespace

void ShortLock::lock() {
  constexpr int kPatience = 200;
  for (int i = 0; held_.test_and_set(std::memory_order_acquire); ++i)
    if (i > kPatience) sched_yield();
}

void Recorder::open() {
  if (const char* directory = std::getenv(kDirectoryVariable)) {
    // mkdir() may fail because another rank of this node has created the directory already.
    constexpr mode_t kOwn = 0700;
    mkdir(directory, kOwn);
    std::snprintf(directory_, sizeof directory_, "%s", directory);
    utsname names{};
    uname(&names);
    std::snprintf(path_, sizeof path_, "%s/rank-%.64s-%d", directory, names.nodename,
                  static_cast<int>(getpid()));
    record_ = static_cast<Record*>(map_file(path_, sizeof(Record)));
  }
  if (record_) return;
  path_[0] = '\0';
  void* const memory = mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) record_ = static_cast<Record*>(memory);
}

void Recorder::remove_file() {
  if (path_[0]) unlink(path_);
  // rmdir() succeeds only on the last rank of a node. On the node of rank 0 it fails, because the
  // job's file is in the directory.
  if (directory_[0]) rmdir(directory_);
}

void Recorder::give_up() {
  remove_file();
  if (record_) munmap(record_, sizeof(Record));
  record_ = nullptr;
}

std::uint32_t Recorder::module_of(const char* file) {
  Header& header = record_->header;
  for (std::uint32_t i = 0; i < header.modules; ++i)
    if (std::strncmp(record_->modules[i], file, kPath - 1) == 0) return i;
  constexpr char kOtherModules[] = "one of many other files";
  if (header.modules == kModules - 1) file = kOtherModules;
  if (header.modules == kModules) return kModules - 1;
  std::snprintf(record_->modules[header.modules], kPath, "%s", file);
  return header.modules++;
}

Site& Recorder::site(const Caller& caller, CallId call, const Communicator& comm,
                     std::uint64_t bytes) {
  const auto size_class = static_cast<std::uint32_t>(std::bit_width(bytes));
  const std::uint64_t key = key_of(caller, call, comm, size_class);
  // This hash table with open addressing finds the index of a call site in the record by its key.
  // In the record itself, call sites are in the order in which they first occurred.
  static constinit std::uint64_t keys[2 * kSites] = {};
  static constinit std::uint16_t places[2 * kSites] = {};
  std::size_t at = key % (2 * kSites);
  while (keys[at] && keys[at] != key) at = (at + 1) % (2 * kSites);
  if (keys[at]) return record_->sites[places[at]];
  if (record_->header.sites == kSites) return record_->sites[kSites - 1];
  if (record_->header.sites == kSites - 1) {
    Caller beyond;
    beyond.address = 1;
    beyond.where = kOthers;
    Site& others = another(beyond, call, comm);
    others.next_window = UINT64_MAX;
    return others;
  }
  keys[at] = key;
  places[at] = static_cast<std::uint16_t>(record_->header.sites);
  Site& site = another(caller, call, comm);
  site.size_class = size_class;
  return site;
}

Site& Recorder::another(const Caller& caller, CallId call, const Communicator& comm) {
  Site& site = record_->sites[record_->header.sites];
  const Place place = place_of(caller.address);
  site.offset = place.offset;
  site.module = module_of(place.file[0] ? place.file : record_->header.program);
  site.call = static_cast<std::uint32_t>(call);
  site.comm_size = static_cast<std::uint32_t>(comm.size);
  site.comm_nodes = static_cast<std::uint32_t>(comm.nodes);
  site.comm_kind = static_cast<std::uint32_t>(comm.kind);
  std::snprintf(site.where, sizeof site.where, "%s", caller.where);
  site.binding = static_cast<std::uint32_t>(caller.binding);
  site.next_window = 1;
  site.own = caller.own;
  for (int i = 0; i < caller.outers; ++i) {
    const Outer& outer = caller.outer[i];
    const Place there = outer.line ? Place{} : place_of(outer.address);
    const char* const file = outer.line      ? outer.file
                             : there.file[0] ? there.file
                                             : record_->header.program;
    site.outer[i] = {.offset = there.offset,
                     .module = 1 + module_of(file),
                     .line = static_cast<std::uint32_t>(outer.line),
                     .own = outer.own,
                     .unused = 0};
  }
  site.address = caller.address;
  ++record_->header.sites;
  return site;
}

// Adds the counts in `more` to the entry for the place in the program that has completed these
// messages. A linear search suffices, since there are few such places.
void Recorder::messages(const Caller& caller, CallId call, const MessageWait& more) {
  Header& header = record_->header;
  const auto is_here = [&](const MessageWait& one) {
    return one.address == caller.address && one.call == static_cast<std::uint32_t>(call) &&
           std::strncmp(one.where, caller.where, kWhere - 1) == 0;
  };
  MessageWait* const end = record_->message_waits + header.message_waits;
  MessageWait* const found = std::find_if(record_->message_waits, end, is_here);
  if (found == end) {
    if (header.message_waits == kMessageWaits) return;
    const Place place = place_of(caller.address);
    found->offset = place.offset;
    found->module = module_of(place.file[0] ? place.file : header.program);
    found->call = static_cast<std::uint32_t>(call);
    found->binding = static_cast<std::uint32_t>(caller.binding);
    std::snprintf(found->where, sizeof found->where, "%s", caller.where);
    found->address = caller.address;
    ++header.message_waits;
  }
  ++found->waits;
  found->messages += more.messages;
  found->bytes += more.bytes;
  found->between_ns += more.between_ns;
  found->waited_ns += more.waited_ns;
  found->tests += more.tests;
}

// Adds an interval to the record. The latest intervals are kept in a ring; if two threads write at
// the same time, one interval may be lost.
void Recorder::event(const Site& site, What what, std::int64_t began, std::int64_t ended,
                     std::uint16_t apart) {
  Header& header = record_->header;
  const std::uint64_t half = header.event_room / 2;
  if (half == 0) return;
  const std::uint64_t number =
      std::atomic_ref(header.events).fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t place = number < half ? number : half + (number - half) % half;
  record_->events[place] = {began, ended, static_cast<std::uint32_t>(&site - record_->sites), what,
                            apart};
}

// Returns whether the arrival at this collective call is recorded. All ranks record the same calls.
// They are chosen as runs of consecutive calls, so that a replay has them in order.
bool Recorder::is_kept(std::uint64_t comm, std::uint32_t sequence) const {
  constexpr std::uint32_t kInARow = 128;
  return mixed(comm / (kWhichPlan + 1) ^ mixed(1 + sequence / kInARow)) % stride_ == 0;
}

// Removes every second run of recorded arrivals at collectives, except for the first `first`
// arrivals. Returns false if no more can be removed.
bool Recorder::thin_out(std::uint32_t first) {
  constexpr std::uint32_t kMostStride = 1 << 24;
  if (stride_ == kMostStride) return false;
  stride_ *= 2;
  std::uint32_t kept = std::min(first, record_->header.arrivals);
  for (std::uint32_t i = kept; i < record_->header.arrivals; ++i) {
    const Arrival& one = record_->arrivals[i];
    if (is_kept(one.comm, one.sequence)) record_->arrivals[kept++] = one;
  }
  record_->header.arrivals = kept;
  return true;
}

void Recorder::keep_arrivals(int most) {
  const auto limit = static_cast<std::uint32_t>(most);
  while (record_->header.arrivals > limit && thin_out(limit / kFirst)) {
  }
  record_->header.arrivals = std::min(record_->header.arrivals, limit);
}

void Recorder::arrival(const Communicator& comm, const Site& site, std::int64_t arrived,
                       std::int64_t left, int root) {
  if (!is_kept(comm.identity, comm.sequence)) return;
  if (record_->header.arrivals == kArrivals) {
    thin_out(kArrivals / kFirst);
    if (!is_kept(comm.identity, comm.sequence)) return;
  }
  if (record_->header.arrivals == kArrivals) return;
  record_->arrivals[record_->header.arrivals++] = {
      comm.identity, comm.sequence, static_cast<std::uint32_t>(&site - record_->sites),
      arrived,       left,          comm.rank,
      root};
}

}  // namespace weft::advise
