"""The change itself: what to write at a site, in the program's language.

A rank starts the collective where it was called, computes, and waits where the result is used.
"""

from __future__ import annotations

from weft.advise.analysis import Site, base_name

FRAGMENTS = {
    "c": (
        "MPI_Request request;\n"
        "{name}(…, &request);  /* the same arguments as before */\n"
        "…  /* what you compute until the result is used */\n"
        "MPI_Wait(&request, MPI_STATUS_IGNORE);\n"
        "/* first use of the result */"
    ),
    "fortran": (
        "type(MPI_Request) :: request  ! integer with mpif.h\n"
        "call {name}(…, request, ierror)  ! the same arguments as before\n"
        "…  ! what you compute until the result is used\n"
        "call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)\n"
        "! first use of the result; buffers: asynchronous"
    ),
    "python": (
        "request = comm.{method}(…)  # the same arguments as before\n"
        "…  # what you compute until the result is used\n"
        "request.Wait()\n"
        "# first use of the result"
    ),
}
FRAGMENTS["c++"] = FRAGMENTS["c"]


def nonblocking(call: str) -> str:
    """MPI_Allreduce -> MPI_Iallreduce"""
    name = call.removeprefix("MPI_")
    return "MPI_I" + name[0].lower() + name[1:]


def fragment(site: Site) -> str:
    name = nonblocking(site.call)
    method = name.removeprefix("MPI_").removesuffix("_c")
    return FRAGMENTS[site.language].format(name=name, method=method)


def buffers(site: Site) -> str:
    if site.call.startswith("MPI_Bcast"):
        return "Between start and wait, neither read nor write the buffer."
    return (
        "Between start and wait, do not write the send buffer, and leave the receive buffer alone."
    )


def running(site: Site) -> str:
    """How the communication then gets on while the program computes."""
    if site.nodes > 1:
        return (
            "Run it with weft run --engine thread and leave a core of each node free"
            " (--placement pack:K); without a free core, try weft run alone."
        )
    return (
        "All its ranks are on one node: leave a core free, and run it with"
        " weft run --engine thread."
    )


def microseconds(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f} s"
    return f"{value / 1e3:.2f} ms" if value >= 1e3 else f"{value:.1f} µs"


def of_nonblocking(site: Site) -> str:
    """What is to be said of a call that is non-blocking already; "": nothing."""
    if site.between_us is None or site.waited_us is None:
        return ""
    waited, between = microseconds(site.waited_us), microseconds(site.between_us)
    if site.waited_us < 0.05 * site.between_us:
        return ""
    if site.between_us < site.waited_us * 0.1:
        return f"It is waited for {between} after its start, and then for {waited}: wait later."
    if site.tests == 0:
        return (
            f"It is in flight for {between} and then waited for {waited}: it may not have got on"
            " meanwhile. Run the program with weft run, without a change."
        )
    return f"It is waited for {waited} after {between} and {site.tests:.0f} tests: try weft run."


def persistent(site: Site) -> str:
    """The call that would plan this one once; "": its arguments change, or it is a rare one."""
    if site.repeated < 0.9 or site.calls < 10 or base_name(site.call) == "barrier":
        return ""
    return f"MPI_{base_name(site.call).capitalize()}_init"
