// Lists the options of the launchers with the number of words that each takes, so that the program
// can be found behind them. Some options are left out on purpose and cause an error: those with an
// optional value (Intel's -tune, -trace), and those that name programs in a file (-configfile,
// --app, --multi-prog).
#include <algorithm>
#include <string_view>

#include "launch/launcher.h"

namespace weft::launch {
namespace {

// Returns whether `word` is one of the words in the list `words`, which are separated by spaces.
bool listed(std::string_view words, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return false;
  const std::string bounded = " " + std::string(word) + " ";
  return words.find(bounded) != std::string_view::npos;
}

constexpr std::string_view kHydraNone =
    " genvnone genvall envnone envall enable-x disable-x verbose v debug info version V h help "
    "print-all-exitcodes disable-auto-cleanup dac enable-auto-cleanup disable-hostname-propagation "
    "enable-hostname-propagation hybrid-hosts pmi-port prepend-rank l profile skip-launch-node "
    "aps mps gdb tv ilp64 nolocal silent-abort print-rank-map prepend-timestamp prot rr noconf "
    "ordered-output ";
constexpr std::string_view kHydraOne =
    " genvlist envlist genvexcl f hostfile machinefile machine machines machinelist host hosts "
    "hostlist hosts-group rankmap wdir gwdir n np launcher launcher-exec bootstrap bootstrap-exec "
    "bootstrap-exec-args rmk topolib binding bind-to map-by membind demux errfile-pattern errfile "
    "outfile-pattern outfile gpus-per-proc gpu-subdevs-per-proc iface localhost nameserver "
    "order-nodes ppn perhost grr prepend-pattern usize output-from memory-alloc-kinds gtool "
    "gtoolfile gdb-args s cpu-bind branch-count path gpath umask ";
// Lists options of Hydra that set an environment variable, written as NAME VALUE (two words) or
// NAME=VALUE (one).
constexpr std::string_view kHydraEnvironment = " genv env ";

constexpr std::string_view kOpenMpiNone =
    " h help v verbose V version p parseable parsable allow-run-as-root enable-recovery "
    "disable-recovery continuous display-comm display-comm-finalize soft xml tag-output "
    "timestamp-output merge-stderr-to-stdout display-devel-map display-topo report-bindings "
    "display-devel-allocation display-map display-allocation nolocal oversubscribe "
    "nooversubscribe use-hwthread-cpus bind-to-core bind-to-socket bynode bycore byslot pernode "
    "debug debug-daemons debug-daemons-file debug-devel d leave-session-attached do-not-launch "
    "do-not-aggregate-help report-child-jobs-separately report-state-on-timeout get-stack-traces "
    "show-progress s preload-binary stop-on-exec stop-in-app forward-signals-none noprefix "
    "nobind ";
constexpr std::string_view kOpenMpiOne =
    " n np c N host H hostfile machinefile default-hostfile map-by rank-by bind-to x wdir wd path "
    "prefix output stream-buffering stdin preload-files pset display arch file xterm timeout "
    "spawn-timeout stop-in-init max-restarts with-ft initial-errhandler output-directory "
    "output-filename cpu-set cpu-list cpus-per-proc cpus-per-rank npernode npersocket ppr amca am "
    "tune rankfile rf output-proctable report-pid report-uri launch-agent max-vm-size personality "
    "ompi-server dvm dvm-uri pmixmca-file forward-signals gpu-support memory-alloc-kinds "
    "runtime-options prtemca-file add-host add-hostfile ";
constexpr std::string_view kOpenMpiTwo =
    " mca gmca omca gomca prtemca gprtemca pmixmca gpmixmca oshmca ";

constexpr std::string_view kSlurmNone =
    " h help usage v verbose V version E preserve-env H hold k l label O overcommit Q quiet s "
    "oversubscribe u unbuffered X disable-status Z no-allocate bcast I immediate K "
    "kill-on-bad-exit "
    "contiguous exact exclusive interactive no-kill nice overlap propagate pty quit-on-interrupt "
    "reboot spread-job test-only use-min-nodes whole x11 compress send-libs ";
constexpr std::string_view kSlurmOne =
    " A account B extra-node-info c cpus-per-task C constraint d dependency D chdir e error F "
    "nodefile G gpus i input J job-name L licenses m distribution M clusters n ntasks N nodes o "
    "output p partition q qos r relative S core-spec t time T threads w nodelist W wait x exclude "
    "acctg-freq bb bbf bcast-exclude begin cluster-constraint comment container "
    "cores-per-socket cpu-bind cpu-freq cpus-per-gpu deadline delay-boot epilog export gpu-bind "
    "gpu-freq gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint jobid "
    "job-id mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi "
    "msg-timeout network ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket "
    "ntasks-per-tres open-mode power prefer priority profile prolog reservation signal "
    "slurmd-debug sockets-per-node switches task-epilog task-prolog thread-spec "
    "threads-per-core time-min tmp treewidth tres-bind tres-per-task wckey ";

std::string_view without_dashes(std::string_view argument) {
  argument.remove_prefix(std::min(argument.find_first_not_of('-'), argument.size()));
  return argument;
}

bool same_name_any_case(std::string_view words, std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return listed(words, name) || listed(words, lower);
}

// Returns the number of words that follow an option of Hydra; -1 if the option is unknown. Hydra
// accepts any number of dashes, small or capital letters, and -option=value.
int hydra_arguments(std::string_view argument, std::string_view next) {
  const std::string_view option = without_dashes(argument);
  const auto equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  const int taken = equals == std::string_view::npos ? 0 : 1;
  if (same_name_any_case(kHydraNone, name)) return 0;
  if (same_name_any_case(kHydraOne, name)) return 1 - taken;
  if (!same_name_any_case(kHydraEnvironment, name)) return -1;
  const std::string_view variable = taken ? option.substr(equals + 1) : next;
  return (variable.find('=') == std::string_view::npos ? 2 : 1) - taken;
}

int openmpi_arguments(std::string_view argument) {
  const std::string_view option = without_dashes(argument);
  const auto equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  const int taken = equals == std::string_view::npos ? 0 : 1;
  if (listed(kOpenMpiNone, name)) return 0;
  if (listed(kOpenMpiOne, name)) return 1 - taken;
  return listed(kOpenMpiTwo, name) ? 2 - taken : -1;
}

// Returns the number of words that follow an option of srun; -1 if the option is unknown. srun
// parses like getopt: -n4, -n 4, --ntasks=4 and --ntasks 4 are equal, and optional values must be
// attached to the option.
int slurm_arguments(std::string_view argument) {
  const bool is_long = argument.substr(0, 2) == "--";
  const std::string_view option = without_dashes(argument);
  const auto equals = option.find('=');
  if (is_long) {
    const std::string_view name = option.substr(0, equals);
    if (listed(kSlurmNone, name)) return 0;
    if (!listed(kSlurmOne, name)) return -1;
    return equals == std::string_view::npos ? 1 : 0;
  }
  const std::string_view letter = option.substr(0, 1);
  if (listed(kSlurmOne, letter)) return option.size() == 1 ? 1 : 0;
  if (letter == "I" || letter == "K") return 0;
  for (std::size_t i = 0; i < option.size(); ++i)
    if (!listed(kSlurmNone, option.substr(i, 1))) return -1;
  return 0;
}

}  // namespace

int arguments_of_option(Launcher launcher, const std::string& argument, const std::string& next) {
  switch (launcher) {
    case Launcher::hydra:
      return hydra_arguments(argument, next);
    case Launcher::openmpi:
      return openmpi_arguments(argument);
    case Launcher::slurm:
      return slurm_arguments(argument);
    default:
      break;
  }
  // If the launcher is of unknown origin, an option counts as known only if Hydra and Open MPI give
  // it the same number of words.
  const int hydra = hydra_arguments(argument, next);
  const int openmpi = openmpi_arguments(argument);
  if (hydra < 0 || openmpi < 0) return std::max(hydra, openmpi);
  return hydra == openmpi ? hydra : -1;
}

}  // namespace weft::launch
