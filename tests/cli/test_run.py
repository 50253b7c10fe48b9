"""Tests `weft run` in front of one program: what it refuses, what it sets, and what it leaves
unchanged."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from weft.system import installation

REFUSED = [
    ("--engine", "WEFT_ENGINE", "agents", "native, assist, function, thread, tcc, agent, auto"),
    ("--engine", "WEFT_ENGINE", "Thread", "native, assist, function, thread, tcc, agent, auto"),
    ("--placement", "WEFT_PLACEMENT", "everywhere", "bind, numa, odd-even, pack:K, list:"),
    ("--placement", "WEFT_PLACEMENT", "pack:0", "pack:K"),
    ("--placement", "WEFT_PLACEMENT", "list:1,x", "list:"),
    ("--backoff", "WEFT_BACKOFF", "nap", "yield, spin, sleep:US, quiet"),
    ("--backoff", "WEFT_BACKOFF", "sleep:-1", "sleep:US"),
    ("--split", "WEFT_SPLIT", "-1", "split S (levels of a tree; auto: by the model)"),
    ("--split", "WEFT_SPLIT", "all", "split S (levels of a tree; auto: by the model)"),
    ("--watchdog", "WEFT_WATCHDOG", "soon", "watchdog SECONDS needs a whole number"),
    ("--xpmem", "WEFT_XPMEM", "on", "auto, off or the path of a library"),
    ("--one-copy", "WEFT_ONE_COPY", "perhaps", "auto, on, off"),
    ("--mpi", "WEFT_MPI", "lam", "mpich, intelmpi, openmpi, abi"),
]


@pytest.mark.parametrize(("option", "variable", "value", "choices"), REFUSED)
def test_bad_words_are_refused_before_anything_starts(
    call, tmp_path, option, variable, value, choices
):
    mark = tmp_path / "started"
    for result in (
        call("run", option, value, "--", "touch", mark),
        call("run", f"{option}={value}", "--", "touch", mark),
        call("run", "--", "touch", mark, **{variable: value}),
    ):
        assert result.returncode == 2
        assert choices in result.stderr
        assert not mark.exists()


@pytest.mark.parametrize("value", ["4095", "64k", "-1"])
def test_sizes_of_the_shared_heap_that_cannot_be_are_refused(call, value):
    for result in (
        call("run", f"--shared-heap={value}", "--", "true"),
        call("run", "--", "true", WEFT_SHARED_HEAP=value),
    ):
        assert result.returncode == 2
        assert "needs a whole number of at least 4096" in result.stderr


def test_the_shared_heap_is_loaded_where_asked_only(call):
    loads = {}
    for option in ([], ["--shared-heap"], ["--shared-heap=100000"]):
        lines = call("run", *option, "--", "env").stdout.splitlines()
        (preload,) = (line for line in lines if line.startswith("LD_PRELOAD="))
        loads[tuple(option)] = "libweft-heap.so" in preload
        size = option[0].partition("=")[2] or "65536" if option else None
        assert (f"WEFT_SHARED_HEAP={size}" in lines) == bool(option)
    assert list(loads.values()) == [False, True, True]


def test_option_wins_over_variable(call):
    result = call("run", "--engine", "tcc", "--", "env", WEFT_ENGINE="nonsense")
    assert result.returncode == 0
    assert "WEFT_ENGINE=tcc\n" in result.stdout


def test_options_become_variables(call):
    arguments = "--placement list:0,1 --backoff sleep:20 --summary --trace out.json"
    arguments += " --init-budget 5ms --plan-cache plans"
    result = call("run", *arguments.split(), "--algorithm", "bcast=binomial", "--", "env")
    for line in (
        "WEFT_PLACEMENT=list:0,1",
        "WEFT_BACKOFF=sleep:20",
        "WEFT_SUMMARY=1",
        "WEFT_TRACE=out.json",
        "WEFT_INIT_BUDGET=5ms",
        "WEFT_PLAN_CACHE=plans",
        "WEFT_ALGORITHM_BCAST=binomial",
    ):
        assert line in result.stdout.splitlines()


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--engine"], ["--"], []])
def test_bad_command_lines_are_refused(call, arguments):
    result = call("run", *arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("weft: ")


def test_unknown_collective_of_algorithm_is_refused(call):
    result = call("run", "--algorithm", "dance=ring", "--", "true")
    assert result.returncode == 2
    assert "allreduce" in result.stderr


@pytest.mark.parametrize("name", ["", "rong", "library"])
def test_unknown_algorithm_is_refused_before_anything_starts(call, name):
    result = call("run", "--algorithm", f"allreduce={name}", "--", "true")
    assert result.returncode == 2
    assert f"unknown algorithm '{name}' for allreduce; choose one of " in result.stderr
    assert "or native, which leaves these calls to the MPI library" in result.stderr


def test_preload_comes_first_and_keeps_what_was_there(call, compiled):
    other = compiled("empty", "-shared", "-fPIC", output="other.so")
    result = call("run", "--", compiled("say"), LD_PRELOAD=str(other))
    preload = result.stdout.splitlines()[0].removeprefix("preload=").split(":")
    assert preload == [str(installation.preload_library("mpich")), str(other)]


def test_preload_is_not_repeated(call, weft, compiled):
    result = call("run", "--engine", "tcc", "--", weft, "run", "--", compiled("say"))
    library = installation.preload_library("mpich")
    assert result.stdout == f"preload={library}\nengine=tcc\n"


@pytest.mark.parametrize(
    ("soname", "family"),
    [
        ("libmpi.so.12", "mpich"),
        ("libmpifort.so.12", "mpich"),
        ("libmpi.so.40", "openmpi"),
        ("libmpi_abi.so.1", "abi"),
        ("libmpi_abi.so.0", "abi"),
    ],
)
def test_family_is_read_from_the_program(call, linked_to, soname, family):
    result = call("run", "--verbose", "--", linked_to(soname)[0])
    assert result.returncode == 0, result.stderr
    assert f"preload={installation.preload_library(family)}\n" in result.stdout
    assert soname in result.stderr


HYDRA = {"HYDI_CONTROL_FD": "7", "PMI_RANK": "0"}
OPENMPI = {"OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"}


@pytest.mark.parametrize(
    ("soname", "launcher", "names"),
    [("libmpi.so.40", HYDRA, "Hydra"), ("libmpi.so.12", OPENMPI, "Open MPI")],
)
def test_program_of_another_mpi_than_the_launchers_is_refused(
    call, linked_to, soname, launcher, names
):
    result = call("run", "--", linked_to(soname)[0], **launcher)
    assert result.returncode == 2
    assert soname in result.stderr
    assert names in result.stderr
    assert result.stdout == ""


def test_mpi_option_that_contradicts_the_program_is_refused(call, linked_to):
    result = call("run", "--mpi", "openmpi", "--", linked_to("libmpi.so.12")[0])
    assert result.returncode == 2
    assert "libmpi.so.12" in result.stderr


@pytest.mark.parametrize(
    ("options", "launcher", "family"),
    [
        ([], {}, "mpich"),
        ([], HYDRA, "mpich"),
        ([], OPENMPI, "openmpi"),
        (["--mpi", "abi"], OPENMPI, "abi"),
        (["--mpi", "intelmpi"], {}, "mpich"),
    ],
)
def test_scripts_pass_with_the_library_asked_for_or_the_launchers(
    call, script, options, launcher, family
):
    program = script("app", 'echo "$LD_PRELOAD"')
    result = call("run", *options, "--", program, **launcher)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(installation.preload_library(family))


@pytest.mark.parametrize("how", ["-static", "-static-pie"])
def test_static_program_is_refused(call, compiled, how):
    result = call("run", "--", compiled("say", how, output=f"say{how}"))
    assert result.returncode == 2
    assert "static program" in result.stderr
    assert result.stdout == ""


def test_set_user_id_program_is_refused(call, compiled):
    program = compiled("say", output="say-setuid")
    program.chmod(0o4755)
    result = call("run", "--", program)
    assert result.returncode == 2
    assert "set-user-ID" in result.stderr


@pytest.mark.parametrize("strip", [[], ["-Wl,--strip-debug", "-rdynamic"]], ids=["", "exported"])
def test_program_that_holds_its_mpi_library_is_refused(call, compiled, strip):
    program = compiled("holds_mpi", *strip, output=f"holds-mpi{len(strip)}")
    result = call("run", "--", program)
    assert result.returncode == 2
    assert "has its MPI library linked into it" in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_tool_linked_into_a_program_is_no_library(call, compiled, linked_to):
    """A program may define MPI calls itself, in front of those of a shared library."""
    _, library = linked_to("libmpi.so.12")
    program = compiled("holds_mpi", "-Wl,--no-as-needed", str(library), output="holds-tool")
    result = call("run", "--verbose", "--", program, LD_LIBRARY_PATH=str(library.parent))
    assert "is linked to libmpi.so.12" in result.stderr
    assert result.returncode == 0


# This is the place of the processor's number in an ELF file, and the numbers of two processors.
ELF_MACHINE, AARCH64, X86_64 = 18, 183, 62


def changed(program, target, change) -> str:
    """Writes a copy of a program with changed bytes, and returns its path."""
    data = bytearray(program.read_bytes())
    change(data)
    target.write_bytes(data)
    target.chmod(0o755)
    return str(target)


def test_program_for_another_processor_is_refused(call, compiled, tmp_path):
    def to_another(data):
        data[ELF_MACHINE] = X86_64 if data[ELF_MACHINE] == AARCH64 else AARCH64

    result = call("run", "--", changed(compiled("say"), tmp_path / "foreign", to_another))
    assert result.returncode == 2
    assert "another processor" in result.stderr


def test_musl_program_is_refused(call, compiled, tmp_path):
    loader = "/lib/ld-musl-x86_64.so.1"
    program = compiled("say", f"-Wl,--dynamic-linker={loader}", output="say-musl")
    result = call("run", "--", program)
    assert result.returncode == 2
    assert "musl" in result.stderr


@pytest.mark.skipif(
    os.geteuid() != 0,
    reason="this machine's user is not root",
)
def test_program_with_capabilities_is_refused_but_for_root(weft, environment):
    """The program gets CAP_NET_RAW by the file attribute that setcap writes."""
    program = Path("/tmp") / f"weft-capable-{os.getpid()}"
    shutil.copy("/bin/true", program)
    capability = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
    somebody = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]
    run = [weft, "run", "--", str(program)]
    try:
        os.setxattr(program, "security.capability", capability)
        status = {}
        for who, before in (("root", []), ("somebody", somebody)):
            done = subprocess.run([*before, *run], env=environment, capture_output=True, text=True)
            status[who] = done.returncode
        assert status == {"root": 0, "somebody": 2}
        assert f"setcap -r {program}" in done.stderr
    finally:
        program.unlink()


def test_what_is_missing_and_what_is_there_is_said(weft, environment, linked_to, tmp_path):
    """The installation has a library for one ABI only."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib/weft").mkdir(parents=True)
    command = shutil.copy(Path(weft).resolve(), tmp_path / "bin/weft")
    shutil.copy(installation.preload_library("mpich"), tmp_path / "lib/weft")
    done = subprocess.run(
        [command, "run", "--", linked_to("libmpi.so.40")[0]],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "linked to libmpi.so.40" in done.stderr
    assert "which has those for: mpich;" in done.stderr
    assert "make mpis" in done.stderr
    assert done.stderr.count("\n") == 1


NO_SUMMARY = "weft: no summary: "
NOTHING_TO_DO = "weft: nothing to do: "


def test_why_there_is_no_summary(call, compiled):
    program = compiled("say")
    result = call("run", "--summary", "--", program)
    assert result.returncode == 0
    assert result.stderr.startswith(NO_SUMMARY)
    assert f"ldd {program}" in result.stderr
    assert result.stderr.count("\n") == 1
    assert call("run", "--summary", "--", "sh", "-c", "exit 7").returncode == 7


def test_why_there_is_no_summary_is_said_once(mpi, weft, compiled, environment):
    done = subprocess.run(
        [*mpi.launcher(3), weft, "run", "--summary", "--", compiled("say")],
        env={**environment, **mpi.environment()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stderr.count(NO_SUMMARY) == 1


@pytest.mark.parametrize("text", ["/bin/true; /bin/ls /", "/bin/true | /bin/cat; exit 0"])
def test_a_script_may_let_others_call_mpi(call, script, text):
    result = call("run", "--summary", "--", script("app", text))
    assert (result.returncode, result.stderr) == (0, "")


def test_a_program_without_mpi_is_told_that_nothing_was_done(call, compiled, script):
    program = compiled("say")
    result = call("run", "--", program)
    assert (result.returncode, result.stderr.count("\n")) == (0, 1)
    assert result.stderr.startswith(NOTHING_TO_DO) and f"ldd {program}" in result.stderr
    assert call("run", "--", program, WEFT_SUMMARY="0").stderr.startswith(NOTHING_TO_DO)
    assert call("run", "--", script("app", "/bin/true; exit 0")).stderr == ""


def test_status_is_the_programs_own(call):
    assert call("run", "--", "sh", "-c", "exit 7").returncode == 7
    assert call("run", "--", "sh", "-c", "kill -TERM $$").returncode == -15


def test_what_cannot_be_started(call, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("text\n")
    assert call("run", "--", "no-such-program").returncode == 127
    assert call("run", "--", tmp_path / "missing").returncode == 127
    assert call("run", "--", plain).returncode == 126


def test_opens_only_the_site_file_and_the_program_looked_at(weft, environment, compiled):
    command = [compiled("opened"), weft, "run", "--engine", "tcc", "--", compiled("say")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    opened = done.stdout.split("preload=")[0].splitlines()
    assert [name for name in opened if not name.endswith("/etc/weft.conf")] == [
        str(compiled("say"))
    ]
    assert len(opened) == 2


def test_program_without_mpi_runs_as_if_weft_were_not_there(call, environment):
    plain = subprocess.run(["ls", "/"], env=environment, capture_output=True, text=True)
    under = call("run", "--", "ls", "/")
    assert (under.returncode, under.stdout, under.stderr) == (0, plain.stdout, plain.stderr)


def test_help_and_listing(call):
    assert "--placement" in call("run", "--help").stdout
    listing = call("--help").stdout
    for verb in ("run", "lab", "info", "doctor", "demo", "schedule", "plan"):
        assert f" {verb} " in listing


def test_package_is_not_shadowed_by_the_users_directory(weft, environment, tmp_path):
    (tmp_path / "weft").mkdir()
    (tmp_path / "weft" / "__init__.py").write_text("raise SystemExit('shadowed')")
    done = subprocess.run([weft, "--version"], env=environment, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0
