"""Finds statements by which ranks may synchronise without the collective, such as accesses to a
file.

The call may be what makes one rank wait for another before such a statement. The statement must
therefore not run before the call ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.advise.patch.languages import Source, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

FILES = {
    "c": (
        *("fopen", "freopen", "open", "openat", "creat", "mmap", "shm_open", "rename", "remove"),
        *("unlink", "stat", "access", "opendir", "mkdir", "system", "popen", "fork"),
    ),
    "python": (
        *("open", "exists", "is_file", "unlink", "read_text", "write_text", "read_bytes"),
        "write_bytes",
    ),
    "fortran": ("execute_command_line", "system", "rename", "unlink"),
}
FILES["c++"] = FILES["c"]
MODULES = ("os", "shutil", "subprocess", "h5py", "netCDF4")  # modules of Python that use files
OF_NUMPY = (
    *("load", "loadtxt", "genfromtxt", "fromfile", "tofile", "memmap"),
    *("save", "savez", "savetxt"),
)
# These are classes and namespaces of C++ that access files.
STREAMS = ("ifstream", "ofstream", "fstream", "filesystem")
OPENED = ("open_statement", "inquire_statement")  # statements of Fortran that access files
FAR = (
    *("file_", "win_", "put", "get", "rput", "rget", "accumulate", "raccumulate", "fetch_and_op"),
    *("compare_and_swap", "get_accumulate", "comm_spawn", "comm_connect", "comm_accept"),
)
SENDS = ("send", "ssend", "bsend", "rsend", "isend", "issend", "ibsend", "irsend", "sendrecv")
SENDS += ("isendrecv", "sendrecv_replace", "start", "startall")
ANYWHERE = ("any_source", "any_tag", "mpi_probe", "mpi_iprobe", "mpi_mprobe")
RECEIVES = ("recv(", "probe(")  # calls of Python that receive from any rank unless they name one
SHARED = "win_shared_query"


def called_of_mpi(source: Source, call: Node) -> str:
    """Returns the name of an MPI function without MPI_, in lower case; an empty string for other
    functions."""
    name = source.callee(call)
    if source.language == "python":
        head = source.text(call.named_children[0]).lower()
        return name.lower() if "comm" in head or "mpi" in head or "win" in head else ""
    return name.lower().removeprefix("mpi_") if name.lower().startswith("mpi_") else ""


def is_meeting(source: Source, node: Node, takes_any: bool) -> bool:
    """Returns whether ranks may synchronise at this node. `takes_any`: the program receives
    messages from any rank, which may belong to a later phase."""
    if node.type in OPENED:
        return True
    if source.language == "c++" and node.type in ("type_identifier", "namespace_identifier"):
        return source.text(node) in STREAMS
    if node.type not in source.grammar.calls:
        return False
    called = called_of_mpi(source, node)
    if called:
        return called.startswith(FAR[:2]) or called in FAR or (takes_any and called in SENDS)
    return uses_files(source, node)


def uses_files(source: Source, call: Node) -> bool:
    head, name = call.named_children[0], source.callee(call)
    if source.language == "python":
        module = source.text(head).partition(".")[0]
        is_of_numpy = module in ("np", "numpy") and name in OF_NUMPY
        return is_of_numpy or module in MODULES or name in FILES["python"]
    # A method is not the C function of the same name.
    if head.type == "field_expression":
        return name == "open"
    return name in FILES[source.language]


def meets(source: Source, function: Node, takes_any: bool) -> bool:
    return any(is_meeting(source, one, takes_any) for one in descendants(function))
