#!/usr/bin/env python3
"""Measures bandwidth limiters on this machine's own kernel (world `live`): two network namespaces, a veth pair, RPCs.

No limit, HTB and `millpond limit` are measured in turn, and that again and again, so that a slow minute of the machine
touches all alike; medians are shown. The machine's other work is in the numbers: what counts is the ratio within one
run, and tails beyond p99 are the machine's as much as the limiter's. load.py makes the load.

  flows      four flow sets at 1 Gb/s, and at 5 Gb/s where the machine carries that
  shares     HTB beside a limit with defaults: congestion controls, 1, 9 and 50 flows, 20 us, 1 and 10 ms, with CPU
  equal      the same CPU where both answer as many short requests: one every 100 ms
  steps      HTB, a limit as published, with a constant pace, and with shares
  stall      CUBIC, with and without ECN, the bounded bypass and the kick, beside HTB
  far        the same with 10 ms of round-trip time, by a delay line between two TUN interfaces
  ingress    the receiver's cgroup is limited, beside HTB at the sender
  cost       nanoseconds a packet of the program beside an empty one
  unlimited  throughput under a program that does not limit
  datagrams  UDP beyond the limit: which errors the sender sees
  many       100 cgroups at 5 Mb/s and 20 ms

Needs root. What is missing is told and left out. Leaves nothing behind, also when it is interrupted.
"""

import argparse
import collections
import contextlib
import functools
import json
import os
import platform
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cases as table
from hosts import LOAD, Failed, Hosts, Missing, run
from program import Counting, EmptyProgram, cost_between, programs_at

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "target/bench"
SECTIONS = ["flows", "shares", "equal", "steps", "stall", "far", "ingress", "cost", "unlimited", "datagrams", "many"]
# Pairs without which nothing is said of a few per cent.
PAIRS_LEAST = 10
# On a busy machine a woken process waits milliseconds for the scheduler; with real-time priority it does not, and the
# delay line's 10 ms are 10 ms. On the veth pair, though, it makes round trips of 10 us, shorter than any rack's, where
# CUBIC's windows do not fit.
DELAYED = ("far", "many")
GBPS = 1_000_000_000
# What `millpond limit` registers with `dctcp = true`.
OWN_DCTCP = "mp_dctcp"


def say(text):
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def available():
    """The congestion controls that can be chosen now."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


class Limiter:
    """`millpond limit`, by its command line, with a bpf file system of the rig's own: limits of this machine are not touched."""

    def __init__(self, program, hosts):
        self.there = False
        self.hosts = hosts
        if program.exists():
            asked = subprocess.run([program, "limit", "--help"], capture_output=True, check=False)
            self.there = asked.returncode == 0
        if self.there:
            self.command = [str(program), "limit", "--bpffs", str(hosts.bpf_mount())]

    @contextlib.contextmanager
    def applied(self, toml, serve=None):
        """
        The limits of a file, while the `with` lasts, with `serve` where that is needed: what starts a process where it should run; gives the time
        of `apply`.
        """
        if not self.there:
            raise Missing("this tree's millpond has no `limit`")
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(toml)
            file.flush()
            begun = time.monotonic()
            server = None
            try:
                run(*self.command, "apply", file.name)
                seconds = time.monotonic() - begun
                if serve:
                    server = serve(*self.command, "serve", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    time.sleep(0.3)
                    if server.poll() is not None:
                        raise Missing("`millpond limit serve` ended at once")
                yield seconds
            finally:
                if server:
                    self.hosts.end(server)
                run(*self.command, "remove", "--all", check=False)


class Rig:
    """The hosts and the limiter, and how one case is run on them."""

    def __init__(self, hosts, limiter, sender):
        self.hosts = hosts
        self.limiter = limiter
        # Of the sending host, where that is another one than the limited.
        self.sender = sender

    def with_congestion(self, case):
        """The case with a congestion control that there is: millpond's own DCTCP where the kernel has none."""
        there = available()
        if case["cc"] == "dctcp" and "dctcp" not in there and table.uses_millpond(case):
            return case | {"cc": OWN_DCTCP, "host": case["host"] | {"dctcp": True}}
        if case["cc"] not in there:
            raise Missing(f"this kernel has no {case['cc']} ({', '.join(there)})")
        return case

    @contextlib.contextmanager
    def limited(self, case, cgroup):
        """The case's limiter, while the `with` lasts."""
        device = self.hosts.device(case["rtt_ms"])
        if case["rtt_ms"]:
            self.hosts.far(case["rtt_ms"])
        try:
            for command in table.tc_commands(case, device):
                self.hosts.tc("a", command)
            if case["notify"]:
                with self.told(table.limit_toml(case, {"rig": cgroup})) as seconds:
                    yield seconds
            elif table.uses_millpond(case):
                serve = functools.partial(self.hosts.start, "a") if "kick" in case["host"] else None
                with self.limiter.applied(table.limit_toml(case, {"rig": cgroup}), serve) as seconds:
                    yield seconds
            else:
                yield 0.0
        finally:
            self.hosts.clear_queues()

    @contextlib.contextmanager
    def told(self, limits):
        """Limits at the receiver, of which the sender's host is told, while the `with` lasts."""
        with tempfile.NamedTemporaryFile("w") as secret:
            secret.write("known to both hosts")
            secret.flush()
            channel = f'[[notify]]\nsecret = "{secret.name}"\npeers = ["10.0.0.0/16"]\n'
            there, here = (functools.partial(self.hosts.start, host) for host in ("a", "b"))
            with self.sender.applied(channel, there), self.limiter.applied(limits + channel, here) as seconds:
                # They follow within a second.
                time.sleep(1.5)
                yield seconds

    def run(self, case, around=None, counted=False):
        """One run of a case, inside of what `around` gives; `counted`, with what the programs at the cgroup cost."""
        case = self.with_congestion(case)
        cgroup = self.hosts.new_cgroup("load")
        before = {"net.ipv4.tcp_ecn": 2} | table.sysctls(case)
        for host in ("a", "b"):
            for name, value in before.items():
                self.hosts.sysctl(host, name, value)
        with self.limited(case, cgroup), around or contextlib.nullcontext():
            if case["cc"] not in available():
                raise Missing(f"neither this kernel nor millpond has {case['cc']}")
            looked = programs_at(cgroup) if counted else {}
            result = self.load(case, [cgroup])
            if counted:
                result["cost"] = cost_between(looked, programs_at(cgroup))
        return result

    def load(self, case, cgroups):
        """The load alone."""
        ingress = case["direction"] == "ingress"
        joins = [word for path in cgroups for word in ("--cgroup", path)]
        to = self.hosts.receiver(case["rtt_ms"])
        before = processor_ms()
        server = self.hosts.start(
            "b", LOAD, "server", to, "--cc", case["cc"], *(joins if ingress else [])
        )
        try:
            printed = self.hosts.inside(
                "a", LOAD, "client", to, "--flows", case["flows"], "--cc", case["cc"],
                "--duration", f"{case['duration_s']}s", "--warm-up", f"{case['warm_up_s']}s", *([] if ingress else joins),
                timeout=case["duration_s"] + case["warm_up_s"] + 30,
            )  # fmt: skip
        finally:
            self.hosts.end(server)
        result = json.loads(printed)
        gigabits = result["mbps"] * (case["duration_s"] + case["warm_up_s"]) / 1e3
        result["cpu_ms_per_gbit"] = (processor_ms() - before) / gigabits if gigabits else None
        return result


def processor_ms():
    """What the load's processes have used that have ended, with the kernel's work in their names."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (used.ru_utime + used.ru_stime)


def median(values):
    """The median of those that are there; none if half of them are missing."""
    there = [v for v in values if v is not None]
    return statistics.median(there) if 2 * len(there) > len(values) else None


def medians(runs):
    """Runs of one case as one: each number's median, except the peak, whose maximum counts."""
    result = {k: median([r[k] for r in runs]) for k in ("mbps", "srtt_us", "retransmissions", "cpu_ms_per_gbit")}
    peaks = [r["max_second_mbps"] for r in runs if r["max_second_mbps"] is not None]
    result["max_second_mbps"] = max(peaks, default=None)
    numbers = ("mbps", "count", "p50_ms", "p99_ms", "p999_ms", "max_ms", "srtt_us", "retransmissions")
    result["classes"] = [
        {k: group[0][k] for k in ("size", "flows")} | {k: median([c[k] for c in group]) for k in numbers}
        for group in zip(*(r["classes"] for r in runs), strict=True)
    ]
    result["ecn"] = all(r["ecn"] for r in runs)
    costs = [r["cost"] for r in runs if r.get("cost")]
    if costs:
        result["cost"] = {n: median([c[n]["ns"] for c in costs if n in c]) for n in costs[0]}
    return result


def interleaved(rig, cases, repetitions, around=None, counted=False):
    """
    Every case, in turn, several times, forwards and backwards alternately, so that what drifts touches all alike; results in the order of the cases.
    What cannot run is skipped once and for all.
    """
    runs = {case["name"]: [] for case in cases}
    left_out = {}
    for number in range(repetitions):
        for case in cases if number % 2 == 0 else reversed(cases):
            name = case["name"]
            if name in left_out:
                continue
            say(f"limit: {number + 1}/{repetitions} {name}")
            try:
                runs[name].append(rig.run(case, around(case) if around else None, counted))
            except Missing as problem:
                left_out[name] = {"skipped": f"skipped: {problem}"}
            except Failed as problem:
                left_out[name] = {"failed": f"failed: {problem}"}
    results = []
    for case in cases:
        name = case["name"]
        result = left_out.get(name) or medians(runs[name]) | {"runs": runs[name]}
        results.append({"name": name, "case": case} | result)
    return results


def show(title, results):
    """Prints a table, and how many cases were left out for which reason."""
    print(f"\n{title}")
    left_out = collections.Counter(r["skipped"] for r in results if "skipped" in r)
    if len(results) > left_out.total():
        print(table.HEADER)
    for result in results:
        if "skipped" not in result:
            print(table.row(result["name"], result))
    for reason, count in left_out.items():
        print(f"{count} cases {reason}")
    for line in table.above(results):
        print(line)
    sys.stdout.flush()


def limiters(rate, **keys):
    """The schemes that are compared, for each flow set."""
    schemes = [
        {"limiter": "none"},
        {"limiter": "htb"},
        {"limiter": "millpond"},
        {"limiter": "millpond", "ecn": True},
        {"limiter": "millpond", "cc": "dctcp"},
    ]
    return [table.complete(s | {"rate": rate, "flows": f} | keys) for f in table.FLOW_SETS for s in schemes]


def section_flows(rig, args):
    """Flow sets at 1 and 5 Gb/s."""
    keys = {"duration_s": args.duration}
    results = interleaved(rig, limiters(GBPS, **keys), args.repetitions)
    show("1 Gb/s, round-trip time of the veth pair", results)
    free = next((r for r in results if r["case"]["limiter"] == "none" and "mbps" in r), None)
    if free and free["mbps"] > 6500:
        fast = interleaved(rig, limiters(5 * GBPS, **keys), args.repetitions)
        show("5 Gb/s, round-trip time of the veth pair", fast)
        return results + fast
    print("5 Gb/s: skipped, this machine carries less than 6.5 Gb/s without a limit")
    return results


def beside(results):
    """A table with what the others lack: all percentiles that are known, the longest, and CPU."""
    print(f"{'':40} {'Mb/s':>5} │ {'10KB p50':>8} {'p99':>6} {'p99.9':>6} {'max':>6} │ {'1MB p50':>7} {'p99':>6} {'max':>6} │ CPU/Gb")
    for result in results:
        if "runs" not in result:
            print(f"{result['name'][:40]:40} {result.get('skipped') or result.get('failed')}"[:100])
            continue
        large = next((c for c in result["classes"] if c["size"] >= 1 << 20), {})
        small = next((c for c in result["classes"] if c["size"] < 1 << 20), {})
        cell = table.cell
        print(
            f"{result['name'][:40]:40} {cell(result['mbps'], 0):>5} │ {cell(small.get('p50_ms'), 2):>8}"
            f" {cell(small.get('p99_ms'), 2):>6} {cell(small.get('p999_ms'), 2):>6} {cell(small.get('max_ms')):>6} │"
            f" {cell(large.get('p50_ms')):>7} {cell(large.get('p99_ms')):>6} {cell(large.get('max_ms')):>6} │"
            f" {cell(result['cpu_ms_per_gbit'], 0):>5}"
        )
    sys.stdout.flush()


# Keys of a limit with defaults: cases are as published.
SHARES = {"profile": "shares"}
MANY = ["1x1MB", "8x1MB,1x10KB", "49x1MB,1x10KB"]
# With one that never pauses.
STREAMS = ["1x100MB", *MANY]


def section_shares(rig, args):
    """HTB beside shares. HTB marks nothing, so where ours has DCTCP, it has NewReno."""
    results = []
    for rtt in (0,) if args.near else (0, 1, 10):
        rig.hosts.ordinary = rtt == 0 or args.priority == "ordinary"
        keys = {"rtt_ms": rtt, "rate": args.rate, "duration_s": args.duration, "warm_up_s": 1.5 if rtt else 0.5}
        keys["sysctl"] = dict(args.sysctl)
        chosen = []
        for cc in args.cc or ("cubic", "reno", "bbr", "dctcp"):
            for flows in MANY:
                peer = "reno" if cc == "dctcp" else cc
                if cc == peer or args.cc:
                    chosen.append(table.complete(keys | {"limiter": "htb", "cc": peer, "flows": flows}))
                chosen.append(table.complete(keys | {"limiter": "millpond", "cc": cc, "flows": flows, "limit": SHARES}))
        part = interleaved(rig, chosen, args.repetitions)
        far = f"{rtt} ms by the delay line" if rtt else "round-trip time of the veth pair"
        print(f"\n{args.rate / 1e9:g} Gb/s, {far}; ms, and CPU ms a gigabit")
        beside(part)
        results += part
    rig.hosts.near()
    return results


def section_equal(rig, args):
    """
    CPU for the same work. A short request is answered some ten times as fast behind shares as behind HTB, so in a closed loop there are ten times as
    many of them in a gigabit. Here there is one every 100 ms, or none.
    """
    results = []
    for rtt in (0,) if args.near else (0, 1, 10):
        rig.hosts.ordinary = rtt == 0 or args.priority == "ordinary"
        keys = {"rtt_ms": rtt, "rate": args.rate, "duration_s": args.duration, "warm_up_s": 1.5 if rtt else 0.5}
        keys["sysctl"] = dict(args.sysctl)
        chosen = [
            table.complete(keys | {"limiter": limiter, "cc": cc, "flows": flows} | limit)
            for cc in args.cc or ("cubic", "reno", "bbr")
            for flows in ("8x1MB", "8x1MB,1x10KB/100ms", "49x1MB,1x10KB/100ms")
            for limiter, limit in (("htb", {}), ("millpond", {"limit": SHARES}))
        ]
        part = interleaved(rig, chosen, args.repetitions)
        far = f"{rtt} ms by the delay line" if rtt else "round-trip time of the veth pair"
        print(f"\n{args.rate / 1e9:g} Gb/s, {far}; as many short requests in both")
        beside(part)
        results += part
    rig.hosts.near()
    return results


def section_steps(rig, args):
    """What stood before shares, beside them."""
    schemes = {
        "htb": {"limiter": "htb"},
        "published": {"limiter": "millpond"},
        "constant pace": {"limiter": "millpond", "limit": {"profile": "published", "pace": True}},
        "shares": {"limiter": "millpond", "limit": SHARES},
    }
    keys = {"duration_s": args.duration}
    named = [table.complete(keys | {"name": f"{name} {f}", "flows": f} | s) for f in MANY for name, s in schemes.items()]
    results = interleaved(rig, named, args.repetitions)
    print("\n1 Gb/s, CUBIC, round-trip time of the veth pair; ms, and CPU ms a gigabit")
    beside(results)
    return results


def section_stall(rig, args):
    """The stall of 200 ms: nothing in flight, the next packet dropped, and only a timer resumes."""
    remedies = {
        "neither": ({"bypass": 0.0}, {}),
        "kick": ({"bypass": 0.0}, {"kick": "20ms"}),
        "bypass": ({}, {}),
        "both": ({}, {"kick": "20ms"}),
    }
    keys = {"rate": args.rate, "duration_s": args.duration}
    chosen = []
    for flows in (table.FLOW_SETS[0], table.FLOW_SETS[3]):
        chosen.append(table.complete(keys | {"limiter": "htb", "flows": flows}))
        for ecn in (False, True):
            for name, (limit, host) in remedies.items():
                case = {"limiter": "millpond", "flows": flows, "limit": limit, "host": host, "ecn": ecn}
                label = f"cubic{'+ecn' if ecn else ''} {flows.replace(',', '+')} {name}"
                chosen.append(table.complete(keys | case | {"name": label}))
    results = interleaved(rig, chosen, args.repetitions)
    print(f"\n{args.rate / 1e9:g} Gb/s, CUBIC: the bounded bypass and the kick of 20 ms")
    beside(results)
    return results


def section_far(rig, args):
    """10 ms."""
    keys = {"duration_s": max(args.duration, 4), "warm_up_s": 1.5, "rtt_ms": 10}
    chosen = [c for c in limiters(GBPS, **keys) if c["flows"] in (table.FLOW_SETS[0], table.FLOW_SETS[3])]
    results = interleaved(rig, chosen, args.repetitions)
    rig.hosts.near()
    show("1 Gb/s, 10 ms by the delay line", results)
    return results


def section_ingress(rig, args):
    """
    The receiver's cgroup, as published and with defaults, beside HTB at the sender: a flow that never pauses, 1, 9 and 50 flows, on the veth
    pair and with 1 and 10 ms by the delay line. With DCTCP also where nothing is ever dropped: on the veth pair nine least windows fill the limit
    several times over, so marks cannot hold them.
    """
    keys = {"duration_s": args.duration, "rate": args.rate, "limiter": "millpond", "direction": "ingress"}
    keys["sysctl"] = dict(args.sysctl)
    htb = {"limiter": "htb", "direction": "egress"}

    def of(cc, flows, rtt):
        """HTB, and the limit as published, with defaults, and with defaults and the side channel."""
        base = keys | {"cc": cc, "flows": flows, "rtt_ms": rtt}
        peer = base | htb | {"cc": "reno" if cc == "dctcp" else cc}
        name = f"{cc} {flows.replace(',', '+')}" + (f" {rtt}ms" if rtt else "")
        shares = base | {"limit": SHARES, "name": f"shares {name}"}
        cases = [peer | {"name": f"htb {name}"}, base | {"name": f"published {name}"}, shares]
        return map(table.complete, cases + ([shares | {"notify": True, "name": f"told {name}"}] if cc == "cubic" else []))

    chosen = [
        case
        for cc in args.cc or ("cubic", "reno", "bbr", "dctcp")
        for flows in STREAMS
        for case in of(cc, flows, 0)
    ]
    nine = keys | {"cc": "dctcp", "flows": table.FLOW_SETS[3], "limit": SHARES | {"ingress-mode": "mark-only"}}
    chosen += [table.complete(nine | {"name": "shares dctcp 8+1 marks only"})]
    near = interleaved(rig, chosen, args.repetitions)
    show(f"{args.rate / 1e9:g} Gb/s at the receiver", near)
    beside(near)
    delayed = [
        case
        for rtt in (() if args.near else (1, 10))
        for cc in args.cc or ("cubic", "bbr", "dctcp")
        for flows in STREAMS
        for case in of(cc, flows, rtt)
    ]
    rig.hosts.ordinary = args.priority == "ordinary"
    far = interleaved(rig, delayed, args.repetitions)
    rig.hosts.near()
    show(f"{args.rate / 1e9:g} Gb/s at the receiver, 1 and 10 ms by the delay line", far)
    beside(far)
    return near + far


def section_cost(rig, args):
    """Nanoseconds a packet."""
    keys = {"duration_s": args.duration, "flows": "4x1MB"}
    empty, wide = without_limits(keys)[1:]
    tight = table.complete(keys | {"name": "millpond, 1 Gb/s", "limiter": "millpond"})
    four = table.complete(keys | {"name": "millpond, 1 Gb/s, 4 scopes", "limiter": "millpond", "scopes": 3})
    if not Path("/proc/sys/kernel/bpf_stats_enabled").exists() or not has("bpftool"):
        print("\ncost a packet: skipped, bpftool or the kernel's bpf statistics are missing")
        return []
    with Counting():
        costs = interleaved(rig, [empty, wide, tight, four], args.repetitions, around_empty(rig, empty), counted=True)
    print("\nCost a run of the program (the kernel's own count; what counting costs is in all alike)")
    for result in costs:
        shown = result.get("skipped") or result.get("failed")
        shown = shown or ", ".join(f"{name} {cell_ns(ns)} ns" for name, ns in result.get("cost", {}).items())
        print(f"  {result['name']:26} {shown}"[:100])
    return [c | {"counted": True} for c in costs]


def without_limits(keys):
    """No program, an empty one, and one whose limit is out of reach."""
    return [
        table.complete(keys | {"name": "no program"}),
        table.complete(keys | {"name": "empty program"}),
        table.complete(keys | {"name": "millpond, 100 Gb/s", "limiter": "millpond", "rate": 100 * GBPS}),
    ]


def around_empty(rig, empty):
    """What is around each run: the empty program, around its own case."""

    def around(case):
        return EmptyProgram(rig.hosts.new_cgroup("load")) if case["name"] == empty["name"] else contextlib.nullcontext()

    return around


def section_unlimited(rig, args):
    """
    Throughput under a program that does not limit, beside none: the median of the ratios of neighbouring runs, since a busy machine changes more
    from minute to minute than the program costs.
    """
    cases = without_limits({"duration_s": 1, "flows": "4x1MB"})
    # At ordinary priority: at full speed the kernel's own threads must get their turn.
    ordinary, rig.hosts.ordinary, rig.hosts.pinned = rig.hosts.ordinary, True, True
    results = interleaved(rig, cases, max(PAIRS_LEAST, 4 * args.repetitions), around_empty(rig, cases[1]))
    rig.hosts.ordinary, rig.hosts.pinned = ordinary, False
    show("Without a limit: no program, an empty one, one that limits to 100 Gb/s", results)
    for result in results[1:]:
        if "runs" in result and "runs" in results[0]:
            result["ratios"] = [run["mbps"] / free["mbps"] for run, free in zip(result["runs"], results[0]["runs"])]
            low, middle, high = (100 * q for q in statistics.quantiles(result["ratios"], n=4))
            best = max(r["mbps"] for r in result["runs"]) / max(r["mbps"] for r in results[0]["runs"])
            print(
                f"{result['name']}: {middle:.1f} % of the throughput without (median of {len(result['ratios'])} pairs,"
                f" quartiles {low:.1f} to {high:.1f}); best runs {100 * best:.1f} %"
            )
    return results


def cell_ns(value):
    """Whole nanoseconds."""
    return "–" if value is None else f"{value:.0f}"


def section_datagrams(rig, args):
    """UDP beyond the limit."""
    rate = GBPS // 2
    results = []
    print("\nDatagrams, 1.5 Gb/s offered to a limit of 0.5 Gb/s")
    for limiter in ("none", "htb", "millpond"):
        case = table.complete({"limiter": limiter, "rate": rate, "name": f"udp {limiter}"})
        cgroup = rig.hosts.new_cgroup("load")
        try:
            with rig.limited(case, cgroup):
                to = rig.hosts.receiver(0)
                sink = rig.hosts.start("b", LOAD, "udp-sink", to, stdout=subprocess.PIPE, text=True)
                time.sleep(0.2)
                sent = json.loads(
                    rig.hosts.inside(
                        "a", LOAD, "udp-send", to, "--rate", "1.5Gbps", "--size", "1200B",
                        "--duration", f"{args.duration}s", "--cgroup", cgroup,
                    )
                )  # fmt: skip
                got = json.loads(sink.communicate(timeout=20)[0])
                rig.hosts.end(sink)
        except (Missing, Failed) as problem:
            print(f"  {limiter:10} skipped: {problem}"[:100])
            continue
        results.append({"name": case["name"], "case": case, "sent": sent, "received": got})
        print(
            f"  {limiter:10} offered {sent['offered_mbps']:7.1f} Mb/s, errors to the sender: {sent['errors'] or 'none'},"
            f" received {got['mbps'] or 0:7.1f} Mb/s"
        )
    return results


def section_many(rig, args):
    """100 cgroups."""
    count, rate = 100, 5_000_000
    cgroups = [rig.hosts.new_cgroup(f"many{i}") for i in range(count)]
    keys = {"name": "100 cgroups", "flows": f"{count}x100KB", "rtt_ms": 20, "rate": rate, "warm_up_s": 3}
    case = table.complete(keys | {"duration_s": max(args.duration, 5)})
    limits = table.limit_toml(case, {f"rig-{i}": path for i, path in enumerate(cgroups)})
    print("\n100 cgroups at 5 Mb/s, 20 ms by the delay line, one flow of 100 KB requests in each")
    try:
        rig.hosts.far(case["rtt_ms"])
        with rig.limiter.applied(limits) as seconds:
            result = rig.load(case, cgroups)
    except (Missing, Failed) as problem:
        print(f"  skipped: {problem}"[:100])
        return []
    finally:
        rig.hosts.near()
    rates = sorted(flow["mbps"] for flow in result["flows"])
    print(
        f"  apply took {seconds:.2f} s; Mb/s of a cgroup: least {rates[0]:.2f}, median {statistics.median(rates):.2f},"
        f" most {rates[-1]:.2f} ({100 * (rates[-1] * 1e6 / rate - 1):+.1f} %)\n  most of any cgroup in any one second:"
        f" {max(flow['max_second_mbps'] or 0 for flow in result['flows']):.2f}"
    )
    return [{"name": case["name"], "case": case, "apply_seconds": seconds, "result": result}]


def has(program):
    """Whether a program is installed."""
    return any((Path(folder) / program).exists() for folder in [*os.get_exec_path(), "/usr/sbin", "/sbin"])


def conditions():
    """What the numbers depend on besides the code."""
    processor = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return {
        "world": "live",
        "kernel": platform.release(),
        "processor": processor.group(1) if processor else platform.machine(),
        "processors": os.cpu_count(),
        "load_average": os.getloadavg(),
    }


def named_value(text):
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"`{text}` is no NAME=VALUE such as net.ipv4.tcp_tso_rtt_log=14")
    return name, value


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=SECTIONS, help="these sections only; may be repeated")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--duration", type=int, default=3, help="seconds that each run measures")
    parser.add_argument("--rate", type=int, default=GBPS, help="bits a second: of the sections shares, stall and ingress")
    parser.add_argument(
        "--sysctl", action="append", default=[], metavar="NAME=VALUE", type=named_value,
        help="of both hosts, there; may be repeated",
    )  # fmt: skip
    parser.add_argument("--cc", action="append", help="these congestion controls only, there; may be repeated")
    parser.add_argument("--near", action="store_true", help="there without the delay line: no 1 and 10 ms")
    parser.add_argument(
        "--priority", choices=["auto", "ordinary", "real-time"], default="auto",
        help="of the load; auto: real-time where the delay line makes the round-trip time, ordinary elsewhere",
    )  # fmt: skip
    parser.add_argument("--json", help="write the results there as well")
    parser.add_argument("--millpond", type=Path, default=ROOT / "target/release/millpond")
    return parser.parse_args()


def main():
    args = arguments()
    # So that what was made is taken away when this process is asked to end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = conditions() | {"sections": {}}
    try:
        with Hosts() as hosts:
            rig = Rig(hosts, *(Limiter(args.millpond, hosts) for _ in range(2)))
            if not rig.limiter.there:
                say("limit: this tree's millpond has no `limit`: its cases are skipped")
            print(
                f"world live: kernel {results['kernel']}, {results['processors']} processors, load average"
                f" {results['load_average'][0]:.1f}; medians of {args.repetitions} interleaved runs"
            )
            for name in args.only or SECTIONS:
                hosts.ordinary = args.priority == "ordinary" or (args.priority == "auto" and name not in DELAYED)
                results["sections"][name] = globals()[f"section_{name}"](rig, args)
    except Missing as problem:
        say(f"limit: {problem}")
        return 1
    except KeyboardInterrupt:
        return 130
    print("\n" + table.LEGEND)
    OUT.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1) + "\n"
    (OUT / "limit.json").write_text(text)
    if args.json:
        Path(args.json).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
