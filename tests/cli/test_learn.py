"""Tests what engine auto learns while a program runs: its choice settles, is stored for the next
run, is shown, and changes no result. Ranks are on one node, or on two nodes by names that Hydra is
given."""

import json
import os
import re
import subprocess

import pytest
import standins

from weft.choices import learned
from weft.system import installation, mpi_libraries

pytestmark = pytest.mark.covering

MPICH = mpi_libraries.implementation("mpich")
# The names of blocking call classes begin with this, including that of the barriers between the
# calls.
BLOCKING = "blocking "
SITES = ("allreduce, predefined operator, below 64 KiB", "bcast, below 64 KiB")


@pytest.fixture(scope="session")
def built(compile_once):
    def build(name, *options):
        source = installation.ROOT / f"tests/cli/programs/{name}.c"
        compiler = MPICH.mpiexec.parent / "mpicc"
        found_at = f"-Wl,-rpath,{compiler.parent.parent / 'lib'}"
        return compile_once(name, [compiler, "-O2", "-g", *options, source, found_at])

    return build


@pytest.fixture
def program(built):
    return built("learning")


@pytest.fixture
def run(program, tmp_path):
    """Runs one job, by default on two nodes. Returns the call classes in Weft's summary, and the
    finished process."""

    def job(
        *arguments,
        options=(),
        plans=tmp_path / "plans",
        ranks=2,
        hosts="a:1,b:1",
        blocking=False,
        program=program,
        tool=None,  # library that is preloaded behind Weft
        front=(),  # words in front of each rank's program
    ):
        summary = tmp_path / "summary.json"
        command = [MPICH.mpiexec, "-launcher", "fork", "-hosts", hosts, "-n", ranks]
        command += ["env", f"LD_PRELOAD={tool}"] if tool else []
        command += [installation.weft_command(), "run", f"--summary=json:{summary}"]
        command += ["--plan-cache", plans, *options, "--", *front, program, *arguments]
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, **MPICH.environment()},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said = json.loads(summary.read_text())
        done.won_us = said["won_us"]
        done.calls = {entry["call"]: entry for entry in said["calls"]}
        sites = {site["site"]: site for site in said["learnt"]}
        return {
            words: site for words, site in sites.items() if words.startswith(BLOCKING) == blocking
        }, done

    return job


def test_sites_settle_are_kept_and_known_to_the_next_run(run, tmp_path):
    sites, done = run(200)
    assert set(sites) == set(SITES)
    won_us = 0
    for site in sites.values():
        periods_us = {way["way"]: way["period_us"] for way in site["ways"]}
        if periods_us[site["way"]] != site["ways"][0]["period_us"]:
            assert site["won_us"] != 0  # tests/unit/learner_test.cc checks by how many calls
        won_us += site["won_us"]
    assert done.won_us == pytest.approx(won_us, abs=1)
    for site in sites.values():
        assert site["settled"]
        assert site["calls"] == 200
        assert 0 < site["calls_on_trial"] < 200
        tried = {way["way"] for way in site["ways"] if way["period_us"] > 0}
        assert "native" in tried
        assert site["way"] in tried
    for call in ("MPI_Iallreduce", "MPI_Ibcast"):
        assert done.calls[call]["passed_on"]["engine auto tried native"] > 0
    known = {site.calls: site for site in learned.read(tmp_path / "plans")}
    assert set(known) == set(SITES)
    for words, site in sites.items():
        assert known[words].chosen.words == site["way"]
        assert known[words].program == "learning"
        assert known[words].communicator == "2 ranks on 2 nodes"
        assert known[words].library.startswith("MPICH ")
        assert known[words].why_unused() == ""
        assert known[words].trials == site["calls_on_trial"]
        assert known[words].cost_us == site["trials_cost_us"]
        (period_us,) = [way["period_us"] for way in site["ways"] if way["way"] == site["way"]]
        assert known[words].chosen.period_us == period_us  # the stored time has the precision of ns
    # Each collective is called at one line of the program.
    lines = installation.ROOT.joinpath("tests/cli/programs/learning.c").read_text().splitlines()
    named = learned.named_places(list(known.values()))
    for words, call in zip(SITES, ("MPI_Iallreduce(own", "MPI_Ibcast(")):
        (place,) = known[words].places
        assert named[place].function == "main"
        assert call in lines[named[place].line - 1]
    again, done = run(12)
    for words, call in zip(SITES, ("MPI_Iallreduce", "MPI_Ibcast")):
        assert again[words]["way"] == sites[words]["way"]
        assert again[words]["calls_on_trial"] == 0
        reasons = done.calls[call]["passed_on"]
        assert "engine auto tried native" not in reasons
        learnt = "engine auto has learnt to take native" in reasons
        assert learnt == (again[words]["way"] == "native")


def test_the_summary_says_what_trying_cost_and_whether_that_is_kept(program, tmp_path):
    ends = {
        tmp_path / "plans": ", once: later runs begin",
        "none": "; no file keeps the result",
        tmp_path / "missing/plans": "; no file keeps the result",
    }
    for plans, end in ends.items():
        command = [MPICH.mpiexec, "-launcher", "fork", "-hosts", "a:1,b:1", "-n", 2]
        command += [installation.weft_command(), "run", "--summary", "--plan-cache", plans]
        done = subprocess.run(
            [str(word) for word in [*command, "--", program, 200]],
            env={**os.environ, **MPICH.environment()},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "    trying cost " in done.stderr and end in done.stderr, done.stderr
        found = re.findall(r"in (\d+) of (\d+) rounds(, by chance)?", done.stderr)
        for won, rounds, doubtful in found:
            by_chance = learned.chance_of(int(won), int(rounds))
            assert bool(doubtful) == (by_chance > learned.MOST_BY_CHANCE)


@pytest.mark.parametrize("hosts", ["a:1,b:1", "a:2"])
def test_how_many_calls_are_in_flight_together_is_kept(run, tmp_path, hosts):
    """A batch of calls has one long period, which the next run must compare with one of its own."""
    sites, _ = run(400, 4, hosts=hosts)
    lines = [line for line in (tmp_path / "plans").read_text().splitlines() if "|learnt|" in line]
    assert len(lines) == len(sites) == 2
    assert all(" depth=4" in line for line in lines)
    again, _ = run(12, 4, hosts=hosts)
    for words, site in again.items():
        assert (site["way"], site["calls_on_trial"]) == (sites[words]["way"], 0)


def test_what_is_known_meets_its_rival_once_more(run, tmp_path):
    """If the rival was about as fast, the next run compares both once more."""
    sites, _ = run(200)
    plans = tmp_path / "plans"
    lines = []
    for line in plans.read_text().splitlines():
        words = line.split("\t")
        if "|learnt|" in line:
            tried = dict(word.rsplit("=", 1) for word in words[3].split(","))
            words[3] = ",".join(f"{way}={tried[words[1]]}" for way in tried)
        lines.append("\t".join(words) + "\n")
    plans.write_text("".join(lines))
    again, _ = run(60)
    assert set(again) == set(sites)
    assert all(site["calls_on_trial"] > 0 for site in again.values())


@pytest.mark.parametrize("hosts", ["a:1,b:1", pytest.param("a:2", marks=pytest.mark.long)])
def test_calls_that_take_turns_are_learnt_about_one_by_one(run, built, tmp_path, hosts):
    """The results for each call of the cycle are stored for the next run."""
    in_turn = built("in_turn")
    sites, _ = run(280, program=in_turn, hosts=hosts)
    words = [f"{SITES[0]}, call {number} of 2 in turn" for number in (1, 2)]
    assert list(sites) == words
    for site, least_us in zip(sites.values(), (8_000, 40_000), strict=True):
        assert site["settled"]
        assert site["calls"] == 280
        tried = [way["period_us"] for way in site["ways"] if way["period_us"] > 0]
        assert len(tried) > 1
        assert min(tried) > least_us
    known = {site.calls: site for site in learned.read(tmp_path / "plans")}
    assert set(known) == set(words)
    assert [known[site].trials is None for site in words] == [False, True]
    again, _ = run(12, program=in_turn, hosts=hosts)
    for site in words:
        assert again[site]["way"] == sites[site]["way"] == known[site].chosen.words
        assert again[site]["calls_on_trial"] == 0


def test_what_is_found_on_a_lane_is_kept_apart(run, built, tmp_path):
    """A communicator on shared tags cannot use the library's whole collectives, which may be the
    fastest variant on others."""
    lane = built("learning_on_a_lane")
    run(200)
    sites, _ = run(200, program=lane)
    (site,) = sites.values()
    assert not {"tcc", "assist"} & {way["way"] for way in site["ways"]}
    known = {
        one.program: one for one in learned.read(tmp_path / "plans") if "allreduce" in one.calls
    }
    assert known["learning"].communicator == "2 ranks on 2 nodes"
    assert known["learning_on_a_lane"].communicator == "2 ranks on 2 nodes, on a lane"
    again, _ = run(12, program=lane)
    (found,) = again.values()
    assert (found["way"], found["calls_on_trial"]) == (site["way"], 0)


def test_blocking_calls_over_nodes_are_learnt_about(run, built):
    """The library's allreduce is slowed down, so that Weft can gain on any machine."""
    slow = built("slow_allreduce", "-shared", "-fPIC")
    words = BLOCKING + SITES[0]
    sites, _ = run(200, 1, "blocking", blocking=True, tool=slow)
    assert {BLOCKING + site for site in SITES} <= set(sites)
    learnt = sites[words]
    assert (learnt["settled"], learnt["calls"]) == (True, 200)
    assert learnt["way"].startswith("function")
    tried = {way["way"].split()[0] for way in learnt["ways"] if way["period_us"] > 0}
    assert tried == {"native", "function"}
    again, _ = run(12, 1, "blocking", blocking=True, tool=slow)
    assert (again[words]["way"], again[words]["calls_on_trial"]) == (learnt["way"], 0)
    assert run(100, 1, "blocking", options=["--blocking"], blocking=True)[0] == {}


def test_waiting_for_a_rank_that_comes_late_is_told_apart(run, built):
    late_us = 30_000
    # A slow library makes sure that Weft's variants are tried.
    slow = built("slow_allreduce", "-shared", "-fPIC")
    sites, _ = run(60, 1, "blocking", late_us, blocking=True, tool=slow)

    def least_us(site):
        tried = [way["period_us"] for way in sites[BLOCKING + site]["ways"]]
        return min(us for us in tried if us > 0)

    assert least_us(SITES[0]) < late_us / 2
    assert least_us(SITES[1]) > late_us / 2  # the root arrives late, and waits for no other rank


def test_nothing_is_tried_where_it_is_not_wanted(run, tmp_path):
    assert run(100, options=["--learn", "off"])[0] == {}
    assert not (tmp_path / "plans").exists()
    sites, _ = run(100, options=["--learn", "use"])
    assert all(site["calls_on_trial"] == 0 for site in sites.values())
    sites, _ = run(100, options=["--learning-budget", "0"])
    assert all(site["calls_on_trial"] == 0 for site in sites.values())
    assert run(100, options=["--engine", "thread"])[0] == {}
    # Blocking calls would overtake deferred calls.
    assert run(100, options=["--blocking=0"])[0] == {}


def test_use_takes_what_is_known(run, tmp_path):
    sites, _ = run(200)
    wanted = {words: site["way"] for words, site in sites.items()}
    used, _ = run(300, options=["--learn", "use"])
    assert {words: site["way"] for words, site in used.items()} == wanted
    assert all(site["calls_on_trial"] == 0 for site in used.values())


def taking(plans, engine):
    """Returns the text of the plans with another variant chosen for each call class."""
    lines = [line.split("\t") for line in plans.splitlines(keepends=True)]
    for words in lines:
        if "|learnt|" in words[0]:
            ways = [way for way in words[3].split(",") if way.startswith(engine)]
            words[1] = ways[0].rsplit("=", 1)[0]
    return "".join("\t".join(words) for words in lines)


@pytest.mark.parametrize(("rank_0s", "others"), [("native", "thread"), ("thread", "native")])
def test_what_rank_0_has_read_counts(run, script, tmp_path, rank_0s, others):
    """All ranks use what rank 0 has read, whatever their own files contain. Each node may have its
    own directories."""
    run(200)
    plans, elsewhere = tmp_path / "plans", tmp_path / "elsewhere"
    known = plans.read_text()
    plans.write_text(taking(known, rank_0s))
    elsewhere.write_text(taking(known, others))
    front = script(
        "own_files", f'[ "$PMI_RANK" = 0 ] || export WEFT_PLAN_CACHE={elsewhere}\nexec "$@"'
    )
    sites, done = run(60, options=["--learn", "use"], front=[front])
    assert {site["way"].split()[0] for site in sites.values()} == {rank_0s}
    for name in ("MPI_Iallreduce", "MPI_Ibcast"):
        entry = done.calls[name]
        assert entry["handled"] == (0 if rank_0s == "native" else entry["seen"])


def test_many_in_flight_are_left_to_the_rule(run):
    sites, _ = run(320, 40)
    assert all(site["calls_on_trial"] == 0 for site in sites.values())


# The calls include deferred ones. The variant changes every few calls, and more are in flight than
# a comparison waits for.
@pytest.mark.parametrize(("ranks", "hosts"), [(2, "a:1,b:1"), (4, "a:2,b:2"), (3, "a:2,b:1")])
def test_switching_all_the_time_changes_no_result(run, ranks, hosts):
    sites, done = run(240, 60, options=["--learn", "switch"], ranks=ranks, hosts=hosts)
    assert all(site["calls"] == 240 for site in sites.values())
    assert len(sites) == 2
    for name in ("MPI_Iallreduce", "MPI_Ibcast"):
        entry = done.calls[name]
        assert entry["seen"] == entry["completed"] == 240 * ranks
        assert entry["handled"] < entry["seen"]  # some calls were left to the library
        # The value is a duration, not a time of day.
        assert entry["start_to_wait_us"] < 240 * ranks * 60_000_000


@pytest.mark.parametrize(("ranks", "hosts"), [(2, "a:1,b:1"), (4, "a:2,b:2"), (3, "a:2,b:1")])
def test_blocking_calls_may_switch_all_the_time(run, ranks, hosts):
    options = ["--learn", "switch"]
    sites, done = run(240, 1, "blocking", options=options, ranks=ranks, hosts=hosts, blocking=True)
    assert all(sites[BLOCKING + site]["calls"] == 240 for site in SITES)
    for name in ("MPI_Allreduce", "MPI_Bcast"):
        entry = done.calls[name]
        assert entry["seen"] == 240 * ranks
        assert 0 < entry["handled"] < entry["seen"]


# Rank 0 has more calls in flight than a comparison waits for before the others start any. A
# duplication of the communicator must not wait then, nor overtake deferred calls.
@pytest.mark.parametrize(("ranks", "hosts"), [(2, "a:1,b:1"), (3, "a:2,b:1")])
def test_communicators_may_be_duplicated_while_calls_are_held(run, built, ranks, hosts):
    duplications = built("duplications")
    sites, _ = run(
        40, 10, options=["--learn", "switch"], ranks=ranks, hosts=hosts, program=duplications
    )
    assert sites["allreduce, predefined operator, below 4 KiB"]["calls"] == 40 * 2 * 10


# If a device's driver is loaded, data of deferred calls may have to be copied.
@pytest.mark.parametrize("driver", [False, True], ids=["", "driver"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_calls_with_arrays_are_held(all_right, mpi, driver):
    words = [standins.CUDA] if driver else []
    all_right("deferred_calls", *words, mpi=mpi, ranks=2, options=["--learn", "switch"])


def test_held_calls_that_are_left_to_the_library_are_counted_with_their_reason(all_right, tmp_path):
    file = tmp_path / "summary.json"
    options = ["--learn", "switch", "--algorithm", "gatherv=native", f"--summary=json:{file}"]
    all_right("deferred_calls", ranks=2, options=options)
    calls = {entry["call"]: entry for entry in json.loads(file.read_text())["calls"]}
    gathers = calls["MPI_Igatherv"]
    assert gathers["passed_on"] == {"--algorithm gatherv=native": gathers["seen"]}


# The library's blocking collective runs on a worker thread.
def test_workers_are_tried_for_long_data(run, tmp_path):
    sites, _ = run(200)
    for site in sites.values():
        assert "tcc" in {way["way"] for way in site["ways"] if way["period_us"] > 0}
    plans = tmp_path / "plans"
    known = plans.read_text()
    for site in sites.values():
        known = known.replace(f"\t{site['way']}/", "\ttcc/")
    plans.write_text(known)
    used, _ = run(100, options=["--learn", "use"])
    assert {site["way"] for site in used.values()} == {"tcc"}


# The data are longer than a chunk. Each tried variant is then used for all calls.
@pytest.mark.parametrize(
    ("hosts", "blocking"), [("a:2,b:2", False), ("a:2,b:2", True), ("a:4", False)]
)
def test_other_sizes_of_parts_are_ways(run, built, tmp_path, hosts, blocking):
    longer = built("learning", "-DCOUNT=32768")
    words = [1, "blocking"] if blocking else []
    job = {"hosts": hosts, "blocking": blocking, "ranks": 4, "program": longer}
    sites, _ = run(120, *words, **job)
    name = ("blocking " if blocking else "") + "allreduce, predefined operator, below 512 KiB"
    (other,) = [way["way"] for way in sites[name]["ways"] if " parts " in way["way"]]
    plans = tmp_path / "plans"
    lines = [line.split("\t") for line in plans.read_text().splitlines()]
    for line in lines:
        if line[0].endswith(f"|{name}"):
            tried = [way for way in line[3].split(",") if way.startswith(f"{other}/")]
            line[1] = tried[0].rsplit("=", 1)[0]
    plans.write_text("".join("\t".join(line) + "\n" for line in lines))
    used, _ = run(40, *words, options=["--learn", "use"], **job)
    assert used[name]["way"] == other
    (known,) = [site for site in learned.read(plans) if site.calls == name]
    assert known.chosen.words == other
    run(120, *words, options=["--learn", "switch"], **job)


# Each thread has a core of its own, so that the model's numbers of levels are tried.
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_trees_are_split_elsewhere_too(run, tmp_path):
    placement = f"list:{max(os.sched_getaffinity(0))}"
    sites, _ = run(200, options=["--placement", placement])
    tried = {way["way"] for way in sites[SITES[1]]["ways"] if way["period_us"] > 0}
    assert "thread binomial" in tried
    assert any(way.startswith("thread binomial split ") for way in tried)
    (known,) = [site for site in learned.read(tmp_path / "plans") if site.calls == SITES[1]]
    assert {way.words for way in known.tried} == tried
    # On other placements another variant may be the best.
    assert known.job == f"2 ranks, placement {placement}"


# More calls are in flight than a comparison waits for, so that blocking calls follow deferred
# calls.
@pytest.mark.parametrize(("ranks", "hosts"), [(2, "a:1,b:1"), (4, "a:2,b:2"), (3, "a:2,b:1")])
def test_blocking_calls_may_switch_while_others_are_in_flight(run, ranks, hosts):
    options = ["--learn", "switch"]
    words = BLOCKING + SITES[0]
    sites, done = run(480, 8, "mixed", options=options, ranks=ranks, hosts=hosts, blocking=True)
    assert sites[words]["calls"] == 3 * 480 // 8
    assert 0 < done.calls["MPI_Allreduce"]["handled"] < done.calls["MPI_Allreduce"]["seen"]


# The program requests no thread support, so that its operators must run on its own threads, also in
# deferred calls.
def test_operators_stay_with_their_callers(run):
    sites, done = run(240, 60, "own", options=["--learn", "switch"])
    assert len(sites) == 2  # Weft learns nothing about the call with the user's operator
    assert done.calls["MPI_Iallreduce"]["seen"] == 2 * 240 + 2 * 240 // 60


def test_layouts_are_told_apart(run, tmp_path):
    """The number of nodes alone does not distinguish the communicators."""
    run(200, ranks=3, hosts="a:2,b:1")
    known = learned.read(tmp_path / "plans")
    assert {site.communicator for site in known} == {"3 ranks on 2 nodes, 2+1"}


# There is room for 64 call classes. Those of the program's first phase are replaced by those of the
# second one, in the same call on all ranks.
def test_sites_that_are_no_longer_called_make_room(run, built):
    many = built("many_call_classes")
    sites, _ = run(17400, options=["--learn", "switch"], program=many)
    assert len(sites) >= 64 + 3
    words = ("allgather, below 16 bytes", "alltoall, below 16 bytes")
    for site in (*words, "scan, predefined operator, below 8 bytes"):
        assert 300 < sites[site]["calls"] < 400


def test_on_one_node_what_its_memory_serves_is_learnt_about(run, tmp_path):
    """The program requests no MPI_THREAD_MULTIPLE, and Weft's thread calls no MPI."""
    sites, _ = run(200, hosts="a:2")
    assert set(sites) == set(SITES)
    known = {site.calls: site for site in learned.read(tmp_path / "plans")}
    again, _ = run(12, hosts="a:2")
    for words, site in sites.items():
        assert site["settled"]
        assert site["calls"] == 200
        tried = {way["way"].split()[0] for way in site["ways"] if way["period_us"] > 0}
        assert tried == {"native", "function", "thread"}
        assert known[words].communicator == "2 ranks on one node, level kept"
        assert known[words].chosen.words == site["way"]
        assert again[words]["way"] == site["way"]
        assert again[words]["calls_on_trial"] == 0
    assert run(100, hosts="a:2", options=["--learn", "off"])[0] == {}
    assert run(100, hosts="a:2", options=["--blocking=0"])[0] == {}
    assert run(100, hosts="a:2", options=["--engine", "thread"])[0] == {}
    used, _ = run(100, hosts="a:2", options=["--learn", "use"])
    assert {words: site["way"] for words, site in used.items()} == {
        words: site["way"] for words, site in sites.items()
    }


# More calls are in flight than a result is waited for, and no rank waits for another.
@pytest.mark.parametrize("ranks", [2, 3])
def test_on_one_node_ways_may_switch_all_the_time(run, ranks):
    sites, done = run(240, 60, hosts=f"a:{ranks}", options=["--learn", "switch"], ranks=ranks)
    for words, name in zip(SITES, ("MPI_Iallreduce", "MPI_Ibcast"), strict=True):
        assert sites[words]["calls"] == 240
        entry = done.calls[name]
        assert entry["seen"] == entry["completed"] == 240 * ranks
        assert 0 < entry["handled"] < entry["seen"]


def test_on_one_node_data_with_holes_are_packed_by_their_caller(run, built):
    """Each rank has another datatype. Only the application's thread calls the library, and Weft's
    thread continues while it blocks there."""
    tool = built("main_thread_only", "-shared", "-fPIC")
    options = ["--learn", "switch", "--init-budget=0"]
    calls = 40
    holes = built("holes")
    _, done = run(calls, options=options, ranks=3, hosts="a:3", program=holes, tool=tool)
    assert done.stdout.count("right") == 3
    for name in ("bcast", "gather", "scatter", "allgather", "alltoall"):
        one_by_one = done.calls[f"MPI_I{name}"]
        prepared = done.calls[f"MPI_{name.capitalize()}_init"]
        assert (
            0 < one_by_one["handled"] < one_by_one["seen"] == one_by_one["completed"] == 3 * calls
        )
        assert prepared["handled"] == prepared["seen"] == 3


def test_on_one_node_what_the_rule_leaves_to_a_slow_library_is_taken(tmp_path):
    """By the rule Intel MPI's MPI_Ialltoall is left to the library. A tool below Weft makes it
    slow."""
    mpi = mpi_libraries.implementation("intelmpi")
    if not mpi.mpiexec.exists():
        pytest.skip(f"needs {mpi_libraries.make_target('intelmpi')}")
    programs = installation.ROOT / "tests/cli/programs"
    tool, program = tmp_path / "libslow.so", tmp_path / "exchanges"
    environment = {**os.environ, **mpi.environment()}
    for words in (
        ["-shared", "-fPIC", programs / "slow_ialltoall.c", "-o", tool],
        [programs / "exchanges.c", "-o", program],
    ):
        subprocess.run([mpi.mpiexec.parent / "mpicc", *words], env=environment, check=True)
    summary = tmp_path / "summary.json"
    command = [*mpi.launcher(2), "env", f"LD_PRELOAD={tool}", installation.weft_command(), "run"]
    command += [f"--summary=json:{summary}", "--plan-cache", tmp_path / "plans", "--", program, 200]
    subprocess.run([str(word) for word in command], env=environment, check=True, timeout=120)
    (site,) = json.loads(summary.read_text())["learnt"]
    assert site["ways"][0]["way"] == "native"
    assert site["settled"]
    assert site["way"].split()[1] == "node-flat"


def test_damaged_lines_are_passed_over_and_kept_aside(run, tmp_path):
    run(200)
    plans = tmp_path / "plans"
    good = plans.read_text()
    damaged = good.replace("\t0\t", "\tzero\t") + "weft 0|x|learnt|\tnothing\n"
    plans.write_text(damaged)
    sites, done = run(200)
    assert all(site["settled"] for site in sites.values())
    assert "rank" not in done.stdout
    said = [line for line in done.stderr.splitlines() if "the file of plans" in line]
    assert len(said) == 1
    assert f"{plans} has " in said[0]
    assert f"it is kept as {plans}.aside" in said[0]
    assert (tmp_path / "plans.aside").read_text() == damaged
    assert {site.calls for site in learned.read(plans)} == set(SITES)
    assert "weft 0|" not in plans.read_text()
    assert "the file of plans" not in run(12)[1].stderr


def test_lines_of_other_versions_go(run, tmp_path):
    """Lines of other machines stay, since machines may share the file."""
    plans = tmp_path / "plans"
    run(200)
    version = re.search(r"^weft ([^|]+)", plans.read_text(), re.MULTILINE)[1]
    elsewhere = LINE.replace("weft 1|AMD", f"weft {version}|another machine")
    earlier = LINE + LINE.replace("weft 1|", "weft 1.1|")
    plans.write_text("# weft plans, version 4\n" + elsewhere + earlier)
    said = [line for line in run(200)[1].stderr.splitlines() if "the file of plans" in line]
    assert len(said) == 1
    assert "2 lines of other versions of Weft" in said[0]
    assert elsewhere in plans.read_text()
    assert "weft 1|" not in plans.read_text()
    assert "weft 1.1|" not in plans.read_text()
    assert {site.calls for site in learned.read(plans)} > set(SITES)


def test_an_unknown_word_is_refused(call):
    done = call("run", "--learn", "sometimes", "--", "true")
    assert done.returncode == 2
    assert "on, use, off" in done.stderr


LINE = (
    "weft 1|AMD, MPICH|learnt|app|4 ranks|4 ranks on 2 nodes|alltoall, below 1 MiB\t"
    "thread linear/65536/4/0\t1\tnative/65536/4/0=8000000,thread linear/65536/4/0=6000000\n"
)


def test_a_budget_that_is_no_share_is_refused(call):
    done = call("run", "--learning-budget", "1ms", "--", "true")
    assert done.returncode == 2
    assert "is a share in per cent such as 1, 0.5 or 0" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
