"""Writes the code that is proposed at a call site, in the program's language.

The code starts the collective where it was called, computes, and waits where the result is used."""

from __future__ import annotations

import re

from weft.advise.names import base_name, is_persistent
from weft.advise.sites import MessageWait, Site, Toucher, is_vector

MANY_TESTS, OFTEN_US = 10, 5.0
SOME_OF_IT = 0.05  # share of the wait; if moving it hides less, that is no reason to move it

FRAGMENTS = {
    "c": (
        "MPI_Request request;\n"
        "{call};{same}\n"
        "…  /* what you compute until the result is used */\n"
        "MPI_Wait(&request, MPI_STATUS_IGNORE);\n"
        "/* {until} */"
    ),
    "fortran": (
        "type(MPI_Request) :: request  ! integer with mpif.h\n"
        "{call}{same}\n"
        "…  ! what you compute until the result is used\n"
        "call MPI_Wait(request, MPI_STATUS_IGNORE{error})\n"
        "! {until}; buffers: asynchronous"
    ),
    "python": (
        "request = {call}{same}\n"
        "…  # what you compute until the result is used\n"
        "request.Wait()\n"
        "# {until}"
    ),
}
FRAGMENTS["c++"] = FRAGMENTS["c"]

# A persistent request keeps the addresses of the buffers, so that these must not change.
PERSISTENT = {
    "c": (
        "MPI_Request request;\n"
        "{call};  /* once, when the buffers are there for good */\n"
        "MPI_Start(&request);  /* each time */\n"
        "…\n"
        "MPI_Wait(&request, MPI_STATUS_IGNORE);\n"
        "MPI_Request_free(&request);  /* before they go */"
    ),
    "fortran": (
        "{call}  ! once, when the buffers are there for good\n"
        "call MPI_Start(request{error})  ! each time\n"
        "…\n"
        "call MPI_Wait(request, MPI_STATUS_IGNORE{error})\n"
        "call MPI_Request_free(request{error})  ! before they go"
    ),
    "python": (
        "request = {call}  # once, when the buffers are there for good\n"
        "request.Start()  # each time\n"
        "…\n"
        "request.Wait()\n"
        "request.Free()  # before they go"
    ),
}
PERSISTENT["c++"] = PERSISTENT["c"]

TOGETHER = {
    "c": (
        "MPI_Request requests[2];\n"
        "{first};\n"
        "{second};\n"
        "MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);"
    ),
    "fortran": ("{first}\n{second}\ncall MPI_Waitall(2, requests, MPI_STATUSES_IGNORE{error})"),
    "python": "requests = [{first}]\nrequests.append({second})\nMPI.Request.Waitall(requests)",
}
TOGETHER["c++"] = TOGETHER["c"]

# The fragment keeps the program's loop, since the call's arguments may depend on the loop's
# variables.
LOOP = {
    "c": (
        "MPI_Request requests[n];  /* n: calls in the row */\n"
        "int started = 0;\n"
        "{call};  /* each time, in place of the call */\n"
        "MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);  /* after the last */"
    ),
    "c++": (
        "std::vector<MPI_Request> requests(n);  /* n: calls in the row */\n"
        "int started = 0;\n"
        "{call};  /* each time, in place of the call */\n"
        "MPI_Waitall(started, requests.data(), MPI_STATUSES_IGNORE);  /* after the last */"
    ),
    "fortran": (
        "started = 0  ! before the row\n"
        "started = started + 1  ! each time, in place of the call\n"
        "{call}\n"
        "call MPI_Waitall(started, requests, MPI_STATUSES_IGNORE{error})  ! after the last"
    ),
    "python": (
        "requests = []\n"
        "requests.append({call})  # each time, in place of the call\n"
        "MPI.Request.Waitall(requests)  # after the last"
    ),
}


# mpi4py pickles objects in lower-case methods. The fragment shows the call with arrays instead.
OBJECTS = (
    "send = numpy.array(…)  # the numbers of the object{rows}\n"
    "receive = numpy.{receive}\n"
    "request = comm.{method}(send, receive)  # and root or operation, as before\n"
    "…  # what you compute until the result is used\n"
    "request.Wait()\n"
    "# first use of receive"
)
OBJECT_OF_ROOT = (
    "data = numpy.empty(…)  # on the root: the numbers of the object\n"
    "request = comm.{method}(data)  # and the root, as before\n"
    "…  # what you compute until the result is used\n"
    "request.Wait()\n"
    "# first use of data"
)
# This maps a method to its receive buffer. All other methods receive as much as they send.
RECEIVED = {
    "allgather": "empty((comm.size, *send.shape), send.dtype)",
    "gather": "empty((comm.size, *send.shape), send.dtype)",
    "scatter": "empty(…)  # one row",
    "neighbor_allgather": "empty(…)  # a row for each neighbour",
    "neighbor_alltoall": "empty(…)  # a row for each neighbour",
}
SENT_ROWS = {
    "alltoall": ", a row for each rank",
    "scatter": ", a row for each rank, on the root",
    "neighbor_alltoall": ", a row for each neighbour",
}


def nonblocking(call: str) -> str:
    """Returns the name of the non-blocking form: MPI_Iallreduce for MPI_Allreduce."""
    name = call.removeprefix("MPI_")
    return "MPI_I" + name[0].lower() + name[1:]


def method(name: str) -> str:
    """Returns the name of mpi4py's method for an MPI call."""
    return name.removeprefix("MPI_").removesuffix("_c")


def of_objects(method: str) -> str:
    """Returns a sentence that says why a call of this lower-case method cannot be started and
    waited for."""
    return (
        f"comm.{method} pickles objects: lower-case methods of collectives have no non-blocking"
        " form. Give NumPy arrays to the upper-case one."
    )


def comment(method: str) -> str:
    return "".join(f"# {line}.\n" for line in of_objects(method).rstrip(".").split(". "))


def with_arrays(name: str) -> str:
    """Returns code with the non-blocking upper-case method in place of a lower-case one."""
    return (OBJECT_OF_ROOT if name == "bcast" else OBJECTS).format(
        rows=SENT_ROWS.get(name, ""),
        receive=RECEIVED.get(name, "empty_like(send)"),
        method=f"I{name}",
    )


def error(site: Site) -> str:
    """Returns Fortran's last argument as the program writes it, with a comma before it; an empty
    string if the call has none."""
    if site.arguments is None:
        return ", ierror"
    return f", {site.arguments.error}" if site.arguments.error else ""


def same(site: Site) -> str:
    if site.arguments is not None and not site.callers:
        return ""
    return "  " + COMMENTS[site.language].format("the same arguments as before").rstrip()


def changed_call(site: Site, name: str, *more: str, apart: bool = True) -> str:
    """Returns the call by this name with the site's arguments, if they are known, and with
    additional ones.

    Arguments inside a wrapper function are not those of its callers, so they are left out. They are
    also left out unless `apart`, which says that the arguments may stand beside those of another
    call."""
    hidden = site.object_method or site.callers or not apart
    known = None if hidden else site.arguments
    words = ["…"] if known is None else known.words
    if site.language == "python":
        return f"{known.comm if known else 'comm'}.{method(name)}({', '.join(words)})"
    call = f"{name}({', '.join([*words, *more])}"
    return f"call {call}{error(site)})" if site.language == "fortran" else f"{call})"


def started(site: Site, request: str, fortran_request: str, apart: bool = True) -> str:
    """Returns the call that starts the collective of this site."""
    if site.object_method:
        return changed_call(site, f"I{site.object_method}", apart=apart)
    request = fortran_request if site.language == "fortran" else f"&{request}"
    return changed_call(site, nonblocking(site.call), request, apart=apart)


COMMENTS = {"c": "/* {} */\n", "c++": "/* {} */\n", "fortran": "! {}\n", "python": "# {}\n"}


def earlier(site: Site) -> str:
    """Returns a sentence about how much earlier the call can be started; an empty string if it is
    not to be moved."""
    before = site.before.bounds
    if not site.earlier_us or before is None:
        return ""
    where = f" ({at(site.writers)})" if at(site.writers) else ""
    ago = microseconds(before[0])
    return (
        f"where what it sends is written last{where}, now {ago} before the call; if the last result"
        " is used until then, receive into a second buffer"
    )


# A comment of the source would end the comment of the fragment.
COMMENT = re.compile(r"/\*.*?(\*/|$)")


def at(touchers: list[Toucher]) -> str:
    """Returns the place at which most idle times end or begin; "" if it is not known."""
    if not touchers or 2 * touchers[0].windows < touchers[0].of:
        return ""
    place, source = touchers[0].place, COMMENT.sub("", touchers[0].source).replace("*/", "").strip()
    return f"{place}, {source}" if source else place


def until(site: Site) -> str:
    """Returns before which event the wait must come."""
    if site.is_sent_again:
        again = microseconds(site.unwritten_us or 0.0)
        return f"what it sends is written again, {again} after the call: before its result is used"
    return f"first use of the result: {at(site.users)}" if at(site.users) else FIRST_USE


FIRST_USE = "first use of the result"


def use(site: Site) -> str:
    """Returns a sentence about where the result is first used; "" if it is not known."""
    if not site.users:
        return ""
    places = [
        f"{one.place} (in {one.windows} of {site.watched} watched calls)" for one in site.users
    ]
    said = f"Its result is first used at {', '.join(places)}."
    if site.watched >= site.all_calls:
        return said
    watched = f"{site.watched} of them were watched"
    return f"{said} The ranks made {site.all_calls} such calls; {watched}."


def fragment(site: Site) -> str:
    if site.object_method:
        text = comment(site.object_method) + with_arrays(site.object_method)
    else:
        call = started(site, "request", "request")
        text = FRAGMENTS[site.language].format(
            call=call, same=same(site), until=until(site), error=error(site)
        )
    first = earlier(site)
    return COMMENTS[site.language].format(first) + text if first else text


def have_one_scope(first: Site, second: Site) -> bool:
    """Returns whether the arguments of both calls may stand side by side: both are in one function,
    and they do not receive into the same buffer."""
    if first.frames[0].function != second.frames[0].function:
        return False
    one, other = first.arguments, second.arguments
    return not (one and other) or one.received_into != other.received_into


def together(first: Site, second: Site) -> str:
    """Returns code that has both calls in flight at once."""
    apart = have_one_scope(first, second)
    text = TOGETHER[first.language].format(
        first=started(first, "requests[0]", "requests(1)", apart),
        second=started(second, "requests[1]", "requests(2)", apart),
        error=error(first),
    )
    objects = {site.object_method for site in (first, second)} - {""}
    return "".join(map(comment, sorted(objects))) + text


def in_a_loop(site: Site) -> str:
    """Returns code that has all calls of the site's loop in flight at once."""
    call = started(site, "requests[started++]", "requests(started)")
    text = LOOP[site.language].format(call=call, error=error(site))
    return comment(site.object_method) + text if site.object_method else text


def planned(site: Site) -> str:
    """Returns code that makes the call persistent; an empty string if that is not proposed."""
    name = persistent(site)
    if not name:
        return ""
    request = "request" if site.language == "fortran" else "&request"
    call = changed_call(site, name, "MPI_INFO_NULL", request)
    return PERSISTENT[site.language].format(call=call, error=error(site))


def split(site: Site) -> str:
    """Returns advice for a wrapper that returns before its result is used; "" if the call is in
    none."""
    if not site.callers:
        return ""
    return (
        f"{site.frames[0].name} has several callers: split it into one function that starts the"
        " call and one that waits, and keep the buffers until then."
    )


def buffers(site: Site) -> str:
    if (site.object_method or base_name(site.call)) == "bcast":
        return "Between start and wait, neither read nor write the buffer."
    return (
        "Between start and wait, do not write the send buffer, and leave the receive buffer alone."
    )


def running(site: Site) -> str:
    """Returns a sentence about how the communication proceeds while the program computes."""
    if site.nodes > 1:
        return (
            "Run it with weft run, so that it gets on meanwhile; best with a core of each node left"
            " free (--placement pack:K)."
        )
    return (
        "All its ranks are on one node: leave a core free, and run it with weft run, so that it"
        " gets on meanwhile."
    )


def tenths(value: float) -> str:
    """Formats a number with one decimal place, or with none if it is whole."""
    return f"{value:.1f}".removesuffix(".0")


def size(value: float) -> str:
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= bytes_:
            return f"{tenths(value / bytes_)} {unit}"
    return f"{value:.0f} B"


def microseconds(value: float) -> str:
    """Formats a time in microseconds with three digits and a fitting unit."""
    scale, unit = next(
        ((s, u) for s, u in ((1e6, "s"), (1e3, "ms")) if value >= 0.9995 * s), (1, "µs")
    )
    number = value / scale
    return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f} {unit}"


def count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def later(site: Site) -> str:
    """Returns advice on whether the wait can come later."""
    hidden, some_us = site.wait_later_us or 0.0, SOME_OF_IT * (site.waited_us or 0)
    left, at_most = site.after.bounds or (0.0, None)
    if at_most is not None and at_most < some_us:
        return "start it earlier, since its result is used at once."
    if hidden < some_us or hidden == 0:
        return (
            "start it earlier, or wait later, right before the result is used or what it sends is"
            " written."
        )
    where = f" ({at(site.users)})" if at(site.users) else ""
    return (
        f"wait later, right before the result is used{where}, which is {microseconds(left)} after"
        f" the wait, or before what it sends is written: up to {microseconds(hidden)} of it can be"
        " hidden each time."
    )


def of_nonblocking(site: Site) -> str:
    """Returns advice for a call that is non-blocking already; "" if there is none."""
    if site.between_us is None or site.waited_us is None:
        return ""
    waited, between = microseconds(site.waited_us), microseconds(site.between_us)
    every_us = site.between_us / site.tests if site.tests else 0
    if site.tests >= MANY_TESTS and every_us < OFTEN_US:
        return (
            f"It is tested {site.tests:.0f} times, every {microseconds(every_us)}: that takes the"
            " time that it should hide. Test every 100 µs, or do not test and run the"
            " program with weft run."
        )
    if site.waited_us < 0.05 * site.between_us:
        return ""
    if site.between_us < site.waited_us * 0.1:
        return f"It is waited for {between} after its start, and then for {waited}: {later(site)}"
    if site.between_us < site.waited_us:
        return (
            f"It is in flight for {between} only, and then waited for {waited}: the window is too"
            f" short; {later(site)}"
        )
    if site.with_weft:
        return (
            f"It is in flight for {between} and then waited for {waited}, although Weft's threads"
            " ran: leave them a core (--placement pack:K), or try another engine."
        )
    if site.tests == 0:
        return (
            f"It is in flight for {between} and then waited for {waited}: it may not have got on"
            " meanwhile, since nobody tested. Run the program with weft run, without a change."
        )
    return (
        f"It is waited for {waited} after {between} and {site.tests:.0f} tests, one every"
        f" {microseconds(every_us)}: that is too seldom. Run the program with weft run, without a"
        " change, or test more often."
    )


# These collectives have arrays of counts, as the vector collectives have.
COUNTED = ("alltoallw", "reduce_scatter", "neighbor_alltoallw")
HALO = {
    "c": (
        "MPI_Irecv(…); MPI_Isend(…);  /* the edges */\n"
        "…  /* compute what needs no neighbour */\n"
        "MPI_Waitall(…);\n"
        "…  /* compute the rest */"
    ),
    "fortran": (
        "call MPI_Irecv(…); call MPI_Isend(…)  ! the edges\n"
        "…  ! compute what needs no neighbour\n"
        "call MPI_Waitall(…)\n"
        "…  ! compute the rest"
    ),
    "python": (
        "requests = [comm.Irecv(…), comm.Isend(…)]  # the edges\n"
        "…  # compute what needs no neighbour\n"
        "MPI.Request.Waitall(requests)\n"
        "…  # compute the rest"
    ),
}
HALO["c++"] = HALO["c"]
DRIVEN = 128 << 10  # bytes from which Weft's thread progresses a message
# If the time before a wait is a smaller share of the wait, messages have no time to transfer before
# it.
AT_ONCE = 0.1


def of_messages(wait: MessageWait) -> tuple[str, str]:
    """Returns a sentence about a place that waits for messages, such as a halo exchange, and code
    to write."""
    each = tenths(wait.messages / max(1.0, wait.waits))
    messages = f"{each} message" if each == "1" else f"{each} messages"
    what = f"{wait.call} waits for {messages} of {size(wait.bytes)}"
    times = f"{wait.share * 100:.1f} % of the run time, {microseconds(wait.waited_us)} each time"
    if wait.between_us < AT_ONCE * wait.waited_us:
        return (
            f"{what}: {times}, right after they are started"
            f" ({microseconds(wait.between_us)}). Compute meanwhile what needs no neighbour.",
            HALO[wait.language],
        )
    inside = f"{what}: {times}, after {microseconds(wait.between_us)} in which they could travel."
    late = "Either the neighbours come late, or the messages do not get on meanwhile."
    if wait.bytes < DRIVEN:
        return f"{inside} {late} So short ones travel by themselves: look at the balance first.", ""
    return (
        f"{inside} {late} Run it with weft run --engine thread, which brings those of"
        f" {size(DRIVEN)} or more forward (--transfers), or test them while you compute.",
        "",
    )


def persistent(site: Site) -> str:
    """Returns the name of the persistent form. Returns an empty string if that is not proposed: the
    arguments change, the call is rare, or it has arrays of counts, whose elements may change."""
    name = base_name(site.call)
    rare = site.repeated < 1 or site.calls < 10
    if rare or name in ("barrier", *COUNTED) or is_vector(name) or is_persistent(site.call):
        return ""
    if site.object_method:  # mpi4py pickles the object anew in each call
        return ""
    large = "_c" if site.call.endswith("_c") else ""
    return f"MPI_{base_name(site.call).capitalize()}_init{large}"
