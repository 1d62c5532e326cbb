"""Two hosts on one machine: network namespaces, a link or a delay line between them, cgroups, and processes in them.

Everything made here has this process's number in its name, or lives in what has, and is taken away again by
`Hosts.close`, whatever happened in between. Nothing of the machine's own network is touched.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"
FAR_SENDER, FAR_RECEIVER = "10.0.1.1", "10.0.1.2"
PORT = 7000
LOAD = Path(__file__).resolve().parent / "load.py"
# Of the load where it is not ordinary, and of the delay line, which stands for a wire, always.
LOAD_PRIORITY, WIRE_PRIORITY = 5, 10


class Missing(Exception):
    """Something that the rig needs and the machine lacks."""


class Failed(Exception):
    """A command that did not do what it should."""


def run(*command, check=True, timeout=60, **options):
    """Runs a command and returns what it printed; Failed, with its words, if it fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=timeout, **options)
    except subprocess.TimeoutExpired as problem:
        raise Failed(f"no end after {timeout} s ({' '.join(words)})") from problem
    if check and done.returncode:
        raise Failed(f"{(done.stderr or done.stdout).strip()} ({' '.join(words)})")
    return done.stdout


def cgroup_mount():
    """Where the cgroup file system of version 2 is: below others on hybrid systems."""
    for line in Path("/proc/mounts").read_text().splitlines():
        fields = line.split()
        if fields[2] == "cgroup2":
            return Path(fields[1])
    raise Missing("no cgroup-v2 file system is mounted")


def real_time(priority, process=0):
    """Lets all threads of a process run before ordinary ones, where the machine allows it."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process or 'self'}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(priority))


class Hosts:
    """A sending and a receiving host."""

    def __init__(self):
        if os.geteuid():
            raise Missing("namespaces and cgroups need root: sudo make bench-limit")
        for program in ("ip", "tc", "nsenter"):
            if not shutil.which(program):
                raise Missing(f"{program} is not installed (scripts/setup.sh --limit)")
        self.name = f"millpond-rig-{os.getpid()}"
        self.spaces = {"a": f"mp{os.getpid()}a", "b": f"mp{os.getpid()}b"}
        self.cgroup = cgroup_mount() / self.name
        # The load's priority: ordinary, or before the machine's other work.
        self.ordinary = True
        # Each host's processes on a processor of their own: for comparisons of what the machine carries at most.
        self.pinned = False
        self.processes = []
        self.delay_line = None
        self.delay_ms = 0
        # What was made so far, each with how it is taken away; in reverse.
        self.undo = []

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _make(self):
        self.cgroup.mkdir()
        self.undo.append(self._remove_cgroups)
        for space in self.spaces.values():
            run("ip", "netns", "add", space)
            self.undo.append(lambda space=space: run("ip", "netns", "del", space, check=False))
        a, b = self.spaces["a"], self.spaces["b"]
        peer = ("type", "veth", "peer", "name", "vb", "netns", b, "mtu", 1500)
        run("ip", "link", "add", "va", "netns", a, "mtu", 1500, *peer)
        for host, device, address in (("a", "va", SENDER), ("b", "vb", RECEIVER)):
            self.ip(host, "link", "set", "lo", "up")
            self.ip(host, "addr", "add", f"{address}/24", "dev", device)
            self.ip(host, "link", "set", device, "up")

    def close(self):
        """Ends every process that was started here and takes away all that was made."""
        for process in reversed(list(self.processes)):
            self.end(process)
        while self.undo:
            self.undo.pop()()

    def _remove_cgroups(self):
        for path in [*self.cgroup.glob("*/"), self.cgroup]:
            for _ in range(20):
                try:
                    path.rmdir()
                    break
                except OSError:  # a process that ended is not reaped yet
                    time.sleep(0.05)

    def bpf_mount(self):
        """A bpf file system of the rig's own."""
        path = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        self.undo.append(path.rmdir)
        run("mount", "-t", "bpf", "bpf", path)
        self.undo.append(lambda: run("umount", path, check=False))
        return path

    def new_cgroup(self, name):
        """A cgroup below the rig's own."""
        path = self.cgroup / name
        path.mkdir(exist_ok=True)
        return path

    def ip(self, host, *words):
        """`ip` in a host."""
        return run("ip", "-n", self.spaces[host], *words)

    def tc(self, host, words):
        """`tc` in a host."""
        return run("tc", "-n", self.spaces[host], *words.split())

    def clear_queues(self):
        """Takes away what `tc` made."""
        for device in ("va",) + (("ta",) if self.delay_line else ()):
            run("tc", "-n", self.spaces["a"], "qdisc", "del", "dev", device, "root", check=False)

    def sysctl(self, host, name, value):
        """Sets a variable of a host's network."""
        self.inside(host, "sh", "-c", f"echo {value} > /proc/sys/{name.replace('.', '/')}")

    def inside(self, host, *command, **options):
        """Runs a command in a host. By nsenter: `ip netns exec` would hide the cgroups."""
        return run("nsenter", f"--net=/run/netns/{self.spaces[host]}", *command, preexec_fn=self._before(host), **options)

    def start(self, host, *command, **options):
        """Starts a process in a host."""
        words = ["nsenter", f"--net=/run/netns/{self.spaces[host]}", *map(str, command)]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, preexec_fn=self._before(host), **options)
        self.processes.append(process)
        return process

    def _before(self, host):
        """What a process of the load does before it becomes the load."""

        def prepare():
            if self.pinned:
                processors = sorted(os.sched_getaffinity(0))
                os.sched_setaffinity(0, {processors[0 if host == "a" else -1]})
            if not self.ordinary:
                real_time(LOAD_PRIORITY)

        return prepare

    def end(self, process):
        """Ends one process that was started here."""
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self.processes:
            self.processes.remove(process)

    def far(self, rtt_ms):
        """Joins the hosts by a delay line as well, or by one with another delay; the sender's device is `ta`."""
        if self.delay_line and self.delay_ms == rtt_ms:
            return
        self.near()
        if not Path("/dev/net/tun").exists():
            raise Missing("no /dev/net/tun: no delay line")
        line = self.start(
            "a", LOAD, "delay", "--left", "ta", "--right", "tb", "--delay", f"{rtt_ms * 500}us",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if line.stdout.readline().strip() != "ready":
            self.end(line)
            raise Missing(f"no delay line: {line.stderr.read().strip()}")
        real_time(WIRE_PRIORITY, line.pid)
        self.delay_line, self.delay_ms = line, rtt_ms
        self.ip("a", "link", "set", "tb", "netns", self.spaces["b"])
        for host, device, address, peer in (("a", "ta", FAR_SENDER, FAR_RECEIVER), ("b", "tb", FAR_RECEIVER, FAR_SENDER)):
            self.ip(host, "link", "set", device, "mtu", 1500, "up")
            self.ip(host, "addr", "add", address, "peer", f"{peer}/32", "dev", device)

    def near(self):
        """Takes the delay line away; its devices go with it."""
        if self.delay_line:
            self.end(self.delay_line)
            self.delay_line = None

    def device(self, rtt_ms):
        """The sender's device on the way to the receiver."""
        return "ta" if rtt_ms else "va"

    def receiver(self, rtt_ms):
        """The receiver's address and port on that way."""
        return f"{FAR_RECEIVER if rtt_ms else RECEIVER}:{PORT}"
