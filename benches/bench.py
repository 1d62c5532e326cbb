"""Benchmarks millpond, beside ns-3, htsim and a lower bound in the same run, where these are there.

What is measured, each alone on the machine but for what is said:
  speed         packet-hops a second on one thread, per scenario and path choice, and the ratio to ns-3 on the same
                work, with the flow completion times of both
  peers         packet-hops a CPU second beside htsim (benches/htsim) and a simulator without features that does the same
                work (crates/sim, example skeleton), in turn: CPU seconds of whole processes, as the kernel counts them;
                and the shipped build, target/dist/millpond, where make dist has made it
  ports         the same with general ports everywhere, and the hard workload
  mechanisms    HPCC, PowerTCP, Canary, Vertigo and HARD320 as shares of their plain counterpart's speed, in turn
  deflection    Canary, with all that it needs, against drop-tail with hashed paths on the same load; what one decision costs
  importance    TLT against plain DCTCP on the same load and the same general ports; what its decisions cost
  threads       two threads against one, on a machine that is idle and with one core kept busy; and that results agree;
                beside them two runs of one thread at once, which share nothing: what the machine's second core adds
  memory        resident bytes a host
  hpcc          the published example of HPCC's simulator, imported from its files, against ns-3's packet-hops on LS128
  growth        65,536 hosts: seconds until the first packet, bytes a host with one flow each, two threads against one
  instructions  a packet-hop, counted by valgrind (benches/instructions.sh)
  event queue   its own benchmark (crates/sim, example event_queue)
  offload       receive offload by the kernel's rules and by Presto's (crates/core, example receive_offload)

With --before BINARY this binary is compared with another one instead, on the same work and with one thread.

The first table has every figure beside its value at the last recorded run (benches/recorded.json) and
the drift; --record makes this run the recorded one.

Runs of a case are interleaved with ns-3's and with each other's, and the median is taken, so that a slow minute of the
machine touches all alike. Prints tables of 100 columns and writes target/bench/bench.json.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import figures
import hpcc_example
import report

ROOT = Path(__file__).resolve().parent.parent
OUT = Path("target/bench")
SKIPPED = 77
PAYLOAD_BYTES = 1460
ECMP = ["switch.path.kind=ecmp", "switch.path.hash=pair"]
GENERAL = ["engine.ports=general"]
SKELETON = "target/release/examples/skeleton"
SHIPPED = "target/dist/millpond"


@dataclass(frozen=True)
class Case:
    """A scenario that ns-3 runs too."""

    scenario: str
    path: str
    packets: int
    hosts: int

    @property
    def name(self):
        return f"{self.scenario} {self.path}"

    @property
    def settings(self):
        """As ns-3 runs it."""
        return [flow_size(self.packets)] + (ECMP if self.path == "ecmp" else [])

    @property
    def long_settings(self):
        """With flows that take a second or so, for what is compared with itself only."""
        return [flow_size(max(self.packets, 6850 * 128 // self.hosts))]


CASES = [
    Case("ls128", "balanced", 6850, 128),
    Case("ls128", "ecmp", 1370, 128),
    Case("ft128", "balanced", 1370, 128),
    Case("ft128", "ecmp", 1370, 128),
    Case("ls1024", "balanced", 685, 1024),
    Case("ft1024", "balanced", 685, 1024),
]

# What does the same work, with the command that runs a case of it.
PEERS = {"htsim": "benches/htsim/run.sh", "skeleton": SKELETON}
PEER_SCENARIOS = ("ls128", "ft128", "ft1024")

# What two binaries are compared on: scenario, the case whose long settings it has, variant.
BESIDE_BEFORE = {
    "ls128 balanced": ("ls128", CASES[0], None),
    "ft1024 balanced": ("ft1024", CASES[5], None),
    "hard320": ("hard320", None, None),
    "canary320 ecmp": ("canary320", None, "ecmp"),
    "canary320 canary": ("canary320", None, "canary"),
}

# A mechanism and what it is compared with: scenario, settings, variant of each.
SHORT = ["traffic.stride.size=2MB"]
MECHANISMS = {
    "HPCC / DCTCP, ls128": (("ls128", [*SHORT, "transport.kind=hpcc"], None), ("ls128", SHORT, None)),
    "PowerTCP / DCTCP, ls128": (("ls128", [*SHORT, "transport.kind=powertcp"], None), ("ls128", SHORT, None)),
    "Canary / hashed paths": (("canary320", [], "canary"), ("canary320", [], "ecmp")),
    "Vertigo / hashed paths": (("canary320", [], "vertigo"), ("canary320", [], "ecmp")),
    "HARD320 / ls128": (("hard320", ["engine.ports=auto"], None), ("ls128", SHORT, None)),
    "HARD320, general ports / ls128": (("hard320", [], None), ("ls128", SHORT, None)),
}

class Failed(Exception):
    """A run that did not give a result."""


class Spinner:
    """Keeps one core busy for as long as it is entered; ends the process that it started and no other."""

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(self.process.pid, {cores[-1]})
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Bench:
    def __init__(self, options):
        self.options = options
        self.failures = []

    def millpond(self, scenario, settings=(), threads=1, variant=None, binary=None, out="run"):
        """One run of a benchmark's scenario, or of a file; returns its summary."""
        file = scenario if isinstance(scenario, Path) else f"benches/scenarios/{scenario}.toml"
        command = [binary or self.options.millpond, "run", str(file), "--json", "--quiet"]
        command += ["--threads", str(threads), "--out", str(OUT / out), "--force"]
        for setting in settings:
            command += ["--set", setting]
        if variant:
            command += ["--variant", variant]
        done, cpu_s = timed(command)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command[1:])}: exit code {done.returncode}: {last_line(done.stderr)}")
        try:
            summary = json.loads(done.stdout)
            summary["run"]["cpu_s"] = cpu_s
            check(summary["status"] == "complete", f"{scenario}: status {summary['status']}")
            check(summary["run"]["wall_s"] > 0 and summary["run"]["packet_hops"] > 0, f"{scenario}: nothing was run")
        except (json.JSONDecodeError, KeyError) as error:
            raise Failed(f"{scenario}: no summary on stdout: {error!r}") from error
        return summary

    def other(self, program, case, packets=None):
        """One run of another simulator, with the CPU seconds of its process; None where it is missing."""
        command = [program, case.scenario, case.path, str(packets or case.packets)]
        done, cpu_s = timed(command)
        if done.returncode == SKIPPED:
            note(last_line(done.stderr))
            return None
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: exit code {done.returncode}: {last_line(done.stderr)}")
        try:
            return {**json.loads(done.stdout), "cpu_s": cpu_s}
        except json.JSONDecodeError as error:
            raise Failed(f"{' '.join(command)}: it printed no JSON: {error}") from error

    def ns3(self, case):
        """One run; None where ns-3 is missing."""
        return self.other("benches/ns3/run.sh", case)

    def guarded(self, what, measure, *arguments):
        """A failing part is reported at the end and does not stop the others."""
        note(what)
        try:
            return measure(*arguments)
        except Failed as failure:
            note(f"  failed: {failure}")
            self.failures.append(f"{what}: {failure}")
            return None

    def speed(self, case):
        ours, theirs = [], []
        for round_number in range(self.options.rounds):
            ours.append(self.millpond(case.scenario, case.settings))
            if round_number < self.options.ns3_rounds:
                theirs += [result for result in [self.ns3(case)] if result]
        ours.append(self.millpond(case.scenario, case.settings))
        mhops = median_mhops(ours)
        row = {
            "mhops_per_s": mhops,
            "packet_hops": ours[0]["run"]["packet_hops"],
            "events_per_hop": ours[0]["run"]["events"] / ours[0]["run"]["packet_hops"],
            "peak_rss_bytes": max(summary["run"]["peak_rss_bytes"] for summary in ours),
            "hosts": case.hosts,
            "fct_us": ours[0]["fct_us"]["all"],
            "runs": len(ours),
            "ns3": None,
        }
        row["rss_bytes_per_host"] = row["peak_rss_bytes"] / case.hosts
        reference = theirs[0] if theirs else committed_reference(case)
        if theirs:
            row["ns3"] = {
                "mhops_per_s": statistics.median(result["mhops_per_s"] for result in theirs),
                "packet_hops": theirs[0]["packet_hops"],
                "events_per_hop": theirs[0]["events"] / theirs[0]["packet_hops"],
                "peak_rss_bytes": theirs[0]["peak_rss_bytes"],
                "runs": len(theirs),
            }
            row["ratio_to_ns3"] = mhops / row["ns3"]["mhops_per_s"]
        if reference:
            row["ns3_fct_us"] = reference["fct_us"]
            row["ns3_fct_from"] = "this run" if theirs else "benches/ns3/reference.json"
            for key in ("mean", "p99"):
                row[f"fct_{key}_off_percent"] = 100 * (row["fct_us"][key] / reference["fct_us"][key] - 1)
        return row

    def peers(self, case):
        """millpond and those of its peers that are there in turn, each with the CPU seconds of its process."""
        # A first run, which does not count, builds a peer's driver.
        present = [peer for peer, program in PEERS.items() if self.has(program) and self.other(program, case, 1)]
        ours = {"millpond": self.options.millpond, **({"shipped": SHIPPED} if os.access(SHIPPED, os.X_OK) else {})}
        runs = {name: [] for name in (*ours, *present)}
        for _ in range(self.options.rounds):
            for name, binary in ours.items():
                summary = self.millpond(case.scenario, case.settings, binary=binary)
                runs[name].append({**summary["run"], "fct_us": summary["fct_us"]["all"]})
            for peer in present:
                runs[peer].append(self.other(PEERS[peer], case))
        row = {}
        for name, results in runs.items():
            row[name] = {
                "mhops_per_cpu_s": statistics.median(r["packet_hops"] / r["cpu_s"] for r in results) / 1e6,
                "packet_hops": results[0]["packet_hops"],
                "fct_us": {key: results[0]["fct_us"][key] for key in ("mean", "p99")},
                "runs": len(results),
            }
        for peer in present:
            row[f"ratio_to_{peer}"] = row["millpond"]["mhops_per_cpu_s"] / row[peer]["mhops_per_cpu_s"]
            if "shipped" in row:
                row[f"shipped_to_{peer}"] = row["shipped"]["mhops_per_cpu_s"] / row[peer]["mhops_per_cpu_s"]
        return row

    def has(self, program):
        """Whether a program is there; a note if it is not."""
        is_there = os.access(program, os.X_OK)
        if not is_there:
            note(f"  {program} skipped: it is not built (benches/run.sh builds it)")
        return is_there

    def ports(self, case):
        """Fast and general ports in turn."""
        fast, general = [], []
        for _ in range(self.options.rounds):
            fast.append(self.millpond(case.scenario, case.long_settings))
            general.append(self.millpond(case.scenario, [*case.long_settings, *GENERAL]))
        return {
            "fast_mhops_per_s": median_mhops(fast),
            "general_mhops_per_s": median_mhops(general),
            "same_results": without_run(fast[0]) == without_run(general[0]),
            "rss_bytes_per_host": max(s["run"]["peak_rss_bytes"] for s in general) / case.hosts,
        }

    def hard(self):
        runs = [self.millpond("hard320") for _ in range(self.options.rounds)]
        return {
            "mhops_per_s": median_mhops(runs),
            "packet_hops": runs[0]["run"]["packet_hops"],
            "rss_bytes_per_host": max(s["run"]["peak_rss_bytes"] for s in runs) / 320,
            "dropped": runs[0]["packets"]["dropped"],
            "timeouts": runs[0]["timeouts"],
        }

    def mechanisms(self):
        """Each mechanism and its plain counterpart in turn: their speeds' ratio."""
        ratios = {}
        for name, pair in MECHANISMS.items():
            speeds = ([], [])
            for _ in range(self.options.rounds):
                for (scenario, settings, variant), runs in zip(pair, speeds):
                    runs.append(self.millpond(scenario, settings, variant=variant))
            ratios[name] = median_mhops(speeds[0]) / median_mhops(speeds[1])
        return ratios

    def beside(self, scenario, plain, scheme, program):
        """Runs of a scheme and of the plain one in turn, and the micro-benchmark."""
        runs = {plain: [], scheme: []}
        for _ in range(self.options.rounds):
            for variant, summaries in runs.items():
                summaries.append(self.millpond(scenario, variant=variant))
        row = {variant: median_mhops(summaries) for variant, summaries in runs.items()}
        row["ratio"] = row[scheme] / row[plain]
        row["deflected"] = runs[scheme][0]["packets"]["deflected"]
        row["packet_hops"] = runs[scheme][0]["run"]["packet_hops"]
        path = Path("target/release/examples") / program
        if path.exists():
            done = subprocess.run([path], capture_output=True, text=True)
            row["decision"] = done.stdout if done.returncode == 0 else None
        else:
            note(f"  {program} skipped: it is not built (cargo build --release -p millpond-core --example {program})")
        return row

    def before(self):
        """Another binary and this one in turn."""
        rows = {}
        for name, (scenario, case, variant) in BESIDE_BEFORE.items():
            settings = case.long_settings if case else []
            note(f"beside before: {name}")
            old, new = [], []
            for _ in range(self.options.rounds):
                old.append(self.millpond(scenario, settings, variant=variant, binary=self.options.before))
                new.append(self.millpond(scenario, settings, variant=variant))
            rows[name] = {"before": median_mhops(old), "now": median_mhops(new)}
            rows[name]["ratio"] = rows[name]["now"] / rows[name]["before"]
        return rows

    def deflection(self):
        return self.beside("canary320", "ecmp", "canary", "decision")

    def importance(self):
        return self.beside("tlt96", "dctcp", "tlt", "importance")

    def threads(self, scenario, settings):
        """One and two threads in turn; alone, then with one core kept busy."""
        row = {"same_results": True}
        pairs = [self.at_once(scenario, settings) for _ in range(self.options.rounds)]
        for machine in ("alone", "busy"):
            one, two = [], []
            for _ in range(self.options.rounds):
                if machine == "busy":
                    with Spinner():
                        one.append(self.millpond(scenario, settings, threads=1))
                        two.append(self.millpond(scenario, settings, threads=2))
                else:
                    one.append(self.millpond(scenario, settings, threads=1))
                    two.append(self.millpond(scenario, settings, threads=2))
            row[machine] = {"one": median_mhops(one), "two": median_mhops(two)}
            row[machine]["speed_up"] = row[machine]["two"] / row[machine]["one"]
            row["same_results"] &= all(without_run(s) == without_run(one[0]) for s in one + two)
        row["at_once"] = statistics.median(pairs) / row["alone"]["one"]
        return row

    def at_once(self, scenario, settings):
        """Packet-hops a second of two runs of one thread that begin together, both added."""
        with ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(lambda out: self.millpond(scenario, settings, out=out), ("run", "run-2")))
        return sum(median_mhops([run]) for run in runs)

    def hpcc(self):
        """HPCC's example as millpond imports it, and ns-3 in turn; ns-3 has no HPCC and runs the short LS128."""
        case = Case("ls128", "balanced", 685, 128)
        config = hpcc_example.write(OUT / "hpcc", 200)
        command = [self.options.millpond, "import", "hpcc", str(config), "--strict"]
        command += ["--out", str(OUT / "hpcc"), "--force"]
        done = subprocess.run(command, capture_output=True, text=True)
        check(done.returncode == 0, f"the import of HPCC's example: {last_line(done.stderr)}")
        ours, theirs = [], []
        for round_number in range(self.options.rounds):
            ours.append(self.millpond(OUT / "hpcc" / "config.toml"))
            if round_number < self.options.ns3_rounds:
                theirs += [result for result in [self.ns3(case)] if result]
        row = {
            "mhops_per_s": median_mhops(ours),
            "packet_hops": ours[0]["run"]["packet_hops"],
            "ns3_mhops_per_s": statistics.median(result["mhops_per_s"] for result in theirs) if theirs else None,
        }
        row["ratio_to_ns3"] = row["mhops_per_s"] / row["ns3_mhops_per_s"] if theirs else None
        return row

    def growth(self):
        """The largest network: what it costs until the first packet, and with one flow a host."""
        command = [self.options.millpond, "run", "benches/scenarios/ft65536.toml", "--json", "--quiet"]
        command += ["--threads", "1", "--out", str(OUT / "run"), "--force", "--set", "duration=1us"]
        times = []
        for _ in range(self.options.rounds):
            began = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True)
            times.append(time.perf_counter() - began)
            if done.returncode != 0:
                raise Failed(f"{' '.join(command[1:])}: exit code {done.returncode}: {last_line(done.stderr)}")
        one, two = self.millpond("ft65536", threads=1), self.millpond("ft65536", threads=2)
        return {
            "plan_s": statistics.median(times),
            "kb_per_host": one["run"]["peak_rss_bytes"] / 65_536 / 1000,
            "mhops_per_s": median_mhops([one]),
            "speed_up": median_mhops([two]) / median_mhops([one]),
            "same_results": without_run(one) == without_run(two),
        }

    def instructions(self, scenario, settings):
        command = ["benches/instructions.sh", "--json", scenario]
        for setting in settings:
            command += ["--set", setting]
        environment = {**os.environ, "MILLPOND": self.options.millpond}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: {last_line(done.stderr)}")
        if not done.stdout.strip():
            note(f"  {last_line(done.stderr)}")
            return None
        return json.loads(done.stdout)

    def event_queue(self):
        program = Path("target/release/examples/event_queue")
        if not program.exists():
            note("  skipped: it is not built (cargo build --release -p millpond-sim --example event_queue)")
            return None
        done = subprocess.run([program, "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"exit code {done.returncode}: {last_line(done.stderr)}")
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError as error:
            raise Failed(f"it printed no JSON: {error}") from error

    def offload(self):
        program = Path("target/release/examples/receive_offload")
        if not program.exists():
            note("  skipped: it is not built (cargo build --release -p millpond-core --example receive_offload)")
            return None
        done = subprocess.run([program], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"exit code {done.returncode}: {last_line(done.stderr)}")
        return done.stdout

    def all(self):
        chosen = [case for case in CASES if not self.options.only or case.scenario in self.options.only]
        scenarios = {case.scenario: case for case in chosen if case.path == "balanced"}
        results = {
            "machine": machine(),
            "rounds": self.options.rounds,
            "speed": {case.name: self.guarded(f"speed: {case.name}", self.speed, case) for case in chosen},
            "peers": {},
            "ports": {},
            "hard": self.guarded("hard: hard320", self.hard),
            "hpcc": self.guarded("hpcc: its simulator's example", self.hpcc),
            "growth": self.guarded("growth: ft65536", self.growth),
            "mechanisms": self.guarded("mechanisms", self.mechanisms),
            "deflection": self.guarded("deflection: canary320", self.deflection),
            "importance": self.guarded("importance: tlt96", self.importance),
            "threads": {},
            "instructions": {},
        }
        for case in [case for case in scenarios.values() if case.scenario in PEER_SCENARIOS]:
            results["peers"][case.name] = self.guarded(f"peers: {case.name}", self.peers, case)
        for case in scenarios.values():
            results["ports"][case.name] = self.guarded(f"ports: {case.name}", self.ports, case)
        parallel = [(case.name, case.scenario, case.long_settings) for case in scenarios.values()]
        parallel.append(("hard320", "hard320", []))
        for name, scenario, settings in parallel:
            results["threads"][name] = self.guarded(f"threads: {name}", self.threads, scenario, settings)
        for scenario in [name for name in ("ls128", "ft128") if name in scenarios]:
            for suffix, settings in (("", []), (" general", GENERAL)):
                results["instructions"][scenario + suffix] = self.guarded(
                    f"instructions: {scenario}{suffix}", self.instructions, scenario, settings
                )
        results["event_queue"] = self.guarded("event queue", self.event_queue)
        results["offload"] = self.guarded("offload", self.offload)
        results["targets"] = report.targets(results)
        results["failures"] = self.failures
        return results


def flow_size(packets):
    return f"traffic.stride.size={packets * PAYLOAD_BYTES}B"


def check(condition, message):
    if not condition:
        raise Failed(message)


def timed(command):
    """A finished process, and the CPU seconds that it and what it waited for took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def note(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def median_mhops(summaries):
    return statistics.median(summary["run"]["packet_hops_per_s"] for summary in summaries) / 1e6


def without_run(summary):
    """What must be the same at any number of threads and with any ports."""
    return {key: value for key, value in summary.items() if key != "run"}


def committed_reference(case):
    """ns-3's flow completion times for a case, as committed; None if that case is not among them."""
    reference = json.loads(Path("benches/ns3/reference.json").read_text())
    for row in reference["cases"]:
        if (row["topology"], row["path"], row["packets_per_flow"]) == (case.scenario, case.path, case.packets):
            return row
    return None


def machine():
    model = ""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {"cpu": model or platform.machine(), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release()}


def parse():
    parser = argparse.ArgumentParser(
        prog="benches/run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of millpond in each case (default 3)")
    parser.add_argument("--ns3-rounds", type=int, default=1, help="of which so many beside ns-3 (default 1; 0: none)")
    scenarios = sorted({case.scenario for case in CASES})
    parser.add_argument("--only", nargs="+", choices=scenarios, metavar="SCENARIO", help=f"of {', '.join(scenarios)}")
    parser.add_argument("--millpond", default="target/release/millpond", help="the binary")
    parser.add_argument("--before", metavar="BINARY", help="another one, which it is compared with; nothing else is run")
    parser.add_argument("--record", action="store_true", help="keep the figures in benches/recorded.json")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    binary = Path(options.millpond)
    options.millpond = str(binary.resolve() if binary.exists() else ROOT / binary)
    if options.before:
        options.before = str(Path(options.before).resolve())
        if not os.access(options.before, os.X_OK):
            parser.error(f"--before {options.before}: no such binary")
    if not os.access(options.millpond, os.X_OK):
        parser.error("there is no millpond binary: cargo build --release -p millpond-cli, or --millpond PATH")
    return options


def main():
    options = parse()
    os.chdir(ROOT)
    OUT.mkdir(parents=True, exist_ok=True)
    if options.before:
        rows = Bench(options).before()
        columns = [("", 20), ("before", 10), ("now", 10), ("ratio", 10)]
        report.table("Mhop/s on one thread", columns, [[name, *row.values()] for name, row in rows.items()])
        return 0
    results = Bench(options).all()
    (OUT / "bench.json").write_text(json.dumps(results, indent=2) + "\n")
    report.report(results)
    if options.record:
        figures.record(results)
    print(f"\n{OUT / 'bench.json'}")
    return 1 if results["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
