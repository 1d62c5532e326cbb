"""The numbers of a run as plain objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

Number = Optional[float]


def number(value: Number, unit: str = "") -> str:
    """A number for people: four digits, `–` where there is none."""
    return "–" if value is None else f"{value:.4g}{unit}"


def _times(prefix: str, table: Mapping[str, Any], unit: str) -> dict[str, Any]:
    names = ("mean", "p50", "p90", "p95", "p99", "p999", "max")
    return {f"{prefix}_{name}{unit}": table.get(name) for name in names}


@dataclass(frozen=True)
class ClassSummary:
    """The completion times of one class of flows. A statistic of nothing is `None`."""

    completed: int
    unfinished: int
    fct_mean_us: Number
    fct_p50_us: Number
    fct_p90_us: Number
    fct_p95_us: Number
    fct_p99_us: Number
    fct_p999_us: Number
    fct_max_us: Number
    slowdown_p50: Number
    slowdown_p90: Number
    slowdown_p95: Number
    slowdown_p99: Number
    slowdown_p999: Number
    slowdown_max: Number

    @classmethod
    def _of(cls, fct: Mapping[str, Any], slowdown: Mapping[str, Any]) -> ClassSummary:
        slowdowns = _times("slowdown", slowdown, "")
        del slowdowns["slowdown_mean"]
        count, unfinished = fct["count"], fct.get("unfinished", 0)
        return cls(count, unfinished, **_times("fct", fct, "_us"), **slowdowns)


@dataclass(frozen=True)
class Summary:
    """The numbers of a run. Names end with units; a statistic of nothing is `None`.

    `classes` has the completion times of each class of flows, `data` all of `summary.json`.
    """

    name: str
    world: str
    seed: int
    variant: Optional[str]
    status: str
    warnings: list[str]
    flows_started: int
    flows_completed: int
    bytes_delivered: int
    goodput_gbps: Number
    fct_mean_us: Number
    fct_p50_us: Number
    fct_p90_us: Number
    fct_p95_us: Number
    fct_p99_us: Number
    fct_p999_us: Number
    fct_max_us: Number
    slowdown_p50: Number
    slowdown_p95: Number
    slowdown_p99: Number
    slowdown_p999: Number
    slowdown_max: Number
    queries_started: int
    queries_completed: int
    qct_mean_us: Number
    qct_p50_us: Number
    qct_p90_us: Number
    qct_p95_us: Number
    qct_p99_us: Number
    qct_p999_us: Number
    qct_max_us: Number
    packets_sent: int
    packets_delivered: int
    packets_dropped: int
    packets_marked: int
    packets_deflected: int
    packets_retransmitted: int
    packets_out_of_order: int
    timeouts: int
    pause_frames: int
    fairness_jain: Number
    simulated_s: float
    wall_s: float
    packet_hops: int
    conserved: bool
    classes: Mapping[str, ClassSummary] = field(repr=False)
    shows: Mapping[str, Number] = field(repr=False)
    data: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> Summary:
        flows, packets, cost = data["flows"], data["packets"], data["run"]
        slowdown = _times("slowdown", data["slowdown"].get("all", {}), "")
        wanted = ("p50", "p95", "p99", "p999", "max")
        classes = {
            name: ClassSummary._of(fct, data["slowdown"].get(name, {}))
            for name, fct in data["fct_us"].items()
        }
        same = ("name", "world", "seed", "variant", "status", "warnings", "timeouts")
        return cls(
            **{name: data[name] for name in same},
            **{f"flows_{name}": flows[name] for name in ("started", "completed")},
            **{name: flows[name] for name in ("bytes_delivered", "goodput_gbps")},
            **_times("fct", data["fct_us"].get("all", {}), "_us"),
            **{f"slowdown_{name}": slowdown[f"slowdown_{name}"] for name in wanted},
            **{f"queries_{name}": data["qct_us"][name] for name in ("started", "completed")},
            **_times("qct", data["qct_us"], "_us"),
            packets_sent=packets["sent"],
            packets_delivered=packets["delivered"],
            packets_dropped=packets["dropped"],
            packets_marked=packets["ecn_marked"],
            packets_deflected=packets["deflected"],
            packets_retransmitted=packets["retransmitted"],
            packets_out_of_order=packets["out_of_order"],
            pause_frames=data["pause_frames"],
            fairness_jain=data["fairness_jain"],
            **{name: cost[name] for name in ("simulated_s", "wall_s", "packet_hops")},
            conserved=data["audit"]["conserved"],
            classes=classes,
            shows=data.get("shows", {}),
            data=data,
        )

    def __repr__(self) -> str:
        name = self.name if self.variant is None else f"{self.name}/{self.variant}"
        parts = [
            f"{self.flows_completed} of {self.flows_started} flows",
            f"FCT p50 {number(self.fct_p50_us, ' us')}, p99 {number(self.fct_p99_us, ' us')}",
        ]
        if self.queries_started:
            parts.append(f"QCT p99 {number(self.qct_p99_us, ' us')}")
        parts.append(f"{self.packets_dropped} packets dropped, {self.timeouts} timeouts")
        return f"<summary {name}, seed {self.seed}, {self.status}: {', '.join(parts)}>"
