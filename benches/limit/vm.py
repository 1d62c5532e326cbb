#!/usr/bin/env python3
"""Measures bandwidth limiters in virtual time (world `linux-vm`): Debian's kernel 6.1 in QEMU; instructions are time.

An emulated processor (TCG, no acceleration) takes one nanosecond an instruction (-icount shift=0), and time that nobody
uses is skipped (sleep=off). So a slow or busy host makes a run longer and changes none of its numbers: two runs print
the same console to the byte, which `--check` shows. In the guest, two network namespaces are joined by a veth pair,
with netem, htb, fq, fq_codel, CAKE and DCTCP of the kernel itself, and `millpond limit` with the guest's own BTF.

Each case has a guest of its own, so that no case depends on another; what was measured is kept under target/limit-vm
and not measured again (--fresh does). Limits of this world: one processor at 1 instruction a nanosecond carries about
2 Gb/s, for both ends together, so it is for limits of 1 Gb/s and below.

  vm.py                      the baselines: none, htb, htb+fq_codel; and millpond, if this tree has its `limit`
  vm.py --list               names of the tables of cases; --table NAME runs one; --only TEXT those whose name has it
  vm.py --cases FILE.json    a list of cases of your own (see cases.py); - reads them from standard input
  vm.py --json FILE          write results there as well
  vm.py --check              run the first case twice and compare the consoles
  vm.py --script FILE        run a shell script of your own in the guest; --extra PATH is there as /extra/NAME
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import cases as table

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "target/limit-vm"
KERNEL_NAME = re.compile(r"^linux-image-6\.1\.0-(\d+)-amd64$")
MODULES = ["veth", "sch_netem", "sch_htb", "sch_fq", "sch_cake", "tcp_dctcp", "tcp_bbr", "sch_ingress"]
PROGRAMS = ["dash", "ip", "tc", "nsenter", "mount", "mkdir", "cat", "sleep", "timeout", "uname"]
MARK = "@millpond "
# Seconds of wall time for a guest's second, at most, and for a boot: a guest that hangs is ended.
WALL_PER_SECOND = 120
WALL_FOR_BOOT = 240


class Missing(Exception):
    """Something that this rig needs and the machine lacks."""


def say(text):
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


# --- the kernel -----------------------------------------------------------------------------------------------------


def kernel():
    """Folder of the unpacked kernel package, downloaded if none is here."""
    unpacked = sorted(OUT.glob("linux-image-6.1.0-*-amd64"), key=lambda p: int(p.name.split("-")[3]))
    if unpacked:
        return unpacked[-1]
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Missing("the kernel comes as a Debian package: apt-get and dpkg-deb are needed")
    search = ["apt-cache", "search", "^linux-image-6.1.0-.*-amd64$"]
    found = subprocess.run(search, capture_output=True, text=True, check=False)
    names = [m for line in found.stdout.splitlines() if (m := KERNEL_NAME.match(line.split(" ")[0]))]
    if not names:
        raise Missing("no package linux-image-6.1.0-*-amd64 is known to apt (apt-get update?)")
    name = max(names, key=lambda m: int(m.group(1))).group(0)
    OUT.mkdir(parents=True, exist_ok=True)
    say(f"limit-vm: downloading {name} (about 70 MB; unpacked into {OUT.relative_to(ROOT)}, not installed)")
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        got = subprocess.run(["apt-get", "download", name], cwd=folder, capture_output=True, text=True, check=False)
        packages = list(Path(folder).glob("*.deb"))
        if got.returncode or not packages:
            raise Missing(f"apt-get could not download {name}: {got.stderr.strip()}")
        subprocess.run(["dpkg-deb", "-x", packages[0], Path(folder) / "x"], check=True)
        (Path(folder) / "x").rename(OUT / name)
    return OUT / name


def module_file(root, name):
    """The module's bytes, unpacked."""
    for path in sorted(root.glob(f"lib/modules/*/kernel/**/{name}.ko*")):
        if path.suffix == ".ko":
            return path.read_bytes()
        unpack = {".xz": "xz", ".zst": "zstd", ".gz": "gzip"}[path.suffix]
        return subprocess.run([unpack, "-dc", path], capture_output=True, check=True).stdout
    raise Missing(f"the kernel package has no module {name}")


def modules(root, names):
    """Modules in the order in which they can be inserted: each after those that its .modinfo names."""
    ordered = {}

    def add(name):
        if name in ordered:
            return
        content = module_file(root, name)
        depends = re.search(rb"\0depends=([^\0]*)\0", content)
        for needed in filter(None, (depends.group(1) if depends else b"").decode().split(",")):
            add(needed)
        ordered[name] = content

    for name in names:
        add(name)
    return ordered


# --- the initial RAM disk -------------------------------------------------------------------------------------------


class Archive:
    """A cpio archive in the kernel's "newc" format. Entries are in the order of being added, and carry no time."""

    def __init__(self):
        self.entries = []
        self.paths = set()

    def copy(self):
        """One that is added to without changing this one."""
        other = Archive()
        other.entries, other.paths = list(self.entries), set(self.paths)
        return other

    def folder(self, path):
        """Adds a folder and those above it."""
        path = path.strip("/")
        if path and path not in self.paths:
            self.folder(os.path.dirname(path))
            self._add(path, stat.S_IFDIR | 0o755, b"")

    def file(self, path, content, mode=0o755):
        """Adds a file, unless it is there."""
        path = path.strip("/")
        if path not in self.paths:
            self.folder(os.path.dirname(path))
            self._add(path, stat.S_IFREG | mode, content)

    def program(self, name, path):
        """Adds a program and the libraries that it needs."""
        self.file(f"bin/{name}", stripped(path))
        for library in libraries(path):
            self.file(library, Path(library).read_bytes())

    def console(self):
        """Adds /dev/console, which the first process writes to."""
        self.folder("dev")
        self._add("dev/console", stat.S_IFCHR | 0o600, b"", device=(5, 1))

    def _add(self, path, mode, content, device=(0, 0)):
        self.paths.add(path)
        number = len(self.entries) + 1
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path) + 1, 0]
        header = "070701" + "".join(f"{f:08X}" for f in fields)
        head = header.encode() + path.encode() + b"\0"
        self.entries.append(head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4))

    def bytes(self):
        """The whole archive."""
        end = Archive()
        end._add("TRAILER!!!", 0, b"")
        return b"".join(self.entries + end.entries)


def libraries(program):
    """Shared libraries of a program, by the paths at which it looks for them."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if listed.returncode:  # linked statically
        return []
    return re.findall(r"(/\S+) \(0x", listed.stdout)


def find_program(name, given=None):
    """Path of a program, or None."""
    return given or shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def base_archive(root, rpc):
    """What every guest holds."""
    archive = Archive()
    for path in ("proc", "sys", "run", "tmp", "etc"):
        archive.folder(path)
    archive.console()
    wanted = {name: find_program(name) for name in PROGRAMS} | {"millpond-rpc": rpc}
    absent = [name for name, path in wanted.items() if not path]
    if absent:
        raise Missing(f"not found: {', '.join(absent)} (scripts/setup.sh --limit)")
    for name, path in wanted.items():
        archive.program(name, path)
    for number, (name, content) in enumerate(modules(root, MODULES).items()):
        archive.file(f"modules/{number:02}-{name}.ko", content, 0o644)
    return archive


def stripped(path):
    """A program's bytes without symbols for debugging, where binutils are there: they would fill the guest's memory."""
    if not shutil.which("strip"):
        return Path(path).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        done = subprocess.run(["strip", "-g", "-o", copy, path], capture_output=True, check=False)
        return (Path(path) if done.returncode else copy).read_bytes()


# --- the guest ------------------------------------------------------------------------------------------------------

INIT = r"""#!/bin/dash
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
MARK='@millpond '
fail() { echo "$MARK{\"failed\": \"$1\"}"; leave; }
leave() { sleep 0.1; echo b > /proc/sysrq-trigger; sleep 10; }
millpond-rpc insert /modules/*.ko || fail "modules"
. /case
leave
"""


def guest_script(case):
    """The case as a shell script: namespaces a (sender) and b (receiver), the limiter, the load."""
    set_all = [f"echo {v} > /proc/sys/{k.replace('.', '/')}" for k, v in table.sysctls(case).items()]
    lines = ["ip netns add a", "ip netns add b", "ip link add va netns a type veth peer name vb netns b"]
    for space, device, address in (("a", "va", "10.0.0.1"), ("b", "vb", "10.0.0.2")):
        lines += [
            f"ip -n {space} link set lo up",
            f"ip -n {space} addr add {address}/24 dev {device}",
            f"ip -n {space} link set {device} up",
            f"nsenter --net=/run/netns/{space} dash -c '{'; '.join(set_all)}'",
        ]
    if case["rtt_ms"]:
        lines.append(f"tc -n b qdisc add dev vb root netem delay {case['rtt_ms']}ms limit 100000 || fail netem")
    lines += [f"tc -n a {command} || fail tc" for command in table.tc_commands(case, "va")]
    lines.append("mkdir /sys/fs/cgroup/load")
    if table.uses_millpond(case):
        lines += ["echo 1 > /proc/sys/kernel/bpf_stats_enabled"] if case["counted"] else []
        lines.append(f"cat > /limit.toml <<'TOML'\n{table.limit_toml(case, {'rig': '/sys/fs/cgroup/load'})}TOML")
        lines.append("millpond limit apply /limit.toml || fail 'millpond limit apply'")
        serve = "millpond limit serve &\nsleep 0.1\nkill -0 $! || fail 'millpond limit serve'"
        lines += [serve] if "kick" in case["host"] else []
    rpc, cc = "millpond-rpc", case["cc"]
    ingress = case["direction"] == "ingress"
    joins = "--cgroup /sys/fs/cgroup/load"
    server_cgroup, client_cgroup = (joins, "") if ingress else ("", joins)
    lines += [
        f"nsenter --net=/run/netns/b {rpc} server 10.0.0.2:7000 --once --cc {cc} {server_cgroup} &",
        "sleep 0.1",
        f"OUT=$(nsenter --net=/run/netns/a timeout {case['duration_s'] + case['warm_up_s'] + 30} {rpc} client 10.0.0.2:7000"
        f" --cc {cc} --flows {case['flows']} --duration {case['duration_s']}s --warm-up {case['warm_up_s']}s"
        f" {client_cgroup} --json) || fail client",
        'echo "$MARK$OUT"',
    ]
    if table.uses_millpond(case):
        lines.append('echo "$MARK{\\"show\\": $(millpond limit show --json)}"')
        lines.append('test -x /bin/bpftool && echo "$MARK{\\"programs\\": $(bpftool -j prog show)}"')
    return "\n".join(lines) + "\n"


def qemu_command(boot, initrd):
    """The recipe: one emulated processor, one nanosecond an instruction, no clock of the host's."""
    return [
        "qemu-system-x86_64", "-accel", "tcg", "-icount", "shift=0,sleep=off", "-seed", "7",
        "-rtc", "base=2020-01-01,clock=vm", "-nic", "none", "-m", "1024", "-smp", "1", "-cpu", "max,-rdrand,-rdseed",
        "-display", "none", "-serial", "stdio", "-monitor", "none", "-no-reboot", "-kernel", boot, "-initrd", initrd,
        "-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=off",
    ]  # fmt: skip


class Rig:
    """A kernel and the files that every guest holds."""

    def __init__(self, rpc, millpond):
        if platform.machine() != "x86_64":
            raise Missing("the guest is emulated from x86-64 programs of this machine: x86-64 is needed")
        if not shutil.which("qemu-system-x86_64"):
            raise Missing("qemu-system-x86_64 is not installed (scripts/setup.sh --limit)")
        self.root = kernel()
        self.boot = next(self.root.glob("boot/vmlinuz-*"))
        self.base = base_archive(self.root, rpc)
        # Only in the guests that use them, so that other cases do not change with them.
        self.with_millpond = self.base.copy()
        for name, path in (("millpond", millpond), ("bpftool", find_program("bpftool"))):
            if path:
                self.with_millpond.program(name, path)
        version = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True)
        self.qemu = version.stdout.splitlines()[0]
        self.running = set()
        self.lock = threading.Lock()
        self.recipe = f"{self.qemu} {self.boot.name} {INIT} {qemu_command('', '')}"

    def stop(self):
        """Ends the guests that run."""
        with self.lock:
            for process in self.running:
                process.kill()

    def archive(self, case):
        """What a case's guest holds besides the case."""
        return self.with_millpond if table.uses_millpond(case) else self.base

    def run(self, case):
        """Runs a case in a guest; what it printed, and the wall time."""
        return self.console(self.archive(case), guest_script(case), case["duration_s"] + case["warm_up_s"])

    def console(self, archive, script, seconds, extra=()):
        """Runs a script in a guest, for about that long in it; what it printed, and the wall time."""
        archive = archive.copy()
        for path in map(Path, extra):
            archive.file(f"extra/{path.name}", path.read_bytes())
        archive.file("case", script.encode(), 0o644)
        archive.file("init", INIT.encode())
        begun = time.monotonic()
        limit = WALL_FOR_BOOT + WALL_PER_SECOND * seconds
        with tempfile.NamedTemporaryFile(dir=OUT, suffix=".initrd") as initrd:
            initrd.write(archive.bytes())
            initrd.flush()
            process = subprocess.Popen(
                qemu_command(str(self.boot), initrd.name),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            with self.lock:
                self.running.add(process)
            try:
                printed, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                process.kill()
                printed, _ = process.communicate()
            except BaseException:
                process.kill()
                raise
            finally:
                with self.lock:
                    self.running.discard(process)
        return printed.decode(errors="replace"), time.monotonic() - begun

    def key(self, case):
        """By what a result is found again: everything that it depends on."""
        identity = hashlib.sha256(self.archive(case).bytes())
        identity.update((self.recipe + guest_script(case)).encode())
        return identity.hexdigest()[:24]

    def measure(self, case, fresh):
        """The case's result, from an earlier run if there is one."""
        kept = OUT / "results" / f"{self.key(case)}.json"
        if kept.exists() and not fresh:
            return json.loads(kept.read_text())
        printed, wall = self.run(case)
        result = read_console(printed)
        kernel_name = self.boot.name.removeprefix("vmlinuz-")
        result |= {"case": case, "world": "linux-vm", "kernel": kernel_name, "qemu": self.qemu}
        result["wall_seconds"] = round(wall, 1)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.with_suffix(".console").write_text(printed)
        if not result.get("failed"):
            kept.write_text(json.dumps(result, indent=1) + "\n")
        return result


def read_console(printed):
    """The JSON objects on a console, as one."""
    result, said = {}, ""
    for line in printed.splitlines():
        before, mark, text = line.partition(MARK)
        if mark:
            try:
                result |= json.loads(text)
            except ValueError:
                result["failed"] = f"unreadable: {text[:60]}"
        # What a program said last before it failed tells more than which one it was.
        if "failed" in result:
            result["failed"] += f": {said}" if mark and said else ""
        elif not mark and not before.startswith("["):
            said = before.strip() or said
    if "classes" not in result and "failed" not in result:
        result["failed"] = "the guest ended without a result: " + " ".join(printed.split()[-12:])
    return result


# --- tables of cases ------------------------------------------------------------------------------------------------


def tables(with_millpond):
    """The tables that --table names."""
    flows = table.FLOW_SETS
    both = [flows[0], flows[3]]

    def nrm(label, flow_set, limit=None, **keys):
        """As published: lengths of IP, no bypass; the label tells what is otherwise."""
        name = f"{label} {flow_set.replace(',', '+')}"
        return {"limiter": "millpond", "flows": flow_set, "limit": {"length": "ip"} | (limit or {}), "name": name} | keys

    # The slides' columns: Cubic, and Cubic with the probe timer of 20 ms ("<"), which the kick stands for.
    bare, kick = {"bypass": 0.0}, {"host": {"kick": "20ms"}}
    t1 = [
        scheme
        for cc in ("cubic", "dctcp")
        for f in flows
        for scheme in (
            nrm(f"nrm {cc}", f, bare, cc=cc),
            nrm(f"nrm<20ms {cc}", f, bare, cc=cc, **kick),
            nrm(f"nrm+bypass {cc}", f, cc=cc),
        )
    ]
    t2 = [{"limiter": limiter, "flows": f} for limiter in ("htb", "htb+fq_codel") for f in flows]
    t2 += [nrm("nrm+bypass cubic+ecn", f, cc="cubic", ecn=True) for f in flows]
    far = {"rtt_ms": 10, "duration_s": 5, "warm_up_s": 1}
    t3 = [{"limiter": limiter, "flows": f} | far for limiter in ("htb", "htb+fq") for f in both]
    t3 += [
        nrm(f"nrm+bypass {cc} {qdisc} 10ms", f, cc=cc, qdisc=qdisc, **far)
        for cc, qdisc in (("cubic", "fq"), ("cubic", "fq_codel"), ("dctcp", "fq"))
        for f in both
    ]
    t5 = [nrm("nrm+bypass dctcp ingress", f, cc="dctcp", direction="ingress") for f in flows]
    cost = [nrm(f"nrm+bypass cubic {n + 1} scopes", flows[3], scopes=n, counted=True) for n in (0, 3)]
    # A tenth of the rate, where the processor has room for CAKE, too.
    slow = {"rate": 100_000_000, "flows": flows[3], "duration_s": 10}
    tenth = [{"limiter": limiter} | slow for limiter in ("htb", "htb+fq_codel", "cake", "cake-gso")]
    tenth += [nrm(f"nrm+bypass {cc} 0.1G", flows[3], cc=cc) | slow for cc in ("cubic", "dctcp")]
    edt = [{"limiter": limiter, "flows": f} for limiter in ("fq-edt", "edt") for f in both]
    # A limit that is not reached: what is left of the throughput is what the program's instructions leave.
    wide = {"limiter": "millpond", "rate": 100_000_000_000, "flows": "4x1MB"}
    unlimited = [
        {"limiter": "none", "flows": "4x1MB", "name": "no program 4x1MB"},
        wide | {"name": "100 Gb/s 4x1MB"},
        wide | {"direction": "both", "name": "100 Gb/s both 4x1MB"},
    ]
    base = [{"limiter": "none", "flows": f} for f in both]
    base += [{"limiter": limiter, "flows": f} for limiter in ("htb", "htb+fq_codel") for f in both]
    base += [{"limiter": "htb", "flows": f} | far for f in both]
    if with_millpond:
        base += [nrm(f"nrm+bypass {cc}", f, cc=cc) for cc in ("cubic", "dctcp") for f in both]
    named = {"baseline": base, "t1": t1, "t2": t2, "t3": t3, "t5": t5}
    return named | {"tenth": tenth, "edt": edt, "cost": cost, "unlimited": unlimited}


def chosen_cases(args, with_millpond):
    """The cases that were asked for, complete."""
    if args.cases:
        text = sys.stdin.read() if args.cases == "-" else Path(args.cases).read_text()
        listed = json.loads(text)
    else:
        listed = tables(with_millpond)[args.table]
    longer = {"duration_s": args.duration} if args.duration else {}
    whole = [table.complete(case | longer) for case in listed]
    return [case for case in whole if not args.only or args.only in case["name"]]


def knows_limit(millpond):
    """Whether the millpond program there has the `limit` command."""
    if not Path(millpond).exists():
        return False
    return not subprocess.run([millpond, "limit", "--help"], capture_output=True, check=False).returncode


def check(rig, case):
    """Two runs of a case: their consoles are equal, to the byte."""
    say(f"limit-vm: {case['name']}, twice")
    (one, _), (two, _) = rig.run(case), rig.run(case)
    same = one == two and MARK in one
    print(f"{case['name']}: {len(one)} bytes of console, {'identical' if same else 'DIFFERENT'} in two runs")
    if not same:
        (OUT / "check-1.console").write_text(one)
        (OUT / "check-2.console").write_text(two)
    return same


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default="baseline", help="baseline, t1, t2, t3, t5, tenth, edt, cost or unlimited")
    parser.add_argument("--cases", help="JSON list of cases; - is standard input")
    parser.add_argument("--only", help="only cases whose name has this")
    parser.add_argument("--duration", type=float, help="seconds that each case measures: p99.9 of 1MB at 1 Gb/s needs 90")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument("--json", help="write the results there as well")
    parser.add_argument("--check", action="store_true", help="run the first case twice and compare the consoles")
    parser.add_argument("--script", type=Path, help="run this shell script in a guest and print the console")
    parser.add_argument("--extra", action="append", default=[], help="with --script: a file that the guest finds below /extra")
    parser.add_argument("--fresh", action="store_true", help="measure again what is known")
    parser.add_argument("--jobs", type=int, default=1, help="guests at a time; changes no result")
    parser.add_argument("--rpc", default=str(ROOT / "target/release/millpond-rpc"))
    parser.add_argument("--millpond", default=str(ROOT / "target/release/millpond"))
    return parser.parse_args()


def interrupted(*_):
    """Asked to end: as by Ctrl-C."""
    raise KeyboardInterrupt


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, interrupted)
    millpond = args.millpond if knows_limit(args.millpond) else None
    try:
        chosen = chosen_cases(args, bool(millpond))
        if args.list:
            for name, listed in tables(True).items():
                print(name + "".join(f"\n  {table.complete(case)['name']}" for case in listed))
            return 0
        if not Path(args.rpc).exists():
            raise Missing(f"{args.rpc} is not built (cargo build --release -p millpond-rpc)")
        OUT.mkdir(parents=True, exist_ok=True)
        rig = Rig(args.rpc, millpond)
    except (Missing, table.BadCase, KeyError, ValueError, OSError) as problem:
        say(f"limit-vm: {problem}")
        return 1
    if args.script:
        print(rig.console(rig.with_millpond, args.script.read_text(), args.duration or 10, args.extra)[0], end="")
        return 0
    if args.check:
        return 0 if check(rig, chosen[0]) else 1
    print(f"world linux-vm: kernel {rig.boot.name.removeprefix('vmlinuz-')}, {rig.qemu}, icount shift=0: virtual time")
    print(table.HEADER, flush=True)
    results, failed = [], False

    def measure(case):
        if table.uses_millpond(case) and not millpond:
            return {"case": case, "skipped": "skipped: this tree's millpond has no `limit`"}
        return rig.measure(case, args.fresh)

    with concurrent.futures.ThreadPoolExecutor(max(1, args.jobs)) as pool:
        try:
            for result in pool.map(measure, chosen):
                results.append(result)
                failed |= "failed" in result
                print(table.row(result["case"]["name"], result), flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            rig.stop()
            return 130
    print("\n".join([*table.above(results), table.LEGEND]))
    text = json.dumps({"world": "linux-vm", "results": results}, indent=1) + "\n"
    (OUT / "limit-vm.json").write_text(text)
    if args.json:
        Path(args.json).write_text(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
