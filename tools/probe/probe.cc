// weft-probe: an ordinary MPI program that says what the MPI library grants, for `weft info` and
// `weft doctor`; with --ring BYTES it sends that many bytes to the next rank instead, so that the
// lab can compare the bytes on its interfaces with what was sent.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::string json_text(const char* text) {
  std::string result = "\"";
  for (; *text; ++text) {
    const auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') result += '\\';
    result += c < 0x20 ? ' ' : static_cast<char>(c);
  }
  return result + "\"";
}

const char* thread_level_name(int level) {
  if (level == MPI_THREAD_MULTIPLE) return "MPI_THREAD_MULTIPLE";
  if (level == MPI_THREAD_SERIALIZED) return "MPI_THREAD_SERIALIZED";
  if (level == MPI_THREAD_FUNNELED) return "MPI_THREAD_FUNNELED";
  return "MPI_THREAD_SINGLE";
}

std::string weft_version() {
  using VersionCall = const char* (*)();
  void* symbol = dlsym(RTLD_DEFAULT, "weft_version");
  if (!symbol) return "null";
  VersionCall call = nullptr;
  std::memcpy(&call, &symbol, sizeof call);
  return json_text(call());
}

void print_facts(int thread_level, int ranks) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, version = 0, subversion = 0;
  MPI_Get_library_version(library, &length);
  MPI_Get_version(&version, &subversion);
  std::printf(
      "{\"library\":%s,\"standard\":\"%d.%d\",\"thread_level\":\"%s\",\"ranks\":%d,\"weft\":%s}\n",
      json_text(library).c_str(), version, subversion, thread_level_name(thread_level), ranks,
      weft_version().c_str());
}

// Every rank sends `bytes` to the next one and receives as many from the previous one. Returns
// whether all arrived as sent.
bool ring(int rank, int ranks, int bytes) {
  const auto count = static_cast<std::size_t>(bytes);
  std::vector<char> outgoing(count, static_cast<char>(rank + 1));
  std::vector<char> incoming(count, 0);
  const int next = (rank + 1) % ranks;
  const int before = (rank + ranks - 1) % ranks;
  MPI_Sendrecv(outgoing.data(), bytes, MPI_CHAR, next, 0, incoming.data(), bytes, MPI_CHAR, before,
               0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return incoming == std::vector<char>(count, static_cast<char>(before + 1));
}

}  // namespace

int main(int argc, char** argv) {
  int thread_level = 0, rank = 0, ranks = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &thread_level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  bool good = true;
  if (argc == 3 && std::strcmp(argv[1], "--ring") == 0)
    good = ring(rank, ranks, std::atoi(argv[2]));
  else if (rank == 0)
    print_facts(thread_level, ranks);
  MPI_Finalize();
  return good ? 0 : 1;
}
