"""The lab's first process, inside its namespaces: builds the network, starts jobs, counts bytes.

It is process 1 of a PID namespace. When it ends, for whatever reason, the kernel ends every process
of the lab and removes its namespaces, links and files. It ends when its creator does, by the end of
the socket."""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from weft.lab.plan import LAUNCH_ADDRESS, LAUNCH_HOST, SWITCH, Plan
from weft.system import installation

NEWNS, NEWUTS, NEWIPC, NEWNET = 0x00020000, 0x04000000, 0x08000000, 0x40000000
# This is the folder of the hosts file, and of the remote shell with its table of nodes.
PRIVATE = Path("/dev/shm/weft-lab")
LATENCY = "80ms"
START_SECONDS = 3
# The receiver's queue is long enough never to drop packets. Congestion causes delay there, as on a
# real switch.
RECEIVE_QUEUE = "32mb"

SHELL = """#!/bin/sh
# Stands in for ssh: SHELL [options] HOST COMMAND... runs COMMAND on a node of the lab.
while :; do
  case "$1" in
    -[BbcDEeFIiJLlmOopQRSWw]) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=${1#*@}
shift
read -r pid cores <%(private)s/nodes/"$host" || { echo "weft lab: no node $host" >&2; exit 255; }
exec nsenter --target "$pid" --net --uts --ipc --mount taskset -c "$cores" \\
  sh -c 'cd "$0"; eval "$1"' "$PWD" "$*"
"""

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: str, kind: str | None, bind: bool = False) -> None:
    flags = 4096 if bind else 0
    arguments = (source.encode(), target.encode(), kind.encode() if kind else None, flags, None)
    check(libc.mount(*arguments), f"mount {target}")


def feed(command: list[str], lines: list[str]) -> None:
    done = subprocess.run(command, input="\n".join(lines) + "\n", text=True, capture_output=True)
    if done.returncode != 0:
        raise OSError(f"{command[0]}: {done.stderr.strip().splitlines()[0]}")


def shape(device: str, plan: Plan, queue: str) -> str:
    return f"qdisc add dev {device} root tbf rate {plan.rate} burst {plan.burst} {queue}"


def disable_ipv6() -> None:
    # IPv6 is disabled, since its neighbour discovery would be counted. A kernel without IPv6 has no
    # such file.
    with contextlib.suppress(OSError):
        Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")


def be_node(number: int, plan: Plan, created: int, linked: int) -> None:
    """Runs a node's own process: creates the node's namespaces, and keeps them until the lab
    ends."""
    check(libc.unshare(NEWNS | NEWUTS | NEWIPC | NEWNET), "namespaces of a node")
    socket.sethostname(plan.hosts[number])
    private = os.open(PRIVATE, os.O_PATH)
    mount("weft", "/dev/shm", "tmpfs")
    PRIVATE.mkdir()
    mount(f"/proc/self/fd/{private}", str(PRIVATE), None, bind=True)
    # A new mount of /sys shows this node's interfaces in /sys/class/net.
    with contextlib.suppress(OSError):
        mount("weft", "/sys", "sysfs")
    disable_ipv6()
    os.write(created, b"1")
    os.read(linked, 1)
    address = plan.address(number)
    up = [f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"]
    feed(["ip", "-batch", "-"], up)
    feed(["tc", "-batch", "-"], [shape("eth0", plan, f"latency {LATENCY}")])
    wait_until_running("eth0")
    os.write(created, b"2")
    while True:
        signal.pause()


def wait_until_running(device: str) -> None:
    """Waits until the system reports that the device is up, since MPI libraries ignore it before.
    Asking for its state speeds up the report, which takes up to a second. Raises OSError after a
    time limit."""
    feed(["ip", "-batch", "-"], [f"link show {device}"])
    end = time.monotonic() + START_SECONDS
    state = Path("/sys/class/net", device, "operstate")
    if not state.exists():  # the node has no /sys of its own
        return
    while state.read_text() != "up\n":
        if time.monotonic() > end:
            raise OSError(f"the link of a node is not up after {START_SECONDS} s")
        time.sleep(0.01)


class Network:
    """The nodes, their links, and the byte counters of the links."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.holders: list[int] = []
        self.pipes: list[tuple[int, int]] = []
        # This is the process of Weft's switch, which replaces the bridge if there is a delay.
        self.switch: subprocess.Popen | None = None

    def build(self) -> None:
        for number in range(self.plan.nodes):
            self.start_node(number)
        for created, _ in self.pipes:
            self.expect(created, b"1")
        self.join_nodes()
        queue = f"limit {RECEIVE_QUEUE}"
        feed(
            ["tc", "-batch", "-"],
            [shape(f"v{i}", self.plan, queue) for i in range(self.plan.nodes)],
        )
        for _, linked in self.pipes:
            os.write(linked, b"1")
        for created, _ in self.pipes:
            self.expect(created, b"2")
        self.write_table()

    def join_nodes(self) -> None:
        """Joins the nodes by the kernel's bridge, or by Weft's own switch if all frames are
        delayed."""
        delayed = self.plan.delay_ns > 0
        ports = [f"v{number}" for number in range(self.plan.nodes)]
        lines = [
            f"link add {port} type veth peer name eth0 netns {pid}"
            for port, pid in zip(ports, self.holders)
        ]
        if delayed:
            ports.append("to-lab")
            lines.append("link add lab type veth peer name to-lab")
            # With ARP the kernel would answer by itself on the ports.
            lines += [f"link set {port} arp off up" for port in ports]
        else:
            lines.append("link add lab type bridge")
            lines += [f"link set {port} master lab up" for port in ports]
        lines += [f"addr add {LAUNCH_ADDRESS}/24 dev lab", "link set lo up", "link set lab up"]
        feed(["ip", "-batch", "-"], lines)
        if delayed:
            self.start_switch(ports)

    def start_switch(self, ports: list[str]) -> None:
        command = [str(installation.native_part(SWITCH)), str(self.plan.delay_ns), *ports]
        self.switch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if self.switch.stdout.readline() != "ready\n":
            raise OSError(f"{SWITCH} ended early")

    def start_node(self, number: int) -> None:
        created_read, created_write = os.pipe()
        linked_read, linked_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                be_node(number, self.plan, created_write, linked_read)
            except OSError as error:
                os.write(created_write, str(error.args[-1]).encode())
            finally:
                os._exit(1)
        os.close(created_write)
        os.close(linked_read)
        self.holders.append(pid)
        self.pipes.append((created_read, linked_write))

    @staticmethod
    def expect(pipe: int, word: bytes) -> None:
        answer = os.read(pipe, 4096)
        if answer != word:
            raise OSError(answer.decode() or "a node ended early")

    def write_table(self) -> None:
        (PRIVATE / "nodes").mkdir()
        for number, host in enumerate(self.plan.hosts):
            entry = f"{self.holders[number]} {self.plan.cores[number]}\n"
            (PRIVATE / "nodes" / host).write_text(entry)

    def sent_bytes(self) -> list[int]:
        """Returns the bytes that left each node, which are those received at the bridge's end of
        its link."""
        sent = {}
        for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
            name, _, fields = line.partition(":")
            sent[name.strip()] = int(fields.split()[0])
        return [sent[f"v{i}"] for i in range(self.plan.nodes)]

    def sweep(self) -> None:
        """Kills processes that a job has left, and removes its files in /dev/shm of the nodes."""
        keep = {1, *self.holders}
        if self.switch:
            keep.add(self.switch.pid)
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in keep:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(entry.name), signal.SIGKILL)
        for pid in self.holders:
            clear(Path("/proc", str(pid), "root", "dev/shm"))
        clear(PRIVATE.parent)


def clear(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.name == PRIVATE.name:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                entry.unlink()


def prepare_files(plan: Plan) -> None:
    """Creates the files that only the lab sees: the names of the nodes, and the replacement of
    ssh."""
    mount("weft", "/dev/shm", "tmpfs")
    PRIVATE.mkdir()
    lines = ["127.0.0.1 localhost", f"{LAUNCH_ADDRESS} {LAUNCH_HOST}"]
    lines += [f"{plan.address(i)} {host}" for i, host in enumerate(plan.hosts)]
    hosts = PRIVATE / "hosts"
    hosts.write_text("\n".join(lines) + "\n")
    if not Path("/etc/hosts").exists():
        raise OSError(
            "there is no /etc/hosts over which to mount the nodes' own; make one: touch /etc/hosts"
        )
    mount(str(hosts), "/etc/hosts", None, bind=True)
    shell = PRIVATE / "shell"
    shell.write_text(SHELL % {"private": PRIVATE})
    shell.chmod(0o755)


class Server:
    """Receives orders from the socket, runs one job at a time, and reaps all processes that end."""

    def __init__(self, channel: socket.socket, network: Network) -> None:
        self.channel = channel
        self.network = network
        self.job = 0
        self.before: list[int] = []

    def serve(self) -> None:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        selector = selectors.DefaultSelector()
        selector.register(self.channel, selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is self.channel:
                    if not self.take_order():
                        return
                else:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_read, 4096)
                    self.reap()

    def take_order(self) -> bool:
        room = array.array("i")
        text, ancillary, _, _ = self.channel.recvmsg(1 << 20, socket.CMSG_LEN(3 * room.itemsize))
        if not text:
            return False
        for _, _, data in ancillary:
            room.frombytes(data[: len(data) - len(data) % room.itemsize])
        order = json.loads(text)
        if "signal" in order:
            if self.job:
                os.kill(self.job, order["signal"])
        else:
            self.before = self.network.sent_bytes()
            self.job = start(order["command"], order["environment"], order["directory"], list(room))
            for descriptor in room:
                os.close(descriptor)
        return True

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self.network.switch and pid == self.network.switch.pid:
                    os._exit(1)  # without the switch no frame would arrive any more
                if pid == self.job:
                    self.finish(status)

    def finish(self, status: int) -> None:
        self.job = 0
        after = self.network.sent_bytes()
        self.network.sweep()
        sent = [now - self.before[number] for number, now in enumerate(after)]
        answer = {"status": os.waitstatus_to_exitcode(status), "sent_bytes": sent}
        self.channel.send(json.dumps(answer).encode())


def start(command: list[str], environment: dict, directory: str, descriptors: list[int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.closerange(3, 1024)
        os.chdir(directory)
        os.execvpe(command[0], command, environment)
    except OSError as error:
        os.write(2, f"weft lab: {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    plan = Plan(**json.loads(sys.argv[2]))
    # Ctrl-C reaches the job and the lab's creator directly. This process ends when its creator
    # does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        socket.sethostname(LAUNCH_HOST)
        prepare_files(plan)
        disable_ipv6()
        network = Network(plan)
        network.build()
    except OSError as error:
        channel.send(json.dumps({"error": str(error.args[-1])}).encode())
        return
    channel.send(json.dumps({"ready": True, "shell": str(PRIVATE / "shell")}).encode())
    Server(channel, network).serve()


if __name__ == "__main__":
    main()
