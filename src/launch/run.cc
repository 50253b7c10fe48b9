// Implements `weft run`. If the command is a launcher, its command line is rewritten. Otherwise the
// program file is examined, the Weft library for its MPI family is chosen, and the program is
// started.
#include "launch/run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "advise/variables.h"
#include "base/first_rank.h"
#include "base/started.h"
#include "launch/help.h"
#include "launch/job_command.h"
#include "launch/launcher.h"
#include "launch/options.h"
#include "launch/preload.h"
#include "launch/program.h"
#include "launch/saying.h"

namespace weft::launch {
namespace {

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

std::vector<const char*> pointers(const std::vector<std::string>& words) {
  std::vector<const char*> result;
  for (const auto& word : words) result.push_back(word.c_str());
  result.push_back(nullptr);
  return result;
}

Family family_of(Launcher launcher) {
  if (launcher == Launcher::hydra) return Family::mpich;
  if (launcher == Launcher::openmpi) return Family::openmpi;
  return Family::unknown;
}

struct Choice {
  Family family;
  std::string reason;
};

Result<Choice> choose_family(const std::string& name, const Program& program, Family asked,
                             Launcher launcher) {
  const Family launched = family_of(launcher);
  if (program.family == Family::unknown) {
    if (asked != Family::unknown) return Choice{asked, "it was asked for"};
    if (launched != Family::unknown)
      return Choice{launched, std::string("started by ") + launcher_name(launcher)};
    return Choice{Family::mpich, "nothing tells which MPI library is used; mpich is the default"};
  }
  const std::string linked = name + " is linked to " + program.mpi_library;
  if (asked != Family::unknown && asked != program.family)
    return Error{linked + " (" + family_name(program.family) + "), but --mpi says " +
                 family_name(asked) + "; leave --mpi out"};
  // A program for the standard MPI ABI is accepted with every launcher, since any MPI library may
  // provide that ABI.
  if (program.family != Family::abi && launched != Family::unknown && launched != program.family)
    return Error{linked + " (" + family_name(program.family) + "), but was started by " +
                 launcher_name(launcher) + "; use the mpiexec of the program's own MPI library"};
  return Choice{program.family, linked};
}

// Returns the directories that may contain Weft's libraries: lib/weft of an installation, and lib
// of a build tree. self: the absolute path of this program.
std::vector<std::string> library_directories(const std::string& self) {
  const std::string prefix = self.substr(0, self.rfind('/', self.rfind('/') - 1));
  return {prefix + "/lib/weft/", prefix + "/lib/"};
}

std::string library_name(const std::string& what) {
  return "libweft-" + what + ".so";
}

std::string families_there(const std::string& directory) {
  std::string names;
  for (const Family family : {Family::mpich, Family::openmpi, Family::abi}) {
    const std::string name = family_name(family);
    if (access((directory + library_name(name)).c_str(), R_OK) != 0) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "none" : names;
}

// Returns the path of one of Weft's libraries, or an error if it does not exist. what: an MPI
// family, or "heap".
Result<std::string> find_library(const std::string& self, const std::string& what) {
  const auto directories = library_directories(self);
  for (const auto& directory : directories) {
    const std::string path = directory + library_name(what);
    if (access(path.c_str(), R_OK) != 0) continue;
    if (path.find_first_of(" :") != std::string::npos)
      return Error{"the loader cannot load " + path +
                   ": its path contains a space or a colon; install Weft elsewhere"};
    return path;
  }
  const bool is_openmpi = what == family_name(Family::openmpi);
  return Error{"Weft's library for " + what + " (" + library_name(what) + ") is not in " +
               directories.front() +
               ", which has those for: " + families_there(directories.front()) +
               "; build it in Weft's source tree with: make " +
               (is_openmpi ? "mpis, or for an MPI library of your own with: make build "
                             "MPI=/path/to/mpicc"
                           : "build")};
}

// Returns whether the shared heap is requested and can work. It cannot work in a program with a
// sanitizer, whose runtime allocates all memory itself.
bool wants_heap(const std::string& name, const Program& program) {
  const char* const bytes = std::getenv("WEFT_SHARED_HEAP");
  if (!bytes || !*bytes || program.sanitizer.empty()) return bytes && *bytes;
  say_once(name + " has its memory from the sanitizer's runtime (" + program.sanitizer +
           "), and none from the shared heap: leave --shared-heap out, or build it without the "
           "sanitizer");
  return false;
}

// Returns the libraries to preload, separated by colons. The advisor's library comes first, because
// it must see the application's calls before Weft's other library does. The library for the MPI
// family follows, and the heap library if it is requested.
Result<std::string> find_libraries(const std::string& self, Family family, const Program& program,
                                   const RunOptions& options) {
  const std::string name = family_name(family);
  std::vector<std::string> wanted;
  if (options.watched) wanted.push_back("advise-" + name);
  if (options.engines) wanted.push_back(name);
  if (options.engines && wants_heap(options.command[0], program)) wanted.emplace_back("heap");
  std::string found;
  for (const auto& one : wanted) {
    auto library = find_library(self, one);
    if (!library) return library;
    found += (found.empty() ? "" : ":") + *library;
  }
  return found;
}

// Requests a trace from all ranks, so that the advisor's timeline can show Weft's threads. Rank 0
// writes the file. It has no effect if the user has requested a trace.
void trace_for_advisor() {
  const char* const directory = std::getenv(advise::kDirectoryVariable);
  const std::string file = std::string(directory ? directory : "") + advise::kThreadsFile;
  const char* const asked = std::getenv("WEFT_TRACE");
  if (!asked || !*asked) setenv("WEFT_TRACE", file.c_str(), 1);
}

// Returns the words that `weft run` inserts before a launcher's programs if it was itself started
// by the advisor; an empty list otherwise.
std::vector<std::string> watching_words(const std::string& self) {
  const char* const directory = std::getenv(advise::kDirectoryVariable);
  const char* const overhead = std::getenv(advise::kOverheadVariable);
  if (!directory) return {};
  std::vector<std::string> words = {self, "advise", "--directory", directory};
  if (overhead) words.insert(words.end(), {"--overhead", overhead});
  words.emplace_back("--");
  return words;
}

void say_what_is_loaded(const std::string& library, const std::string& reason,
                        const std::string& sanitizer) {
  const std::string behind =
      sanitizer.empty() ? "" : "; behind the sanitizer's runtime, " + sanitizer;
  say_once("loads " + library + ": " + reason + behind);
}

bool wants_summary() {
  const char* const asked = std::getenv("WEFT_SUMMARY");
  return asked && *asked && std::string_view(asked) != "0";
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat one, other;
  return stat(a.c_str(), &one) == 0 && stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace

int start_launcher(Launcher launcher, const std::vector<std::string>& command,
                   const std::vector<std::string>& prefix, bool verbose) {
  auto rewritten = insert_before_programs(launcher, command, prefix);
  if (!rewritten) return refuse(rewritten.error().message);
  if (verbose) {
    std::string line;
    for (const auto& word : *rewritten) line += " " + word;
    say_once("starts" + line);
  }
  return become(find_in_path(command[0]), pointers(*rewritten).data());
}

int start_program(const std::string& self, const RunOptions& options) {
  const std::string& name = options.command[0];
  const std::string path = find_in_path(name);
  const auto command = pointers(options.command);
  // If the program is a launcher, the `weft run` of each rank reads this variable. It is passed by
  // the environment because `weft run` has no such option.
  if (options.watched) setenv(advise::kWatchedVariable, "1", 1);
  if (path.empty() || same_file(path, self)) return become(path, command.data());
  auto program = look_at_program(path);
  if (!program) return refuse(program.error().message);
  if (!program->preloadable) return refuse(name + " " + program->why_not);
  // On a rank, the preloaded library will report the mistake once for the whole job.
  const bool is_said_later = launched_rank() && program->family != Family::unknown;
  if (!options.refusal.empty() && !is_said_later) return refuse(options.refusal);
  auto choice = choose_family(name, *program, options.mpi, launcher_of_environment());
  if (!choice) return refuse(choice.error().message);
  auto library = find_libraries(self, choice->family, *program, options);
  if (!library) return refuse(choice->reason + "; " + library.error().message, Of::node);
  set_preload(*library, program->sanitizer);
  if (options.verbose) say_what_is_loaded(*library, choice->reason, program->sanitizer);
  if (options.watched && options.engines) trace_for_advisor();
  setenv(kStartedVariable, std::to_string(getpid()).c_str(), 1);
  if (wants_summary()) tell_job_command(options.command);
  return become(path, command.data());
}

Result<RunOptions> watching_options(const std::string& mpi,
                                    const std::vector<std::string>& command) {
  RunOptions options;
  options.watched = true;
  options.engines = false;
  options.command = command;
  if (mpi.empty()) return options;
  auto family = family_of_word(mpi);
  if (!family) return family.error();
  options.mpi = *family;
  return options;
}

int become(const std::string& path, const char* const* command) {
  if (path.empty()) {
    say_why_it_ends(command[0] + std::string(": not found"), Of::node);
    return kNotFound;
  }
  // Unlike execv(), execvp() also starts scripts whose first line names no interpreter.
  execvp(path.c_str(), const_cast<char* const*>(command));
  const int error = errno;
  say_why_it_ends(path + ": " + std::strerror(error), Of::node);
  return error == ENOENT ? kNotFound : kNotExecutable;
}

int run(const std::string& self, int argc, char** argv) {
  auto options = parse_run_options(self, argc, argv);
  if (!options) return refuse(options.error().message);
  if (options->help != RunOptions::Help::none) {
    const bool text = options->help == RunOptions::Help::text;
    std::fputs((text ? run_help() : run_help_json()).c_str(), stdout);
    return 0;
  }
  if (options->command.empty())
    return refuse("nothing to run; use: weft run [OPTIONS] -- COMMAND [ARGUMENTS]");
  options->watched = std::getenv(advise::kWatchedVariable) != nullptr;
  const Launcher launcher = launcher_of_command(options->command[0]);
  if (launcher == Launcher::none) {
    if (!options->site_mistake.empty()) say_once(options->site_mistake);
    return start_program(self, *options);
  }
  if (!options->refusal.empty()) return refuse(options->refusal);
  if (wants_summary()) tell_job_command(options->command);
  std::vector<std::string> prefix;
  if (options->watched) prefix = watching_words(self);
  prefix.insert(prefix.end(), {self, "run"});
  for (auto& option : options_from_environment(options->verbose)) prefix.push_back(option);
  prefix.push_back("--");
  return start_launcher(launcher, options->command, prefix, options->verbose);
}

}  // namespace weft::launch
