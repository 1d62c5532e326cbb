"""A small scenario that many tests run."""

from __future__ import annotations

import pytest

import millpond

TEXT = """
name = "small"
duration = "2ms"
shows = ["all.fct.p99", "timeouts"]
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts-per-leaf = 4
host-link = { rate = "10Gbps", delay = "1us" }
fabric-link = { rate = "10Gbps", delay = "1us" }
[[traffic]]
name = "web"
kind = "poisson"
sizes = "web-search"
load = 0.5
[[traffic]]
name = "queries"
kind = "incast"
degree = 3
response = "20KB"
rate = 5000
[capture]
queues = "20us"
connections = "20us"
[[variant]]
name = "dctcp"
[[variant]]
name = "cubic"
set = { "transport.kind" = "cubic" }
"""


@pytest.fixture
def scenario() -> millpond.Scenario:
    return millpond.Scenario(TEXT)


@pytest.fixture
def pair() -> dict:
    """Two hosts and a switch, without traffic."""
    link = {"rate": "10Gbps", "delay": "1us"}
    return {
        "name": "pair",
        "until": "flows-complete",
        "duration": "1s",
        "topology": {"kind": "single-switch", "hosts": 2, "host-link": link},
    }
