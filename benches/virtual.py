#!/usr/bin/env python3
"""Figures of world `virtual`: boot, memory, cost of a frame, cores, limits, kills.

usage: benches/virtual.py MILLPOND [--boots N]

Needs the kernel of `make setup-virtual`; limits need iperf3. Beside each figure stands what it is
compared with: the figure asked for, or the other way of the same run.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

STAR = ('topology = { kind = "single-switch", hosts = %d, '
        'host-link = { rate = "%s", delay = "2500ns" } }\n')
BOOT = 'duration = "1ms"\n' + STAR + '[[traffic]]\nkind = "permutation"\nsize = "1KB"\n'
FLOW = ('until = "flows-complete"\n' + STAR
        + '[switch]\nbuffer = { kind = "per-port", size = "4500KB" }\nmarking = { kind = "none" }\n'
        + '[transport]\nkind = "cubic"\n[[traffic]]\nkind = "flows"\n'
        + 'rows = [["1ms", 0, 1, 100000000]]\n')
RING = ('until = "flows-complete"\n' + STAR + 'host = { nic.interrupt-throttle = "5us" }\n'
        + '[[traffic]]\nkind = "stride"\noffset = 1\nsize = "5MB"\n')
LASTS = 'duration = "60s"\n' + STAR + '[[traffic]]\nkind = "poisson"\nsizes = "10KB"\nload = 0.1\n'


def scenario(text):
    with open("scenario.toml", "w") as file:
        file.write(text)


def command():
    return [MILLPOND, "run", "scenario.toml", "--world", "virtual", "--out", "o", "--force", "-q"]


def run(*args):
    """Runs the scenario; its summary, and seconds of wall-clock time."""
    began = time.monotonic()
    subprocess.run(command() + list(args), check=True, stderr=subprocess.DEVNULL)
    took = time.monotonic() - began
    with open("o/summary.json") as file:
        return json.load(file), took


def frame_us(summary):
    own = summary["mechanisms"]["virtual"]
    wall = summary["run"]["wall_s"] - own["boot_ms"] / 1e3
    return wall * 1e6 / own["frames_received"]


def kernels():
    """Processes whose working folder is a guest's."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if "-virtual-" in os.readlink(f"/proc/{pid}/cwd"):
                found.append(int(pid))
        except OSError:
            pass
    return found


def pss_mb(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024
    except OSError:
        return 0.0


def start():
    return subprocess.Popen(command(), stderr=subprocess.DEVNULL)


def boots():
    for hosts, asked in ((16, 4), (64, 14)):
        scenario(BOOT % (hosts, "10Gbps"))
        summary, _ = run()
        print(f"boot of {hosts} hosts: {summary['mechanisms']['virtual']['boot_ms'] / 1e3:.2f} s "
              f"(asked: {asked} s at most)")
    scenario(LASTS % (16, "10Gbps"))
    child = start()
    time.sleep(4)
    memory = sum(map(pss_mb, kernels())) / 16
    child.kill()
    child.wait()
    print(f"memory a host under load: {memory:.1f} MB of PSS (asked: 10 MB at most)")


def frames():
    for rate, goodput, cost in (("10Gbps", 94, "27 to 32"), ("40Gbps", 93, "10 to 15"),
                                ("100Gbps", 88, "8 to 11")):
        scenario(FLOW % (2, rate))
        summary, _ = run()
        share = 8e5 / summary["fct_us"]["all"]["p50"] / float(rate[:-4]) * 100
        print(f"one flow at {rate}: {share:.1f} % goodput (asked: {goodput}), "
              f"{frame_us(summary):.1f} us a frame (prototype: {cost})")


def cores():
    scenario(RING % (16, "10Gbps"))
    costs = {}
    for threads in (1, 2, 4):
        summary, _ = run("--threads", str(threads))
        costs[threads] = frame_us(summary)
        print(f"ring of 16, {threads} kernels at a time: {costs[threads]:.1f} us a frame "
              f"({costs[1] / costs[threads]:.2f} x one at a time; prototype 69 us, 1.4 x asked)")
    compare = [MILLPOND, "compare", "scenario.toml", "--worlds", "virtual", "--out", "c", "--force",
               "-q"]
    took = {}
    for threads in ("1", "2"):
        began = time.monotonic()
        subprocess.run(compare + ["--seeds", "4", "--threads", threads], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        took[threads] = time.monotonic() - began
    print(f"four worlds, two at a time on a core each: {took['1'] / took['2']:.2f} x one at a time "
          "(asked: 1.8 x)")


def limits():
    with open(os.path.join(HERE, "../scenarios/virtual/limit.toml")) as file:
        scenario(file.read())
    for rate in (1, 3, 5):
        run("--set", f"program.client.arguments={rate}Gbps")
        with open("o/programs/client.stdout") as file:
            lines = [line.split() for line in file if line.rstrip().endswith("receiver")]
        payload = float(lines[0][lines[0].index("Mbits/sec") - 1])
        print(f"limit of {rate} Gb/s in a guest: {payload / rate / 1e3 * 1500 / 1448:.3f} of it "
              "in IP bytes (asked: 0.99 to 1.01)")


def killed(count):
    scenario(LASTS % (2, "10Gbps"))
    draw = random.Random(1)
    before = len(kernels())
    for _ in range(count):
        child = start()
        time.sleep(draw.uniform(0.02, 0.5))
        child.send_signal(signal.SIGKILL)
        child.wait()
    time.sleep(2)
    folders = [name for name in os.listdir("/run/millpond-worlds") if "-virtual-" in name]
    shared = [name for name in os.listdir("/dev/shm") if "millpond" in name or "vm_file" in name]
    print(f"{count} boots that end by kill -9: {len(kernels()) - before} processes, "
          f"{len(shared)} files of shared memory left; {len(folders)} folders, which the next "
          "world removes")


HERE = os.path.dirname(os.path.abspath(__file__))
arguments = sys.argv[1:]
count = int(arguments[arguments.index("--boots") + 1]) if "--boots" in arguments else 100
MILLPOND = os.path.abspath(arguments[0])
os.chdir(tempfile.mkdtemp(prefix="millpond-bench-virtual-"))
boots()
frames()
cores()
limits()
killed(count)
