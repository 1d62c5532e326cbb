"""A packet-level simulator of datacenter networks.

>>> import millpond
>>> run = millpond.Scenario("scenarios/incast.toml").run(seed=7)
>>> run.summary.fct_p99_us
>>> polars.DataFrame(run.flows)

A `Scenario` runs (`run`), compares its variants (`compare`), or sweeps a grid (`sweep`).
`reproduce` decides the claims of a paper. `read` reads a results folder. Results are those of the
command `millpond`; names of numbers end with their units.
"""

from ._errors import (
    Error,
    Interrupted,
    PointError,
    Problem,
    ResultsError,
    RunsError,
    ScenarioError,
    ScenarioWarning,
    UsageError,
)
from ._flows import flows
from ._native import Table
from ._results import (
    Claim,
    Comparison,
    Difference,
    Estimate,
    Point,
    Reproduction,
    Run,
    Sweep,
    Variant,
    read,
)
from ._scenario import Scenario, papers, reproduce
from ._summary import ClassSummary, Summary

__all__ = [
    "Claim",
    "ClassSummary",
    "Comparison",
    "Difference",
    "Error",
    "Estimate",
    "Interrupted",
    "Point",
    "PointError",
    "Problem",
    "Reproduction",
    "ResultsError",
    "Run",
    "RunsError",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Summary",
    "Sweep",
    "Table",
    "UsageError",
    "Variant",
    "flows",
    "papers",
    "read",
    "reproduce",
]
