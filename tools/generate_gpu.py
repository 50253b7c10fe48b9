#!/usr/bin/env python3
"""Writes include/weft_gpu_calls.h and src/gpu/generated/ from api/calls.json.

Why: each non-blocking collective of the table has a form that is enqueued in a stream and one that
is prepared; a table cannot forget one.
"""

import functools
import re
import sys

from call_table import (
    NOTICE,
    ROOT,
    base_name,
    bring_up_to_date,
    normalised,
    parameters,
    short,
    wrap,
)

notice = functools.partial(NOTICE.format, script="generate_gpu.py")

HEADER_TEXT = """\
/* weft_gpu_calls.h: part of weft_gpu.h, and included by it. Written by tools/generate_gpu.py.
 *
 * weft_iX_enqueue starts MPI_IX in the stream; the arrays that it is given may be changed when it
 * has returned. On one communicator all ranks enqueue in the same order. While the stream is
 * captured, the call is collective and may wait for the other ranks, since the graph will start the
 * collective as a persistent one.
 *
 * weft_X_init prepares MPI_X_init, collective as that is, for weft_start_enqueue.
 */
#ifndef WEFT_GPU_CALLS_H
#define WEFT_GPU_CALLS_H

/* clang-format off */
#ifdef __cplusplus
extern "C" {
#endif

%s
#ifdef __cplusplus
}
#endif

#endif
"""


def enqueued(call):
    """weft_iallreduce_enqueue: its name and parameters."""
    own = parameters(call).replace("MPI_Request* request", "weft_gpu_stream stream")
    return f"weft_{short(call).lower()}_enqueue({own}, weft_gpu_request* request)"


def prepared(call):
    own = parameters(call).replace("MPI_Request* request", "weft_gpu_request* request")
    return f"weft_{base_name(call).lower()}_init({own})"


def of_arrays(call):
    """C's way to say that a parameter is an array."""
    return [a["name"] for a in call["args"] if re.match(r"const \w+ \*$", a["type"])]


def prototype(text, arrays):
    for name in arrays:
        if not name.endswith("buf"):
            text = re.sub(rf"const (\w+)\* {name}\b", rf"const \1 {name}[]", text)
    return wrap(f"WEFT_GPU_API int {text};", 4)


def header(calls):
    out = []
    for call in calls:
        arrays = of_arrays(call)
        out.append(prototype(enqueued(call), arrays))
        out.append(prototype(prepared(call), arrays) + "\n")
    return HEADER_TEXT % "\n".join(out)


def wrapper(text, call, body):
    lines = [f"WEFT_GPU_API int {text} {{", *normalised(call), body, "}"]
    return "\n".join(wrap(line, 4 if line[0] == "W" else 6) for line in lines)


def interface_cc(calls):
    out = [
        "\n\n".join(
            (
                wrapper(enqueued(call), call, "  return enqueue(call, stream, request);"),
                wrapper(prepared(call), call, "  return prepare(call, request);"),
            )
        )
        for call in calls
    ]
    head = notice(what="The collectives of weft_gpu_calls.h.")
    return (
        head
        + """\
#include "gpu/mpi/enqueue.h"

using namespace weft;
using namespace weft::gpu;
using weft::CallId;

extern "C" {

"""
        + "\n\n".join(out)
        + "\n\n}\n"
    )


# What a call's argument is in a Call.
MEMBERS = {
    "send_buffer": "c.sendbuf",
    "recv_buffer": "c.recvbuf",
    "buffer": "c.recvbuf",
    "send_count": "c.sendcounts.one<int>()",
    "recv_count": "c.recvcounts.one<int>()",
    "count": "c.recvcounts.one<int>()",
    "send_counts": "c.sendcounts.array<int>()",
    "recv_counts": "c.recvcounts.array<int>()",
    "send_datatype": "c.sendtype",
    "recv_datatype": "c.recvtype",
    "datatype": "c.recvtype",
    "op": "c.op",
    "root": "c.root",
    "comm": "c.comm",
    "send_displacements": "c.senddispls.array<{0}>()",
    "recv_displacements": "c.recvdispls.array<{0}>()",
    "send_datatypes": "c.sendtypes",
    "recv_datatypes": "c.recvtypes",
    "request_out": "request",
}


def passed(call):
    def member(given):
        role = given["role"]
        if role == "displacements":
            side = "send" if base_name(call) == "Scatterv" else "recv"
            role = f"{side}_displacements"
        kind = re.sub(r"const |\W", "", given["type"])
        return MEMBERS[role].format(kind)

    return ", ".join(member(a) for a in call["args"])


def calls_cc(calls):
    def case(function, call, arguments):
        made = f"return {function}({arguments});"
        lines = (f"    case Kind::{base_name(call).lower()}:", f"      {made}")
        return "\n".join(wrap(line, 10) for line in lines)

    def init(call):
        arguments = passed(call).replace(", request", ", MPI_INFO_NULL, request")
        return case(f"MPI_{base_name(call)}_init", call, arguments)

    head = notice(what="A Call made with the MPI library; its forms are those with ints.")
    return (
        head
        + """\
#include "gpu/mpi/calls.h"

#include "transport/mpi/call.h"

namespace weft::gpu {

int start_by_mpi(const Call& c, MPI_Request* request) {
  switch (c.kind) {
"""
        + "\n".join(case(call["name"], call, passed(call)) for call in calls)
        + """
  }
  return MPI_ERR_ARG;
}

// Open MPI has them since 5.0, while it calls itself MPI 3.1.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
int prepare_by_mpi(const Call& c, MPI_Request* request) {
  switch (c.kind) {
"""
        + "\n".join(init(call) for call in calls)
        + """
  }
  return MPI_ERR_ARG;
}
#else
int prepare_by_mpi(const Call&, MPI_Request*) {
  return MPI_ERR_UNSUPPORTED_OPERATION;
}
#endif

}  // namespace weft::gpu
"""
    )


def every(calls):
    return [
        call
        for call in calls
        if call["class"] == "nonblocking_collective" and not call["name"].endswith("_c")
    ]


FILES = {
    "include/weft_gpu_calls.h": lambda calls, _: header(every(calls)),
    "src/gpu/generated/interface.cc": lambda calls, _: interface_cc(every(calls)),
    "src/gpu/generated/calls.cc": lambda calls, _: calls_cc(every(calls)),
}

if __name__ == "__main__":
    sys.exit(bring_up_to_date(FILES, ROOT))
