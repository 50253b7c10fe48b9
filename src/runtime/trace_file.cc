// Collects the events of all ranks. At a barrier it determines the differences between the clocks
// of the nodes.
#include "runtime/trace_file.h"

#include <unistd.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/log.h"
#include "base/whole_file.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft {
namespace {

// Receives the ranks' texts one after the other, and writes them to the file; collective. Only rank
// 0 needs access to the file, and memory for one text at a time. The other ranks must send their
// texts even if the file cannot be written.
void write_texts_of_all(const std::string& own, MPI_Comm all, int ranks, WholeFile& file) {
  file.add(own);
  for (int rank = 1; rank < ranks; ++rank) {
    std::int64_t bytes = 0;
    library_calls.Recv(&bytes, sizeof bytes, handles.byte, rank, 0, all, MPI_STATUS_IGNORE);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    library_calls.Recv(text.data(), static_cast<int>(bytes), handles.byte, rank, 0, all,
                       MPI_STATUS_IGNORE);
    file.add(",\n" + text);
  }
}

void send_text(const std::string& own, MPI_Comm all) {
  const auto bytes = static_cast<std::int64_t>(own.size());
  library_calls.Send(&bytes, sizeof bytes, handles.byte, 0, 0, all);
  library_calls.Send(own.data(), static_cast<int>(bytes), handles.byte, 0, 0, all);
}

}  // namespace

void write_trace(const Trace& trace, const std::string& path, MPI_Comm all, int rank, int ranks) {
  library_calls.Barrier(all);
  const std::int64_t here = now_ns();
  std::int64_t at_root = here;
  library_calls.Bcast(&at_root, sizeof at_root, handles.byte, 0, all);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  // Processes on one node have the same clock. A difference below 1 s is therefore only the time
  // that the barrier took, and is ignored.
  const std::int64_t offset = std::abs(at_root - here) < 1'000'000'000 ? 0 : at_root - here;
  const std::string events = trace.events_json(rank, host, offset, here);
  if (rank != 0) {
    send_text(events, all);
    return;
  }
  WholeFile file(path);
  file.add("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  write_texts_of_all(events, all, ranks, file);
  file.add("\n]}\n");
  if (const int error = file.finish()) say(not_written("the trace", path, error));
}

}  // namespace weft
