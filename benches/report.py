"""The tables that benches/bench.py prints: each part of its measurements, and the figures beside what is aimed at."""

import json

import figures

# What is measured, the least that is accepted, and what is aimed at.
TARGETS = [
    ("ls128 balanced, Mhop/s", "speed", "ls128 balanced", 6, 8),
    ("ft128 balanced, Mhop/s", "speed", "ft128 balanced", 6, 8),
    ("ft1024 balanced, Mhop/s", "speed", "ft1024 balanced", 4, 6),
    ("ls128, shipped build / htsim", "htsim", "ls128 balanced", 3, 5),
    ("ft128, shipped build / htsim", "htsim", "ft128 balanced", 3, 6.5),
    ("ft1024, shipped build / htsim", "htsim", "ft1024 balanced", 3, 9),
    ("ls128, speed-up of 2 threads", "threads", "ls128 balanced", 1.5, 1.8),
    ("ft1024, speed-up of 2 threads", "threads", "ft1024 balanced", 1.5, 1.8),
    ("ft1024, KB a host", "memory", "ft1024 balanced", 32, 20),
    ("ft65536, s to plan", "growth", "plan_s", 3, 1),
    ("ft65536, KB a host", "growth", "kb_per_host", 10, 8),
    ("ft65536, speed-up of 2 threads", "growth", "speed_up", 1.5, 1.8),
    ("ls128, instructions a packet-hop", "instructions", "ls128", 900, 600),
    ("HPCC's example, of ns-3 a hop", "hpcc", "ratio_to_ns3", 40, 40),
]

# What is measured once, not by scenario.
WHOLE = ("growth", "hpcc")

# Which part measures a kind of target, if it has another name.
PART_OF = {"memory": "speed", "htsim": "peers"}


def targets(results):
    """Each target with what was measured; `None` where it was not."""
    rows = []
    for statement, kind, name, floor, target in TARGETS:
        row = results[kind] if kind in WHOLE else results[PART_OF.get(kind, kind)].get(name)
        measured = None
        if row:
            measured = {
                "speed": lambda: row["mhops_per_s"],
                "memory": lambda: row["rss_bytes_per_host"] / 1000,
                "htsim": lambda: row.get("shipped_to_htsim", row.get("ratio_to_htsim")),
                "threads": lambda: row["alone"]["speed_up"],
                "instructions": lambda: row["instructions_per_hop"],
                "growth": lambda: row[name],
                "hpcc": lambda: row[name],
            }[kind]()
        less_is_better = target < floor
        status = "not measured"
        if measured is not None:
            reaches = (lambda x: measured <= x) if less_is_better else (lambda x: measured >= x)
            status = "target reached" if reaches(target) else "floor reached" if reaches(floor) else "MISSED"
        rows.append({"statement": statement, "measured": measured, "floor": floor, "target": target, "status": status})
    return rows


def cell(value, digits=2):
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(title, columns, rows):
    """`columns`: (heading, width); the first is flush left. Widths add up to 100 at most."""
    if not rows:
        return
    print(f"\n{title}")

    def line(cells):
        print("".join(f"{c:<{w}}" if i == 0 else f"{c:>{w}}" for i, (c, (_, w)) in enumerate(zip(cells, columns))))

    line([heading for heading, _ in columns])
    for row in rows:
        line([c if isinstance(c, str) else cell(c) for c in row])


def off(row, key):
    value = row.get(f"fct_{key}_off_percent")
    return "-" if value is None else f"{value:+.1f} %"


def report(results):
    machine_line = f"{results['machine']['cpu']}, {results['machine']['cores']} cores"
    print(f"{machine_line}; medians; rounds: {results['rounds']}")
    table(
        f"All figures; {figures.title(results)}",
        [("", 52), ("now", 14), ("recorded", 14), ("drift", 12)],
        list(figures.rows(results)),
    )
    speed = {name: row for name, row in results["speed"].items() if row}
    table(
        "Speed on one thread",
        [("", 18), ("Mhop/s", 9), ("ns-3", 9), ("ratio", 8), ("hops", 12), ("ev/hop", 8), ("MB", 8), ("KB/host", 9)],
        [
            [
                name,
                row["mhops_per_s"],
                cell(row["ns3"]["mhops_per_s"], 3) if row["ns3"] else "-",
                cell(row.get("ratio_to_ns3"), 1),
                row["packet_hops"],
                row["events_per_hop"],
                cell(row["peak_rss_bytes"] / 1e6, 1),
                cell(row["rss_bytes_per_host"] / 1e3, 1),
            ]
            for name, row in speed.items()
        ],
    )
    table(
        "Flow completion time, us: millpond and ns-3",
        [("", 18), ("mean", 10), ("ns-3", 10), ("", 9), ("p50", 10), ("ns-3", 10), ("p99", 10), ("ns-3", 10), ("", 9)],
        [
            [
                name,
                *(cell(x, 1) for x in (row["fct_us"]["mean"], row["ns3_fct_us"]["mean"])),
                off(row, "mean"),
                *(cell(x, 1) for x in (row["fct_us"]["p50"], row["ns3_fct_us"]["p50"])),
                *(cell(x, 1) for x in (row["fct_us"]["p99"], row["ns3_fct_us"]["p99"])),
                off(row, "p99"),
            ]
            for name, row in speed.items()
            if "ns3_fct_us" in row
        ],
    )
    report_peers(results["peers"])
    rows = [
        [
            name,
            row["fast_mhops_per_s"],
            row["general_mhops_per_s"],
            row["same_results"],
            cell(row["rss_bytes_per_host"] / 1e3, 1),
        ]
        for name, row in results["ports"].items()
        if row
    ]
    if results["hard"]:
        hard = results["hard"]
        rows.append(["hard320", "-", hard["mhops_per_s"], "-", cell(hard["rss_bytes_per_host"] / 1e3, 1)])
    table(
        "Ports, Mhop/s on one thread",
        [("", 18), ("fast", 10), ("general", 10), ("same results", 15), ("KB/host", 10)],
        rows,
    )
    if results["deflection"]:
        row = results["deflection"]
        table(
            "Deflection, Mhop/s on one thread",
            [("", 18), ("ECMP", 10), ("Canary", 10), ("ratio", 10), ("deflected", 14), ("hops", 14)],
            [["canary320", row["ecmp"], row["canary"], row["ratio"], row["deflected"], row["packet_hops"]]],
        )
        if row.get("decision"):
            print(f"\nOne decision of a switch\n{row['decision'].rstrip()}")
    if results["importance"]:
        row = results["importance"]
        table(
            "TLT against plain DCTCP, general ports, one thread, Mhop/s",
            [("", 18), ("DCTCP", 10), ("TLT", 10), ("ratio", 10), ("hops", 14)],
            [["tlt96", row["dctcp"], row["tlt"], row["ratio"], row["packet_hops"]]],
        )
        if row.get("decision"):
            print(f"\nDecisions of TLT's sender\n{row['decision'].rstrip()}")
    table(
        "Two threads, Mhop/s: alone, with the sum of two runs at once of one; and with one core kept busy",
        [("", 18), *[("one", 9), ("two", 9), ("speed-up", 10)], ("two runs", 10)]
        + [*[("busy: one", 12), ("two", 9), ("speed-up", 10)], ("same", 8)],
        [
            [
                name,
                *(row["alone"][k] for k in ("one", "two", "speed_up")),
                row["at_once"],
                *(row["busy"][k] for k in ("one", "two", "speed_up")),
                row["same_results"],
            ]
            for name, row in results["threads"].items()
            if row
        ],
    )
    if results["hpcc"]:
        row = results["hpcc"]
        table(
            "HPCC's example, imported, on one thread; ns-3 on LS128",
            [("", 18), ("Mhop/s", 10), ("ns-3", 10), ("ratio", 10), ("hops", 14)],
            [["hpcc", *(cell(row[k], 2) for k in ("mhops_per_s", "ns3_mhops_per_s", "ratio_to_ns3")), row["packet_hops"]]],
        )
    if results["growth"]:
        row = results["growth"]
        table(
            "65,536 hosts with Presto's labels",
            [("", 18), ("s to plan", 12), ("KB/host", 10), ("Mhop/s", 10), ("2 threads", 12), ("same results", 15)],
            [["ft65536", *(row[k] for k in ("plan_s", "kb_per_host", "mhops_per_s", "speed_up", "same_results"))]],
        )
    table(
        "Instructions a packet-hop (valgrind)",
        [("", 18), ("instructions", 14), ("hops", 12)],
        [
            [name, cell(row["instructions_per_hop"], 0), row["packet_hops"]]
            for name, row in results["instructions"].items()
            if row
        ],
    )
    if results["event_queue"] is not None:
        print("\nEvent queue")
        report_event_queue(results["event_queue"])
    if results["offload"]:
        print(f"\nReceive offload\n{results['offload'].rstrip()}")
    table(
        "Targets",
        [("", 36), ("measured", 12), ("floor", 10), ("target", 10), ("", 18)],
        [[r["statement"], r["measured"], r["floor"], r["target"], r["status"]] for r in results["targets"]],
    )
    for failure in results["failures"]:
        print(f"\nfailed: {failure}")


def report_peers(peers):
    """Speeds, ratios and mean flow completion times of what does the same work."""
    speeds = ("millpond", "shipped", *figures.PEERS)
    table(
        "Mhop a CPU second, millpond's and the shipped build's as multiples",
        [("", 16), *[(name, 9) for name in speeds], *[(f"/{peer}", 9) for peer in figures.PEERS]]
        + [(f"shipped/{peer}", 17) for peer in figures.PEERS],
        [
            [
                name,
                *(cell(row.get(it, {}).get("mhops_per_cpu_s")) for it in speeds),
                *(cell(row.get(f"{whose}_to_{peer}")) for whose in ("ratio", "shipped") for peer in figures.PEERS),
            ]
            for name, row in peers.items()
            if row
        ],
    )
    names = ("millpond", *figures.PEERS)
    table(
        "The same runs, mean flow completion time, us",
        [("", 16), *[(name, 12) for name in names]],
        [
            [name, *(cell(row.get(it, {}).get("fct_us", {}).get("mean"), 1) for it in names)]
            for name, row in peers.items()
            if row
        ],
    )


def report_event_queue(value):
    """A list of flat objects becomes a table; anything else is printed as it is."""
    rows = value if isinstance(value, list) else next((v for v in value.values() if isinstance(v, list)), None)
    if rows and all(isinstance(row, dict) for row in rows):
        keys = list(rows[0])
        width = max(10, min(20, 100 // len(keys)))
        for cells in [keys, *([cell(row.get(key), 1) for key in keys] for row in rows)]:
            print("".join(f"{c:<{width}}" if i == 0 else f"{c:>{width}}" for i, c in enumerate(cells)))
    else:
        print(json.dumps(value, indent=2))
