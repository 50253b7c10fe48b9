// Compares settings between ranks. The ranks compare hashes of their settings first, and send the
// settings themselves only if the hashes differ.
#include "runtime/comm/agreement.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "library/end_together.h"
#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"

namespace weft {
namespace {

// The words of the first exchange between the ranks; the result of each word is its maximum over
// all ranks. Their layout must never change, because different versions of Weft recognise each
// other by it. kSame and kSameToo are the hash of the settings and its bitwise complement: all
// ranks' hashes are equal exactly if the two maxima are complements of each other. kLength is the
// length of the settings as text. The others are flags; the maximum tells whether some rank has set
// them.
enum Word : std::uint8_t { kSame, kSameToo, kLength, kKeep, kRaise, kLacking, kWords };
using Words = std::array<std::int64_t, kWords>;

Words words_of(const Facts& facts) {
  const std::int64_t number = fingerprint(facts);
  return {number, ~number, static_cast<std::int64_t>(text_of(facts).size())};
}

bool all_alike(const Words& greatest) {
  return greatest[kSame] == ~greatest[kSameToo];
}

// Tells the user that this rank waits in MPI_Init. A rank that was started without Weft never joins
// the exchange.
void say_who_waits(int rank) {
  if (rank <= 1)
    say("rank " + std::to_string(rank) +
        " has waited for 10 s in MPI_Init for ranks under Weft: start all ranks of the job by "
        "'weft "
        "run', or none");
}

// Waits for the request. Meanwhile it advances Weft's collectives, since another rank may have to
// complete one of them before it makes the same call.
void complete(MPI_Request* request, MPI_Comm comm) {
  constexpr std::int64_t kLong_ns = 10'000'000'000;
  const std::int64_t began = now_ns();
  Runtime* const runtime = Runtime::active();
  bool said = runtime != nullptr;
  int done = 0;
  while (library_calls.Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
    if (runtime) runtime->progress.poll();
    sched_yield();
    if (said || now_ns() - began < kLong_ns) continue;
    said = true;
    int rank = 0;
    library_calls.Comm_rank(comm, &rank);
    say_who_waits(rank);
  }
}

Words greatest(MPI_Comm comm, const Words& own) {
  Words all{};
  MPI_Request request;
  const int code = library_calls.Iallreduce(own.data(), all.data(), kWords, handles.int64,
                                            handles.max, comm, &request);
  if (code != MPI_SUCCESS) return own;
  complete(&request, comm);
  return all;
}

// Gathers the settings of all ranks on rank 0, and returns them there by rank. Returns an empty
// vector on the other ranks.
std::vector<Facts> collected(MPI_Comm comm, const Facts& own, std::int64_t most_bytes) {
  int rank = 0, ranks = 1;
  library_calls.Comm_rank(comm, &rank);
  library_calls.Comm_size(comm, &ranks);
  std::string text = text_of(own);
  text.resize(static_cast<std::size_t>(most_bytes), '\n');
  std::string all(rank == 0 ? text.size() * static_cast<std::size_t>(ranks) : 0, '\n');
  const int bytes = static_cast<int>(most_bytes);
  MPI_Request request;
  library_calls.Igather(text.data(), bytes, handles.byte, all.data(), bytes, handles.byte, 0, comm,
                        &request);
  complete(&request, comm);
  std::vector<Facts> facts;
  for (std::size_t at = 0; at < all.size(); at += text.size())
    facts.push_back(facts_of(std::string_view(all).substr(at, text.size())));
  return facts;
}

std::string words_for(MPI_Comm comm, const Facts& facts, const Words& said) {
  const auto all = collected(comm, facts, said[kLength]);
  return all.empty() ? "" : differences(all);
}

// A rank that refuses its options sends a single setting with this name. Its value is the reason.
constexpr const char* kRefusal = "refusal";

// Returns why a job whose ranks have different settings must end; "" if the settings agree.
std::string why_it_ends(const std::vector<Facts>& of_ranks) {
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
    for (const Fact& fact : of_ranks[rank])
      if (fact.name == kRefusal) return "rank " + std::to_string(rank) + ": " + fact.value;
  const std::string differing = differences(of_ranks);
  if (differing.empty()) return "";
  return "the ranks of this job were started differently, so that they would wait for each "
         "other: " +
         differing + "; give all ranks the same";
}

// Prints the reason, finalises MPI and exits. Without finalising, launchers would take the exit for
// a crash.
[[noreturn]] void end_job(const std::string& why) {
  if (!why.empty()) say(why);
  greatest(handles.comm_world, {});  // lets no rank end before the reason has been printed
  end_together(next_calls.Finalize, 2);
}

}  // namespace

Start agree_on_start(const Facts& facts, const Start& own) {
  int ranks = 1;
  library_calls.Comm_size(handles.comm_world, &ranks);
  if (ranks == 1) return own;
  Words words = words_of(facts);
  words[kKeep] = own.some_keep_level;
  words[kRaise] = !own.all_keep_level;
  words[kLacking] = !own.all_have_multiple;
  const Words said = greatest(handles.comm_world, words);
  if (!all_alike(said)) end_job(why_it_ends(collected(handles.comm_world, facts, said[kLength])));
  return {said[kKeep] != 0, said[kRaise] == 0, said[kLacking] == 0};
}

void end_job_refusing(const std::string& why) {
  agree_on_start({{kRefusal, why, why}}, {true, true, false});
  int rank = 0;
  library_calls.Comm_rank(handles.comm_world, &rank);
  end_job(rank == 0 ? why : "");
}

void end_job_if_refused(const std::string& why) {
  int rank = 0, ranks = 1;
  library_calls.Comm_rank(handles.comm_world, &rank);
  library_calls.Comm_size(handles.comm_world, &ranks);
  Words own{};
  own[0] = why.empty() ? 0 : ranks - rank;
  const std::int64_t first = greatest(handles.comm_world, own)[0];
  if (first > 0) end_job(first == ranks - rank ? why : "");
}

std::optional<std::string> disagreement(MPI_Comm comm, const Facts& facts) {
  const Words said = greatest(comm, words_of(facts));
  if (all_alike(said)) return std::nullopt;
  return words_for(comm, facts, said);
}

}  // namespace weft
