// Records each MPI call and its duration. For collectives it also records the call site and this
// rank's times of arrival and departure, and watches buffers; for non-blocking calls it records
// when they are completed.
#include "advise/visit.h"

#include <algorithm>
#include <mutex>

#include "advise/agreement.h"
#include "advise/buffers.h"
#include "advise/extents.h"
#include "advise/job.h"
#include "advise/samples.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "library/session_communicators.h"

namespace weft::advise {
namespace {

// Returns whether the buffer lies on the stack. Such a buffer ceases to exist when its function
// returns, perhaps before the next call.
bool on_stack(const void* buffer, Called called) {
  constexpr std::uintptr_t kStack = 8 << 20;
  return reinterpret_cast<std::uintptr_t>(buffer) -
             reinterpret_cast<std::uintptr_t>(called.frame_end) <
         kStack;
}

// Returns a hash of the arguments that would be fixed if the call were persistent; 0 if the call
// cannot be made persistent. A freed handle may be reused for another object. Therefore
// communicators are hashed by identity instead of by handle, and the buffers' extents are included.
std::uint64_t fingerprint(const Call& call, const Communicator& comm, std::uint64_t bytes,
                          Called called) {
  if (on_stack(call.sendbuf, called) || on_stack(call.recvbuf, called)) return 0;
  std::uint64_t found = bytes;
  const auto add = [&](std::uint64_t word) { found = (found ^ word) * 0x9e3779b97f4a7c15; };
  for (const Bytes& side : {read_by_mpi(call, comm), received(call, comm)}) {
    add(reinterpret_cast<std::uintptr_t>(side.begin));
    add(side.count);
  }
  for (const void* buffer : {call.sendbuf, static_cast<const void*>(call.recvbuf)})
    add(reinterpret_cast<std::uintptr_t>(buffer));
  for (const MPI_Datatype type : {call.sendtype, call.recvtype}) add(number_of(type));
  add(comm.identity);
  add(number_of(call.op));
  add(static_cast<std::uint64_t>(call.root));
  return found | 1;
}

Operator operator_of(const Call& call) {
  if (call.op == handles.sum) return Operator::sum;
  if (call.op == handles.min) return Operator::min;
  if (call.op == handles.max) return Operator::max;
  return call.op == handles.prod ? Operator::prod : Operator::other;
}

void count_call(Site& site, std::uint64_t bytes, Times times, std::uint64_t arguments) {
  ++site.calls;
  site.bytes += bytes;
  site.ns += static_cast<std::uint64_t>(times.left_ns - times.began_ns);
  if (site.left_ns) site.gap_ns = times.began_ns - site.left_ns;
  site.left_ns = times.left_ns;
  site.repeated += site.calls > 1 && arguments != 0 && site.arguments == arguments;
  site.arguments = arguments;
}

// Returns the size of these elements in bytes. The datatype may be MPI_DATATYPE_NULL if there are
// none.
std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type) {
  int size = 0;
  if (count > 0) library_calls.Type_size(type, &size);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, count * size));
}

// Records that a pending request has been completed, and removes it from the table. times: begin
// and end of the completing call. of: the number of requests that this call has completed; each
// gets an equal share of its time.
void finish(Pending& pending, Times times, std::int64_t of) {
  const auto [began_ns, left_ns] = times;
  if (Site* const site = pending.site) {
    recorder.event(*site, What::in_flight, pending.began_ns, began_ns);
    recorder.event(*site, What::wait, began_ns, left_ns);
    ++site->completed;
    site->between_ns += static_cast<std::uint64_t>(began_ns - pending.began_ns);
    site->waited_ns +=
        static_cast<std::uint64_t>((left_ns - began_ns) / std::max<std::int64_t>(1, of));
    site->tests += pending.tests;
  }
  drop_request(pending);
}

}  // namespace

// Sums up the messages that a call has completed.
struct Visit::Completed {
  std::int64_t of = 0;  // number of completed requests of any kind
  MessageWait messages{};
  std::int64_t first_ns = INT64_MAX;  // earliest start of a completed message

  void add(const Pending& pending) {
    if (!pending.is_message) return;
    messages.messages += pending.times;
    messages.bytes += pending.bytes;
    messages.tests += pending.tests;
    first_ns = std::min(first_ns, pending.began_ns);
  }
  // Returns the sums over the messages, with their share of the time of the completing call. times:
  // begin and end of that call.
  const MessageWait& within(Times times) {
    const auto waited_ns = static_cast<std::uint64_t>(times.left_ns - times.began_ns);
    const std::uint64_t all = std::max(static_cast<std::uint64_t>(of), messages.messages);
    messages.waited_ns = waited_ns * messages.messages / all;
    messages.between_ns =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, times.began_ns - first_ns));
    return messages;
  }
};

// The sampled collectives that a call has completed. More than kMost are not kept, since no more
// buffers can be watched.
struct Visit::Results {
  static constexpr int kMost = 8;
  int count = 0;
  Site* sites[kMost];
  Sample samples[kMost];

  void add(const Pending& pending) {
    if (!pending.site || pending.sample.call == 0 || count == kMost) return;
    sites[count] = pending.site;
    samples[count++] = pending.sample;
  }
};

Visit::Visit(CallId id, bool profiling, Called called)
    : Visit(id, profiling, called, Waits::perhaps) {
  if (checking && records_) waits_ = published.begin(id, called);
}

void Visit::count_now() {
  const std::int64_t left_ns = left_ns_ ? left_ns_ : now_ns();
  const std::lock_guard held(recorder.lock());
  count(left_ns);
}

void Visit::count(std::int64_t left_ns) {
  if (!timed_) return;
  counted_ = true;
  Header& header = recorder.record().header;
  const Counted counted =
      count_timed(header.totals[static_cast<int>(id_)], id_, left_ns - began_ns_);
  constexpr std::int64_t kTimed = 100, kUntimed = 10;  // ns that recording takes
  recorder.took(kTimed + (counted.calls - 1) * kUntimed);
  header.in_mpi_ns += counted.ns;
  header.ended_ns = left_ns;
}

void Visit::buffer(Use use, const void* begin, std::int64_t count, MPI_Datatype type) {
  if (checking) (use == Use::read ? memory_.read : memory_.written) = dense(begin, count, type);
  if (!watching_) return;
  const Bytes bytes = elements(begin, count, type);
  if (bytes.count) given_to_mpi(bytes.begin, bytes.count, use == Use::written, here());
}

void Visit::compare(const Call& call) {
  // Communicators of sessions are not compared: their members' ranks in MPI_COMM_WORLD are unknown,
  // so two of them may have the same identity.
  if (call.comm == handles.comm_null || is_of_session(call.comm)) return;
  const Caller caller = find_line(called_);
  const std::lock_guard held(recorder.lock());
  compare_with_ranks(call, id_, id_ == call.form ? Way::started : Way::blocking,
                     communicator(call.comm), caller);
}

void Visit::collective(const Call& call) {
  if (checking && records_ && job_running()) compare(call);
  if (!watching_) return;
  const Instruction where = here();
  const std::lock_guard held(recorder.lock());
  const Communicator& comm = communicator(call.comm);
  const Bytes in = sent(call, comm), read = read_by_mpi(call, comm), out = received(call, comm);
  if (in.count) unwritten_ = sent_by_mpi(in.begin, in.count, began_ns_);
  if (read.count) given_to_mpi(read.begin, read.count, false, where);
  if (out.count) given_to_mpi(out.begin, out.count, true, where);
}

int Visit::blocking(const Call& call, int code) {
  if (!records_ || checking || !job_running() || code != MPI_SUCCESS) return code;
  left_ns_ = now_ns();
  const Caller caller = find_caller(called_);
  const std::lock_guard held(recorder.lock());
  Communicator& comm = communicator(call.comm);
  const std::uint64_t bytes = payload(call, comm);
  Site& site = recorder.site(caller, id_, comm, bytes);
  count_call(site, bytes, {began_ns_, left_ns_}, fingerprint(call, comm, bytes, called_));
  site.op = operator_of(call);
  constexpr std::int64_t kSite = 300;  // ns that recording a site takes
  recorder.took(kSite);
  ++comm.sequence;
  if (!comm.inter) recorder.arrival(comm, site, began_ns_, left_ns_, call.root);
  recorder.event(site, What::call, began_ns_, left_ns_, apart_from_those_before(call, comm));
  if (watching_) nothing_written_since(began_ns_);
  if (unwritten_) add_before(site, *unwritten_, began_ns_);
  count(left_ns_);
  watch(site, call, comm);
  return code;
}

void Visit::check(MPI_Request request, const InFlight& memory, std::uint64_t comm,
                  const Caller& caller) {
  // From now on the thread counts as inside MPI. The destructor of Visit then protects the buffers'
  // pages when the call returns.
  if (!enters_) in_mpi.begin();
  enters_ = true;
  got_on();
  check_started(number_of(request), memory, comm, id_, caller);
  note_request(request, nullptr, 0, {});
}

// Checks the non-blocking collective that has been started. It is not recorded.
void Visit::check_operation(const Call& call, MPI_Request request) {
  const Caller caller = find_line(called_);
  const std::lock_guard held(recorder.lock());
  check(request, in_flight(call, communicator(call.comm)), number_of(call.comm), caller);
}

// Checks the persistent requests that have been started. They are not recorded.
void Visit::check_planned(std::int64_t count, const MPI_Request* requests) {
  const Caller caller = find_line(called_);
  const std::lock_guard held(recorder.lock());
  for (std::int64_t i = 0; i < count; ++i) {
    const Planned* const planned = find_planned(requests[i]);
    if (planned && !planned->in_parts)
      check(requests[i], planned->in_flight, planned->comm, caller);
  }
}

int Visit::started(const Call* call, MPI_Request* request, int code) {
  if (!records_ || !job_running() || code != MPI_SUCCESS) return code;
  if (checking) {
    if (call) check_operation(*call, *request);
    return code;
  }
  if (timed_) left_ns_ = now_ns();
  Caller caller;
  if (call) caller = find_caller(called_);
  const std::lock_guard held(recorder.lock());
  Site* site = nullptr;
  Sample sample;
  if (call) {
    Communicator& comm = communicator(call->comm);
    const std::uint64_t bytes = payload(*call, comm);
    site = &recorder.site(caller, id_, comm, bytes);
    count_call(*site, bytes, {began_ns_, left_ns_}, fingerprint(*call, comm, bytes, called_));
    site->op = operator_of(*call);
    ++comm.sequence;
    if (!comm.inter) recorder.arrival(comm, *site, began_ns_, left_ns_, call->root);
    if (unwritten_) add_before(*site, *unwritten_, began_ns_);
    if (is_wanted(*site)) {
      sample = to_be_watched(*call, comm);
      sample.call = site->calls;
    }
  }
  note_request(*request, site, left_ns_, sample);
  count(left_ns_);
  operation_begins();
  return code;
}

int Visit::started_message(std::int64_t count, MPI_Datatype type, MPI_Comm comm,
                           const MPI_Request* request, int code) {
  if (!records_ || !job_running() || code != MPI_SUCCESS) return code;
  if (checking) {
    const Caller caller = find_line(called_);
    const std::lock_guard held(recorder.lock());
    check(*request, memory_, number_of(comm), caller);
    return code;
  }
  if (timed_) left_ns_ = now_ns();
  const std::uint64_t bytes = bytes_of(count, type);
  const std::lock_guard held(recorder.lock());
  note_message(*request, bytes, called_.address);
  this->count(left_ns_);
  operation_begins();
  return code;
}

int Visit::planned_message(std::optional<Use> use, const void* begin, std::int64_t count,
                           MPI_Datatype type, MPI_Comm comm, const MPI_Request* request, int code) {
  if (!records_ || !job_running() || code != MPI_SUCCESS) return code;
  Planned planned{.bytes = bytes_of(count, type), .in_parts = !use};
  if (use)
    (*use == Use::read ? planned.read : planned.result.result) = elements(begin, count, type);
  if (use && checking)
    (*use == Use::read ? planned.in_flight.read : planned.in_flight.written) =
        dense(begin, count, type);
  planned.comm = number_of(comm);
  const std::lock_guard held(recorder.lock());
  note_planned(*request, planned);
  return code;
}

int Visit::planned(const Call& call, const MPI_Request* request, int code) {
  if (!records_ || !job_running() || code != MPI_SUCCESS) return code;
  const Caller caller = find_caller(called_);
  const std::lock_guard held(recorder.lock());
  Communicator& comm = communicator(call.comm);
  const std::uint64_t bytes = payload(call, comm);
  Site& site = recorder.site(caller, id_, comm, bytes);
  site.op = operator_of(call);
  // The starts of each persistent request are counted separately. All ranks initialise these
  // requests in the same order, but may start them in different orders.
  Communicator starts = comm;
  starts.identity |= ++comm.plans & kWhichPlan;
  starts.sequence = starts.compared = 0;
  if (checking && !is_of_session(call.comm))
    compare_with_ranks(call, id_, Way::planned, starts, caller);
  note_planned(*request, {.site = &site,
                          .starts = starts,
                          .bytes = bytes,
                          .arguments = fingerprint(call, comm, bytes, called_),
                          .root = call.root,
                          .sent = sent(call, comm),
                          .read = read_by_mpi(call, comm),
                          .result = to_be_watched(call, comm),
                          .in_flight = checking ? in_flight(call, comm) : InFlight{},
                          .comm = number_of(call.comm)});
  return code;
}

// Notes which buffers these persistent requests pass to MPI, since MPI's accesses to watched
// buffers count, too.
void Visit::starting(std::int64_t count, const MPI_Request* requests) {
  if (!watching_) return;
  const Instruction where = here();
  const std::lock_guard held(recorder.lock());
  for (std::int64_t i = 0; i < count; ++i) {
    const Planned* const planned = find_planned(requests[i]);
    if (!planned || planned->in_parts) return release_all_guards(Unknown::mpi_call);
    const Bytes &in = planned->sent, &read = planned->read, &out = planned->result.result;
    const auto unwritten = in.count ? sent_by_mpi(in.begin, in.count, began_ns_) : std::nullopt;
    if (unwritten) add_before(*planned->site, *unwritten, began_ns_);
    if (read.count) given_to_mpi(read.begin, read.count, false, where);
    if (out.count) given_to_mpi(out.begin, out.count, true, where);
  }
}

void Visit::freed(const MPI_Request* request) {
  if (!records_ && !(checking && is_callbacks())) return;
  const std::lock_guard held(recorder.lock());
  drop_planned(*request);
  if (checking) check_dropped(number_of(*request));
  // The request no longer counts as a message. Its handle may be reused while the operation is
  // still in flight.
  if (Pending* const pending = find_request(number_of(*request))) pending->is_message = false;
}

int Visit::activated(std::int64_t count, const MPI_Request* requests, int code) {
  if (!records_ || !job_running() || code != MPI_SUCCESS) return code;
  if (checking) {
    check_planned(count, requests);
    return code;
  }
  if (timed_) left_ns_ = now_ns();
  const std::lock_guard held(recorder.lock());
  for (std::int64_t i = 0; i < count; ++i) {
    Planned* const planned = find_planned(requests[i]);
    Site* const site = planned ? planned->site : nullptr;
    Sample sample;
    if (site) {
      const std::int64_t own_ns = (left_ns_ - began_ns_) / count;
      count_call(*site, planned->bytes, {began_ns_, began_ns_ + own_ns}, planned->arguments);
      Communicator& starts = planned->starts;
      ++starts.sequence;
      if (!starts.inter) recorder.arrival(starts, *site, began_ns_, left_ns_, planned->root);
      if (is_wanted(*site)) {
        sample = planned->result;
        sample.call = site->calls;
      }
    }
    if (planned && !site)
      note_message(requests[i], planned->bytes, called_.address);
    else
      note_request(requests[i], site, left_ns_, sample);
  }
  operation_begins();
  return code;
}

// Returns whether the application makes this call in a callback that another MPI call runs.
bool Visit::is_callbacks() const {
  const bool profiling = (this_thread.is & kProfiling) != 0;
  return (before_ & kInside) && job_running() && !(profiling && from_library(called_.address));
}

void Visit::ask() const {
  const std::lock_guard held(recorder.lock());
  for (std::int64_t i = 0; i < count_; ++i) check_asked(number_of(before()[i]));
}

// Records the requests that the call has completed. If not all are known to be complete, these are
// the requests whose handles have become null, and those that the call's output names.
int Visit::note_completed(const MPI_Request* requests, int code, const Ends& ends) {
  if (timed_) left_ns_ = now_ns();
  if (checking && ends.tests) ends.any() ? got_on() : polls(id_, called_);
  const MPI_Request* const before = this->before();
  const bool all = ends.all && ends.any() && code == MPI_SUCCESS;
  Completed completed;
  Results results;
  {
    const std::lock_guard held(recorder.lock());
    // If a request was recorded after this call began, another thread has started it, and its
    // handle is that of a request which this call has completed. Such a request is skipped.
    const auto find = [&](std::int64_t i) {
      Pending* const pending = i >= 0 && i < count_ ? find_request(number_of(before[i])) : nullptr;
      return pending && pending->order <= noted_ ? pending : nullptr;
    };
    const auto is_over = [&](std::int64_t i) { return all || requests[i] != before[i]; };
    completed.of = ends.named();
    for (std::int64_t i = 0; i < count_ && !ends.named(); ++i)
      completed.of += find(i) && is_over(i);
    const auto end = [&](Pending& pending) {
      if (checking) check_completed(pending.request, called_);
      completed.add(pending);
      results.add(pending);
      finish(pending, times_for(pending), completed.of);
    };
    for (int k = 0; k < ends.named(); ++k)
      if (Pending* const pending = find(ends.indices[k])) end(*pending);
    for (std::int64_t i = 0; i < count_; ++i) {
      Pending* const pending = find(i);
      if (!pending) continue;
      if (is_over(i)) {
        end(*pending);
        continue;
      }
      if (ends.tests) ++pending->tests;
      if (checking && code == MPI_SUCCESS) check_incomplete(pending->request);
    }
    count(left_ns_);
  }
  if (completed.messages.messages != 0) note_messages(completed);
  if (results.count != 0 && code == MPI_SUCCESS && job_running()) watch_results(results);
  return code;
}

void Visit::note_messages(Completed& completed) {
  // The place of the call is found before the lock is taken, since finding it may wait for Python's
  // own lock.
  const Caller caller = find_caller(called_);
  const std::int64_t now = timed_ ? 0 : now_ns();
  const std::lock_guard held(recorder.lock());
  recorder.messages(caller, id_,
                    completed.within(timed_ ? Times{began_ns_, left_ns_} : Times{now, now}));
}

// Begins to watch the receive buffers of the collectives that this call has completed. It must run
// last, since the measured interval begins when the program continues.
void Visit::watch_results(const Results& results) {
  // From now on the thread counts as inside MPI. Pages that also hold other memory are then
  // protected when the call returns.
  if (!enters_) in_mpi.begin();
  enters_ = true;
  const std::lock_guard held(recorder.lock());
  for (int i = 0; i < results.count; ++i) watch_completed(*results.sites[i], results.samples[i]);
}

// Returns when this call began and ended, if it is timed. Otherwise both times are the present time
// if the request is a collective's. If it is not, both are 0, and nobody reads them.
Times Visit::times_for(const Pending& pending) const {
  if (timed_ || !pending.site) return {began_ns_, left_ns_};
  const std::int64_t now = now_ns();
  return {now, now};
}

int Visit::window_made(int code) {
  if (!records_ || code != MPI_SUCCESS) return code;
  release_all_guards(Unknown::shared_page);
  const std::lock_guard held(recorder.lock());
  ++one_sided;
  return code;
}

int Visit::window_freed(int code) {
  if (!records_ || code != MPI_SUCCESS) return code;
  const std::lock_guard held(recorder.lock());
  one_sided = std::max(0, one_sided - 1);
  return code;
}

int Visit::made(MPI_Comm parent, const MPI_Comm* comm, bool duplicate, int code) {
  if (!records_ || !job_running() || code != MPI_SUCCESS) return code;
  const std::lock_guard held(recorder.lock());
  note_communicator(parent, *comm, duplicate);
  return code;
}

void Visit::forgets(MPI_Comm comm) {
  if (!records_) return;
  Caller caller;
  if (checking) caller = find_line(called_);
  const std::lock_guard held(recorder.lock());
  if (checking) check_communicator_ends(number_of(comm), id_, caller);
  forget_communicator(comm);
}

int Visit::begun(int code) {
  if (code == MPI_SUCCESS && !(before_ & kInside)) job_begins();
  return code;
}

void Visit::ending() {
  if (!records_) return;
  recorder.record().header.ended_ns = now_ns();
  job_ends();
  records_ = false;
}

}  // namespace weft::advise
