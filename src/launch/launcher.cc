// Recognises launchers and rewrites their command lines. A launcher can start several programs,
// separated by colons (a : b : c); each of them is one segment of the command line.
#include "launch/launcher.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "launch/program.h"

namespace weft::launch {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool lies_beside(const std::string& path, const char* name) {
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  return access((directory + name).c_str(), X_OK) == 0;
}

// Returns which launcher a command called mpiexec or mpirun is. All MPI libraries use these names.
// The name of the file behind symbolic links decides; if that does not tell, the files in the same
// directory do.
Launcher origin_of_mpiexec(const std::string& command) {
  const std::string found = find_in_path(command);
  char real[PATH_MAX];
  if (found.empty() || !realpath(found.c_str(), real)) return Launcher::any;
  const std::string_view name = base_name(real);
  if (contains(name, "hydra") || contains(name, "mpich")) return Launcher::hydra;
  if (contains(name, "openmpi") || contains(name, "prterun") || contains(name, "orterun") ||
      contains(name, "ompirun"))
    return Launcher::openmpi;
  const bool hydra = lies_beside(real, "mpiexec.hydra") || lies_beside(real, "hydra_pmi_proxy");
  const bool openmpi = lies_beside(real, "ompi_info") || lies_beside(real, "prterun");
  if (hydra == openmpi) return Launcher::any;
  return hydra ? Launcher::hydra : Launcher::openmpi;
}

bool is_set(const char* variable) {
  return std::getenv(variable) != nullptr;
}

Error not_in_tables(const std::string& launcher, const std::string& option) {
  return Error{"cannot tell where the program starts: option '" + option + "' of " + launcher +
               " is not known here; put weft in front of the program instead: " + launcher +
               " ... weft run -- ./app"};
}

// Returns the position of the program's name in the segment of the command line from `first` to
// `end`; `end` if the segment has no program. Returns an error for an unknown option.
Result<std::size_t> program_index(Launcher launcher, const std::vector<std::string>& command,
                                  std::size_t first, std::size_t end) {
  std::size_t i = first;
  while (i < end && command[i].size() > 1 && command[i][0] == '-') {
    if (command[i] == "--") return i + 1;
    const std::string next = i + 1 < end ? command[i + 1] : "";
    const int arguments = arguments_of_option(launcher, command[i], next);
    if (arguments < 0) return not_in_tables(command[0], command[i]);
    i += 1 + static_cast<std::size_t>(arguments);
  }
  return i < end ? i : end;
}

}  // namespace

const char* launcher_name(Launcher launcher) {
  constexpr std::array<const char*, 5> names = {"no launcher", "Hydra (MPICH, Intel MPI)",
                                                "Open MPI's launcher", "Slurm", "a launcher"};
  return names[static_cast<std::size_t>(launcher)];
}

Launcher launcher_of_command(const std::string& command) {
  const std::string_view name = base_name(command);
  if (name == "srun") return Launcher::slurm;
  if (name == "mpiexec.hydra" || name == "mpiexec.mpich" || name == "mpirun.mpich")
    return Launcher::hydra;
  if (name == "prterun" || name == "orterun" || name == "mpiexec.openmpi" ||
      name == "mpirun.openmpi")
    return Launcher::openmpi;
  if (name == "mpiexec" || name == "mpirun") return origin_of_mpiexec(command);
  return Launcher::none;
}

Launcher launcher_of_environment() {
  const bool slurm = is_set("SLURM_PROCID");
  const bool openmpi = is_set("OMPI_COMM_WORLD_RANK");
  const bool hydra = is_set("HYDI_CONTROL_FD") || is_set("HYDRA_BSTRAP_PROXY_ID") ||
                     (is_set("PMI_RANK") && !slurm);
  // Both launchers' variables are set if one launcher was started inside a job of the other.
  if (hydra && openmpi) return Launcher::any;
  if (hydra) return Launcher::hydra;
  if (openmpi) return Launcher::openmpi;
  return slurm ? Launcher::slurm : Launcher::none;
}

Result<std::vector<std::string>> insert_before_programs(Launcher launcher,
                                                        const std::vector<std::string>& command,
                                                        const std::vector<std::string>& prefix) {
  std::vector<std::string> rewritten = {command[0]};
  for (std::size_t first = 1; first < command.size();) {
    std::size_t end = first;
    while (end < command.size() && command[end] != ":") ++end;
    auto program = program_index(launcher, command, first, end);
    if (!program) return program.error();
    const auto at = command.begin();
    const auto offset = [](std::size_t index) { return static_cast<std::ptrdiff_t>(index); };
    rewritten.insert(rewritten.end(), at + offset(first), at + offset(*program));
    if (*program < end) rewritten.insert(rewritten.end(), prefix.begin(), prefix.end());
    rewritten.insert(rewritten.end(), at + offset(*program), at + offset(end));
    if (end < command.size()) rewritten.push_back(":");
    first = end + 1;
  }
  return rewritten;
}

}  // namespace weft::launch
