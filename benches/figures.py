"""One table of a benchmark's figures, each beside its value at the last recorded run.

`collect` reads figures out of the measurements of benches/bench.py. `record` keeps them in
benches/recorded.json, which is committed; `rows` compares with it. A figure that was not measured
is None and keeps its recorded value.
"""

import json
from datetime import datetime, timezone
from pathlib import Path

RECORDED = Path("benches/recorded.json")
PEERS = ("htsim", "skeleton")


def collect(results):
    """Figures by name, in the order of the table; absolute ones carry their unit in the name."""
    figures = {}

    def put(name, row, *keys):
        for key in keys:
            row = row.get(key) if row else None
        figures[name] = row

    for name, row in results["speed"].items():
        put(f"{name}, Mhop/s", row, "mhops_per_s")
        put(f"{name} / ns-3", row, "ratio_to_ns3")
        put(f"{name}, bytes a host", row, "rss_bytes_per_host")
    for name, row in results["peers"].items():
        put(f"{name}, Mhop a CPU second", row, "millpond", "mhops_per_cpu_s")
        for peer in PEERS:
            put(f"{name} / {peer}", row, f"ratio_to_{peer}")
            put(f"{name}, shipped build / {peer}", row, f"shipped_to_{peer}")
    for name, row in results["ports"].items():
        figures[f"{name}: general ports / fast"] = (
            row["general_mhops_per_s"] / row["fast_mhops_per_s"] if row else None
        )
    put("hard320, Mhop/s", results["hard"], "mhops_per_s")
    for name, ratio in (results["mechanisms"] or {}).items():
        figures[name] = ratio
    put("HPCC's example / ns-3", results["hpcc"], "ratio_to_ns3")
    for name, row in results["threads"].items():
        put(f"{name}: two threads / one", row, "alone", "speed_up")
        put(f"{name}: two threads / one, one core busy", row, "busy", "speed_up")
        put(f"{name}: two runs at once / one", row, "at_once")
    put("ft65536, s to plan", results["growth"], "plan_s")
    put("ft65536, KB a host", results["growth"], "kb_per_host")
    put("ft65536, Mhop/s", results["growth"], "mhops_per_s")
    put("ft65536: two threads / one", results["growth"], "speed_up")
    for name, row in results["instructions"].items():
        put(f"{name}, instructions a hop", row, "instructions_per_hop")
    return figures


def recorded():
    """The last recorded run; one without figures if there is none."""
    if not RECORDED.exists():
        return {"machine": "none", "date": "never", "figures": {}}
    return json.loads(RECORDED.read_text())


def record(results):
    """Makes this run the recorded one."""
    figures = recorded()["figures"]
    figures |= {name: value for name, value in collect(results).items() if value is not None}
    run = {
        "machine": results["machine"]["cpu"],
        "date": datetime.now(timezone.utc).date().isoformat(),
        "figures": figures,
    }
    RECORDED.write_text(json.dumps(run, indent=2) + "\n")


def rows(results):
    """Of each figure: name, value, recorded value, drift."""
    last = recorded()["figures"]
    for name, value in collect(results).items():
        before = last.get(name)
        is_comparable = value is not None and before
        drift = f"{100 * (value / before - 1):+.1f} %" if is_comparable else None
        yield [name, value, before, drift]


def title(results):
    """Which machine and run the columns of `rows` are of."""
    last = recorded()
    return f"{results['machine']['cpu']}; recorded: {last['machine']}, {last['date']}"
