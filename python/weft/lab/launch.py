"""Starts a job in the lab with each MPI library, and makes it use the lab's links.

By default MPI libraries find shared memory, or another way around the link."""

from __future__ import annotations

from weft.lab.plan import NETWORK, Plan
from weft.system.mpi_libraries import Implementation

# This is the folder for temporary files of launchers. Each node has its own /dev/shm, which is
# removed with the lab.
COMMON = {"TMPDIR": "/dev/shm"}


def job_environment(mpi: Implementation, plan: Plan) -> dict[str, str]:
    environment = {**COMMON, **mpi.environment()}
    if mpi.name == "mpich":
        environment |= {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}
        environment |= {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0"}
    elif mpi.name == "intelmpi":
        environment |= {
            "I_MPI_FABRICS": "ofi" if plan.per_node == 1 else "shm:ofi",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "eth0",
            "I_MPI_PIN": "off",
        }
    return environment


def job_command(mpi: Implementation, plan: Plan, shell: str, program: list[str]) -> list[str]:
    """Returns the words of an mpiexec with one rank per slot. It uses `shell` in place of ssh."""
    ranks = str(plan.nodes * plan.per_node)
    mpiexec = str(mpi.mpiexec)
    if mpi.name == "openmpi":
        slots = ",".join(f"{host}:{plan.per_node}" for host in plan.hosts)
        command = [mpiexec, *openmpi_settings(mpi, plan, shell), "--host", slots]
        return [*command, "-n", ranks, "--bind-to", "none", "--map-by", "slot", *program]
    hosts = ",".join(plan.hosts)
    command = [mpiexec, "-launcher", "ssh", "-launcher-exec", shell, "-hosts", hosts]
    return [*command, "-ppn", str(plan.per_node), "-n", ranks, *program]


def openmpi_settings(mpi: Implementation, plan: Plan, shell: str) -> list[str]:
    """Returns the options of Open MPI's mpiexec. Versions before 5.0 have other names for the
    launcher and for shared memory."""
    older = mpi.version.startswith(("3.", "4."))
    agent = (
        [("--mca", "plm_rsh_agent", shell)] if older else [("--prtemca", "plm_ssh_agent", shell)]
    )
    inside = "vader" if older else "sm"
    transports = "tcp,self" if plan.per_node == 1 else f"tcp,self,{inside}"
    settings = {"pml": "ob1", "btl": transports, "btl_tcp_if_include": NETWORK}
    words = [*agent, *(("--mca", name, value) for name, value in settings.items())]
    return [word for setting in words for word in setting]
