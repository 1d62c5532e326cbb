"""What eBPF programs at a cgroup cost: an empty one as the baseline, and the kernel's own counts of time and runs.

The empty program is two instructions (return 1), loaded and linked by the bpf system call; it goes when its file
descriptors are closed.
"""

import ctypes
import json
import os
import platform
import struct
from pathlib import Path

from hosts import Missing, run

SYSCALL = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, LINK_CREATE = 5, 28
CGROUP_SKB, CGROUP_INET_EGRESS = 8, 1
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
# mov64 r0, 1; exit: pass.
PASS = struct.pack("<BBhi", 0xB7, 0, 0, 1) + struct.pack("<BBhi", 0x95, 0, 0, 0)
NAME = b"rig_empty"


def _bpf(command, attributes):
    number = SYSCALL.get(platform.machine())
    if number is None:
        raise Missing(f"the bpf system call's number on {platform.machine()} is not known here")
    attributes = attributes.ljust(144, b"\0")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    got = ctypes.CDLL(None, use_errno=True).syscall(number, command, buffer, len(attributes))
    if got < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return got


class EmptyProgram:
    """An empty program at a cgroup's egress, while the `with` lasts."""

    def __init__(self, cgroup):
        self.cgroup = cgroup
        self.open = []

    def __enter__(self):
        code = ctypes.create_string_buffer(PASS, len(PASS))
        licence = ctypes.create_string_buffer(b"Dual MIT/GPL")
        load = struct.pack("<IIQQIIQII", CGROUP_SKB, 2, ctypes.addressof(code), ctypes.addressof(licence), 0, 0, 0, 0, 0)
        load += NAME.ljust(16, b"\0") + struct.pack("<II", 0, CGROUP_INET_EGRESS)
        try:
            program = _bpf(PROG_LOAD, load)
            self.open.append(program)
            folder = os.open(self.cgroup, os.O_RDONLY)
            self.open.append(folder)
            self.open.append(_bpf(LINK_CREATE, struct.pack("<IIII", program, folder, CGROUP_INET_EGRESS, 0)))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for descriptor in reversed(self.open):
            os.close(descriptor)
        self.open.clear()


class Counting:
    """The kernel counts what programs cost, while the `with` lasts."""

    def __enter__(self):
        self.before = STATS.read_text().strip()
        STATS.write_text("1")
        return self

    def __exit__(self, *_):
        STATS.write_text(self.before)


def programs_at(cgroup):
    """The programs attached to a cgroup: {id: (name, run_time_ns, run_cnt)}."""
    attached = json.loads(run("bpftool", "-j", "cgroup", "show", cgroup).strip() or "[]")
    found = {}
    for one in attached:
        shown = json.loads(run("bpftool", "-j", "prog", "show", "id", one["id"]))
        found[one["id"]] = (shown.get("name", ""), shown.get("run_time_ns", 0), shown.get("run_cnt", 0))
    return found


def cost_between(before, after):
    """Nanoseconds a run of each program, between two looks."""
    costs = {}
    for number, (name, time_ns, count) in after.items():
        _, time_before, count_before = before.get(number, (name, 0, 0))
        if count > count_before:
            costs[name or str(number)] = {
                "ns": (time_ns - time_before) / (count - count_before),
                "runs": count - count_before,
            }
    return costs
