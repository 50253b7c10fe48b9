# ReFrame ran this check on one machine with MPICH; no batch system has run it.
# It checks that Weft is in all ranks of a job, and measures a collective without and with it:
#
#   reframe -C SITE.py -c packaging/reframe -r
#
# SITE.py is the configuration of the site, whose environments load Weft and an MPI library. The
# option -S family=openmpi measures programs of Open MPI's ABI.
import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    parameter,
    performance_function,
    run_before,
    sanity_function,
    variable,
)

BYTES = 1048576


@rfm.simple_test
class WeftInAllRanks(rfm.RunOnlyRegressionTest):
    """Checks that the summary counts all ranks, which shows that Weft is in each of them."""

    engine = parameter(["native", "thread", "auto"])
    family = variable(str, value="mpich")
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    num_tasks = 2
    num_tasks_per_node = 1
    executable = "weft"
    time_limit = "5m"

    @run_before("run")
    def say_what_is_measured(self):
        # The measuring programs lie in libexec/weft, beside the folder of the command.
        self.prerun_cmds = ["programs=$(dirname $(dirname $(command -v weft)))/libexec/weft"]
        self.executable_opts = [
            f"run --engine {self.engine} --summary --",
            f"$programs/{self.family}/latency",
            f"--collective allreduce --forms nonblocking --bytes {BYTES}",
        ]

    @sanity_function
    def weft_is_in_all_ranks(self):
        return sn.assert_found(rf"weft: summary of {self.num_tasks} ranks", self.stderr)

    @performance_function("us")
    def allreduce_us(self):
        return sn.extractsingle(rf"^nonblocking {BYTES} \S+ (\S+)", self.stdout, 1, float)
