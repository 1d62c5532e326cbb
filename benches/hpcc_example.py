"""The published example of HPCC's simulator, written anew in the grammar of its files.

320 hosts of 100 Gb/s, 20 leaves of 16 hosts and 4 uplinks, pods of 4 leaves and 4 aggregation switches, 16 cores,
400 Gb/s between switches, 1 us a link; two hosts of a leaf send 200 MB each to a third.
"""

from pathlib import Path

LEAVES, HOSTS_PER_LEAF, PER_POD, CORES_PER_AGGREGATION = 20, 16, 4, 4
HOSTS = LEAVES * HOSTS_PER_LEAF
AGGREGATIONS = LEAVES
CORES = PER_POD * CORES_PER_AGGREGATION

CONFIG = """\
ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 1000
TOPOLOGY_FILE fat.txt
FLOW_FILE flow.txt
SIMULATOR_STOP_TIME 4.00
CC_MODE 3
RATE_AI 50Mb/s
RATE_HAI 50Mb/s
MIN_RATE 100Mb/s
ERROR_RATE_PER_LINK 0.0000
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
HAS_WIN 1
GLOBAL_T 1
VAR_WIN 1
FAST_REACT 1
U_TARGET 0.95
MI_THRESH 0
INT_MULTI 1
MULTI_RATE 0
SAMPLE_FEEDBACK 0
RATE_BOUND 1
ACK_HIGH_PRIO 0
LINK_DOWN 0 0 0
KMAX_MAP 2 100000000000 1600 400000000000 6400
KMIN_MAP 2 100000000000 400 400000000000 1600
PMAX_MAP 2 100000000000 0.2 400000000000 0.2
BUFFER_SIZE 32
"""


def links():
    """Both ends and the rate of each link."""
    leaf, aggregation, core = HOSTS, HOSTS + LEAVES, HOSTS + LEAVES + AGGREGATIONS
    for host in range(HOSTS):
        yield host, leaf + host // HOSTS_PER_LEAF, 100
    for it in range(LEAVES):
        for other in range(PER_POD):
            yield leaf + it, aggregation + it // PER_POD * PER_POD + other, 400
    for it in range(AGGREGATIONS):
        for other in range(CORES_PER_AGGREGATION):
            yield aggregation + it, core + it % PER_POD * CORES_PER_AGGREGATION + other, 400


def write(folder: Path, megabytes: int):
    """The three files; two flows of so many megabytes each."""
    folder.mkdir(parents=True, exist_ok=True)
    switches = range(HOSTS, HOSTS + LEAVES + AGGREGATIONS + CORES)
    lines = [f"{a} {b} {rate}Gbps 1000ns 0.000000" for a, b, rate in links()]
    head = [f"{HOSTS + len(switches)} {len(switches)} {len(lines)}", " ".join(map(str, switches))]
    (folder / "fat.txt").write_text("\n".join(head + lines) + "\n")
    flows = [f"{source} 1 3 100 {megabytes}000000 2" for source in (2, 3)]
    (folder / "flow.txt").write_text("\n".join([str(len(flows)), *flows]) + "\n")
    (folder / "config.txt").write_text(CONFIG)
    return folder / "config.txt"
