"""What live.py measures: cases, how they are set up by tc and TOML, and how their results are shown.

A case is a dictionary. Its keys, and what they are without being given:
  name       unique in its table
  limiter    none | htb | htb+fq | htb+fq_codel | cake | cake-gso | fq-edt | edt | millpond             none
             (cake-gso leaves super-packets whole; fq-edt is millpond's EDT form as published over sch_fq,
              edt its profile of that name)
  rate       of the limiter, in bits a second                                                     1000000000
  cc         congestion control of every socket, at both ends                                          cubic
  ecn        ask for ECN whatever the congestion control is                                            false
  flows      as load.py reads them                                                                     1x1MB
  rtt_ms     added round-trip time, by the delay line                                                       0
  direction  egress | ingress: whose cgroup and which hook, for millpond                              egress
  qdisc      of the sender's interface beside `none` and `millpond`, such as fq                         none
  limit      further keys of the [[limit]] table, for millpond; its profile is published unless set       {}
  host       keys of the file's top, such as {"kick": "20ms"}, which `millpond limit serve` then does     {}
  notify     the side channel notifies the sender's host (`millpond limit serve` at both ends)         false
  scopes     so many further limits, at four times the rate, that millpond charges as well                 0
  sysctl     for both namespaces, such as {"net.ipv4.tcp_limit_output_bytes": 262144}                     {}
  duration_s, warm_up_s                                                                              3, 0.5
"""

import json

DEFAULTS = {
    "limiter": "none",
    "rate": 1_000_000_000,
    "cc": "cubic",
    "ecn": False,
    "flows": "1x1MB",
    "rtt_ms": 0,
    "direction": "egress",
    "qdisc": None,
    "limit": {},
    "host": {},
    "notify": False,
    "scopes": 0,
    "sysctl": {},
    "duration_s": 3,
    "warm_up_s": 0.5,
}
LIMITERS = ("none", "htb", "htb+fq", "htb+fq_codel", "cake", "cake-gso", "fq-edt", "edt", "millpond")
FLOW_SETS = ["1x1MB", "1x1MB,1x10KB", "4x1MB,1x10KB", "8x1MB,1x10KB"]


class BadCase(Exception):
    """A case that cannot be run as it is written."""


def complete(case):
    """The case with every key; BadCase if one is unknown."""
    unknown = set(case) - set(DEFAULTS) - {"name"}
    if unknown:
        raise BadCase(f"unknown keys {', '.join(sorted(unknown))} in case {case.get('name', case)}")
    whole = DEFAULTS | case
    if whole["limiter"] not in LIMITERS:
        raise BadCase(f"unknown limiter {whole['limiter']}: {', '.join(LIMITERS)}")
    whole.setdefault("name", default_name(whole))
    return whole


def default_name(case):
    """Limiter, congestion control, flows, round-trip time."""
    parts = [case["limiter"], case["cc"] + ("+ecn" if case["ecn"] else ""), case["flows"].replace(",", "+")]
    parts += [f"{case['rtt_ms']}ms"] if case["rtt_ms"] else []
    parts += [f"{case['rate'] / 1e9:g}G"] if case["rate"] != DEFAULTS["rate"] else []
    parts += [case["direction"]] if case["direction"] != "egress" else []
    return " ".join(parts)


def uses_millpond(case):
    """Whether `millpond limit` is what limits: fq-edt and edt are departure times over sch_fq."""
    return case["limiter"] in ("millpond", "fq-edt", "edt")


def tc_commands(case, device):
    """Arguments of tc that make the limiter, or the queue beside it, on the sender's interface."""
    bits = f"{case['rate']}bit"
    htb = [
        f"qdisc add dev {device} root handle 1: htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb rate {bits}",
    ]
    limiter = case["limiter"]
    if limiter.startswith("htb"):
        _, _, leaf = limiter.partition("+")
        return htb + ([f"qdisc add dev {device} parent 1:1 handle 10: {leaf}"] if leaf else [])
    if limiter.startswith("cake"):
        return [f"qdisc add dev {device} root cake bandwidth {bits}" + (" no-split-gso" if limiter == "cake-gso" else "")]
    qdisc = "fq" if limiter in ("fq-edt", "edt") else case["qdisc"]
    return [f"qdisc add dev {device} root {qdisc}"] if qdisc else []


def toml_value(value):
    """As TOML writes it: strings, numbers, booleans and lists of them are as in JSON."""
    return json.dumps(value)


def toml_lines(keys):
    """A table's keys."""
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in keys.items())


def megabits(rate):
    """A rate as the file has it."""
    return f"{rate / 1e6:g}Mbps"


def limit_toml(case, cgroups):
    """The file for `millpond limit apply`: the case's limit for each cgroup, by its name."""
    text = toml_lines(case["host"])
    further = [f"scope-{i + 1}" for i in range(case["scopes"])]
    scopes = {"scopes": further} if further else {}
    for name in further:
        text += f"[[limit]]\n{toml_lines({'name': name, 'rate': megabits(4 * case['rate'])})}"
    for name, path in cgroups.items():
        keys = {"name": name, "cgroup": str(path), "direction": case["direction"], "rate": megabits(case["rate"])}
        form = {"form": "edt"} if case["limiter"] == "fq-edt" else {}
        profile = {"profile": "edt" if case["limiter"] == "edt" else "published"}
        text += f"[[limit]]\n{toml_lines(keys | profile | form | scopes | case['limit'])}"
    return text


def sysctls(case):
    """What both namespaces are set to: no memory of earlier connections, and ECN if it is asked for."""
    return {"net.ipv4.tcp_no_metrics_save": 1} | ({"net.ipv4.tcp_ecn": 1} if case["ecn"] else {}) | case["sysctl"]


def cell(value, digits=1):
    """A number, or a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


HEADER = (
    f"{'case':36} {'Mb/s':>7} {'peak':>7} {'srtt':>6} {'retr':>5} │ {'1MB p50':>7} {'p99':>6} │ {'10KB':>5} {'p50':>6} {'p99':>6}"
)


def row(name, result):
    """One line of the table, 100 columns wide."""
    if result.get("skipped") or result.get("failed"):
        return f"{name[:36]:36} {result.get('skipped') or result.get('failed')}"[:100]
    large = next((c for c in result["classes"] if c["size"] >= 1 << 20), {})
    small = next((c for c in result["classes"] if c["size"] < 1 << 20), {})
    srtt = result.get("srtt_us")
    return (
        f"{name[:36]:36} {cell(result['mbps']):>7} {cell(result['max_second_mbps']):>7}"
        f" {cell(srtt / 1e3 if srtt else None, 2):>6} {result['retransmissions']:>5.0f} │"
        f" {cell(large.get('p50_ms')):>7} {cell(large.get('p99_ms')):>6} │"
        f" {cell(small.get('mbps')):>5} {cell(small.get('p50_ms'), 2):>6} {cell(small.get('p99_ms'), 2):>6}"
    )


def above(results):
    """Lines that name what exceeded its limit by more than 3 % in any second."""
    return [
        f"above its limit by {100 * (peak * 1e6 / rate - 1):.1f} % in some second: {result['case']['name']}"
        for result in results
        if result["case"]["limiter"] != "none"
        and (peak := result.get("max_second_mbps"))
        and peak * 1e6 > 1.03 * (rate := result["case"]["rate"])
    ]


LEGEND = (
    "Mb/s: payload received, all flows; peak: the most in any one second; srtt, latencies in ms; 10KB: its Mb/s.\n"
    "A percentile is shown only with at least 10 samples beyond it; p99.9 is in the JSON where it is known."
)
