#!/usr/bin/env python3
"""The load of live.py: closed loops of requests over TCP, datagrams, and a delay line.

  load.py server ADDRESS:PORT      receives requests, answers each with one byte, counts what arrives; ends with its client
  load.py client ADDRESS:PORT      persistent connections, one request outstanding on each; prints rates and latencies as JSON
  load.py udp-send ADDRESS:PORT    datagrams at a constant rate; prints the errors of sends by name
  load.py udp-sink ADDRESS:PORT    counts datagrams until none has come for a second
  load.py delay --left A --right B two TUN interfaces with a constant delay each way, until this process is ended

A connection begins with its flow's number and the size of its requests. The one of size 0 carries one byte when the
measured time begins and one when it ends, and then the server's counts. It is opened before the client joins a cgroup.
Bytes are counted at the receiver, latencies at the sender: from a request's first byte given to the kernel to its
reply. A percentile needs at least ten samples beyond it.
"""

import argparse
import collections
import contextlib
import errno
import fcntl
import json
import os
import re
import select
import signal
import socket
import struct
import sys
import time

GREETING = struct.Struct("<HQ")
BEGIN, END, REPLY = b"b", b"e", b"."
CHUNK = 1 << 20
SAMPLE_EVERY = 0.01
BEYOND_LEAST = 10
# linux/if_tun.h, linux/tcp.h
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
TUN, NO_PI, VNET_HDR = 0x0001, 0x1000, 0x4000
CHECKSUM, TSO4, TSO6, TSO_ECN = 1, 2, 4, 8
OPTIONS, OPTION_ECN, SMOOTHED_RTT, TOTAL_RETRANSMITTED = 5, 8, 68, 100
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20}
BITS = {"bps": 1, "Kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9}


def quantity(units):
    """A parser of numbers with one of these units."""

    def parse(text):
        found = re.fullmatch(r"([\d.]+)([A-Za-z]+)", text)
        if not found or found[2] not in units:
            raise argparse.ArgumentTypeError(f"`{text}` has none of the units {', '.join(units)}")
        return float(found[1]) * units[found[2]]

    return parse


seconds, size_of, rate_of = quantity(SECONDS), quantity(BYTES), quantity(BITS)


def flow_set(text):
    """Classes of flows, as in 8x1MB,1x10KB/100ms: number, size, least time between two requests."""
    classes = []
    for part in text.split(","):
        count, _, size = part.partition("x")
        size, _, every = size.partition("/")
        classes.append((int(count), int(size_of(size)), seconds(every) if every else 0.0))
    return classes


def address(text):
    """Host and port."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def join(cgroup):
    """Moves this process into a cgroup: a socket keeps the cgroup in which it was made."""
    with open(f"{cgroup}/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))


class Arrivals:
    """Bytes by the millisecond."""

    def __init__(self):
        self.bins = collections.Counter()

    def most(self, window):
        """The most bytes in any second; none of a shorter window."""
        if window < 1:
            return None
        total = most = 0
        for at in range(max(self.bins, default=0) + 1):
            total += self.bins[at] - self.bins[at - 1000]
            most = max(most, total)
        return most


def megabits(count, duration):
    """Bytes in a time as Mb/s."""
    return None if count is None else round(count * 8e-6 / duration, 3)


# --- requests ---------------------------------------------------------------------------------------------------------


def control_socket(cc):
    """A TCP socket with a congestion control."""
    sock = socket.socket()
    if cc:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
    return sock


def receive_exactly(sock, count):
    """So many bytes."""
    got = b""
    while len(got) < count:
        part = sock.recv(count - len(got))
        if not part:
            raise ConnectionError("a connection ended")
        got += part
    return got


def serve(args):
    """Receives and counts until the control connection ends."""
    if args.cgroup:
        join(args.cgroup[0])
    listener = control_socket(args.cc)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address(args.to))
    listener.listen(1024)
    poll, flows, control = select.epoll(), {}, None
    poll.register(listener, select.EPOLLIN)
    arrivals, begun, room = collections.defaultdict(Arrivals), None, bytearray(CHUNK)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listener.fileno():
                sock, _ = listener.accept()
                flow, size = GREETING.unpack(receive_exactly(sock, GREETING.size))
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                control = sock if size == 0 else control
                # Socket, number, size, and what is missing of the present request.
                flows[sock.fileno()] = [sock, flow, size, size]
                poll.register(sock, select.EPOLLIN)
                continue
            flow = flows[descriptor]
            got = flow[0].recv_into(room)
            if flow[0] is control:
                if got and room[:1] == BEGIN:
                    arrivals.clear()
                    begun = time.monotonic()
                elif got:
                    lasted = time.monotonic() - begun
                    counts = {n: (a.bins.total(), a.most(lasted)) for n, a in arrivals.items()}
                    together = Arrivals()
                    for one in arrivals.values():
                        together.bins.update(one.bins)
                    answer = {"seconds": lasted, "flows": counts, "most": together.most(lasted)}
                    control.sendall(json.dumps(answer).encode())
                    return
                else:
                    return
            elif not got:
                poll.unregister(descriptor)
                del flows[descriptor]
            else:
                if begun is not None:
                    arrivals[flow[1]].bins[int((time.monotonic() - begun) * 1e3)] += got
                flow[3] -= got
                if flow[3] <= 0:
                    flow[3] += flow[2]
                    with contextlib.suppress(ConnectionError):
                        flow[0].send(REPLY)


class Flow:
    """A connection and its present request."""

    def __init__(self, to, cc, kind, number, size, every):
        self.sock = control_socket(cc)
        self.sock.connect(to)
        self.sock.sendall(GREETING.pack(number, size))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.kind, self.size, self.every = kind, size, every
        self.missing, self.began, self.due = 0, 0.0, 0.0
        self.latencies, self.round_trips, self.before = [], [], 0

    def info(self):
        """Whether ECN was negotiated, the smoothed round-trip time in us, and segments sent again."""
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        (srtt,), (again,) = struct.unpack_from("<I", info, SMOOTHED_RTT), struct.unpack_from("<I", info, TOTAL_RETRANSMITTED)
        return bool(info[OPTIONS] & OPTION_ECN), srtt, again

    def begin(self):
        """Starts a request."""
        self.missing, self.began, self.due = self.size, time.monotonic(), None
        self.send()

    def send(self):
        """Gives the kernel what it takes."""
        with contextlib.suppress(BlockingIOError):
            while self.missing:
                self.missing -= self.sock.send(ZEROS[: self.missing])

    def reply(self):
        """Takes a reply; the next request begins at once or at its time."""
        try:
            if not self.sock.recv(1):
                raise ConnectionError("the server ended a connection")
        except BlockingIOError:
            return
        now = time.monotonic()
        self.latencies.append(now - self.began)
        self.due = self.began + self.every
        if self.due <= now:
            self.begin()


ZEROS = memoryview(bytes(CHUNK))


def drive(flows, poll, end, sampled):
    """Lets the flows run until a time."""
    by_descriptor = {flow.sock.fileno(): flow for flow in flows}
    look = time.monotonic()
    while (now := time.monotonic()) < end:
        waiting = [flow.due for flow in flows if flow.due is not None]
        until = min([end, *waiting, *([look] if sampled else [])])
        for descriptor, events in poll.poll(max(0.0, until - now)):
            flow = by_descriptor[descriptor]
            if events & select.EPOLLOUT and flow.missing:
                flow.send()
            if events & ~select.EPOLLOUT and not flow.missing:
                flow.reply()
        now = time.monotonic()
        for flow in flows:
            if flow.due is not None and flow.due <= now:
                flow.begin()
        if sampled and now >= look:
            look = now + SAMPLE_EVERY
            for flow in flows:
                flow.round_trips.append(flow.info()[1])


def percentile(samples, part):
    """The nearest rank in ms; none where fewer than ten samples lie beyond it."""
    rank = -(-len(samples) * part // 1000)
    return None if not rank or len(samples) - rank < BEYOND_LEAST else round(samples[rank - 1] * 1e3, 3)


def mean(values):
    """The mean; none without values."""
    return round(sum(values) / len(values), 3) if values else None


def request(args):
    """Runs the load, and prints what came of it."""
    to, classes = address(args.to), flow_set(args.flows)
    control = control_socket(None)
    control.connect(to)
    control.sendall(GREETING.pack(0, 0))
    flows = []
    for kind, (count, size, every) in enumerate(classes):
        for _ in range(count):
            if args.cgroup:
                join(args.cgroup[len(flows) % len(args.cgroup)])
            flows.append(Flow(to, args.cc, kind, len(flows), size, every))
    poll = select.epoll()
    for flow in flows:
        poll.register(flow.sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        flow.begin()
    begin = time.monotonic() + args.warm_up
    drive(flows, poll, begin, False)
    control.sendall(BEGIN)
    for flow in flows:
        flow.latencies, flow.before = [], flow.info()[2]
    drive(flows, poll, begin + args.duration, True)
    control.sendall(END)
    text = b""
    while part := control.recv(CHUNK):
        text += part
    print(json.dumps(report(args, classes, flows, json.loads(text))))


def report(args, classes, flows, counts):
    """The result, as an object."""
    lasted, by_flow = counts["seconds"], counts["flows"]
    bytes_of = [by_flow.get(str(number), [0, None])[0] for number in range(len(flows))]
    again = [flow.info()[2] - flow.before for flow in flows]
    rows = []
    for kind, (count, size, _) in enumerate(classes):
        own = [number for number, flow in enumerate(flows) if flow.kind == kind]
        samples = sorted(sample for number in own for sample in flows[number].latencies)
        rows.append({
            "size": size, "flows": count, "mbps": megabits(sum(bytes_of[n] for n in own), lasted), "count": len(samples),
            "p50_ms": percentile(samples, 500), "p99_ms": percentile(samples, 990), "p999_ms": percentile(samples, 999),
            "max_ms": round(samples[-1] * 1e3, 3) if samples else None,
            "srtt_us": mean([rtt for number in own for rtt in flows[number].round_trips]),
            "retransmissions": sum(again[n] for n in own),
        })  # fmt: skip
    return {
        "kind": "rpc", "flow_set": args.flows, "cc": args.cc, "ecn": all(flow.info()[0] for flow in flows),
        "seconds": round(lasted, 3), "mbps": megabits(sum(bytes_of), lasted),
        "max_second_mbps": megabits(counts["most"], 1), "retransmissions": sum(again),
        "srtt_us": mean([rtt for flow in flows for rtt in flow.round_trips]), "classes": rows,
        "flows": [
            {"class": flow.kind, "mbps": megabits(bytes_of[n], lasted), "max_second_mbps": megabits(by_flow.get(str(n), [0, None])[1], 1)}
            for n, flow in enumerate(flows)
        ],
    }  # fmt: skip


# --- datagrams and the delay line -------------------------------------------------------------------------------------


def send_datagrams(args):
    """Datagrams at a constant rate."""
    if args.cgroup:
        join(args.cgroup[0])
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.connect(address(args.to))
    payload, errors = bytes(int(args.size)), collections.Counter()
    begun, tried, accepted = time.monotonic(), 0, 0
    while (elapsed := time.monotonic() - begun) < args.duration:
        due = int(elapsed * args.rate / (8 * args.size))
        if tried >= due:
            time.sleep(1e-4)
        while tried < due and time.monotonic() - begun < args.duration:
            tried += 1
            try:
                sock.send(payload)
                accepted += 1
            except OSError as error:
                errors[errno.errorcode.get(error.errno, str(error))] += 1
    lasted = time.monotonic() - begun
    print(json.dumps({
        "tried": tried, "accepted": accepted, "errors": errors,
        "offered_mbps": megabits(tried * args.size, lasted), "accepted_mbps": megabits(accepted * args.size, lasted),
    }))  # fmt: skip


def count_datagrams(args):
    """Counts datagrams until none has come for a second after the first."""
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.bind(address(args.to))
    sizes, room = [sock.recv_into(bytearray(1 << 16))], bytearray(1 << 16)
    begun = last = time.monotonic()
    sock.settimeout(1)
    with contextlib.suppress(TimeoutError):
        while True:
            sizes.append(sock.recv_into(room))
            last = time.monotonic()
    print(json.dumps({"count": len(sizes), "mbps": megabits(sum(sizes), last - begun) if last > begun else None}))


def tun(name):
    """A TUN interface whose packets keep their virtio header, so that super-packets cross as one."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), TUN | NO_PI | VNET_HDR))
    fcntl.ioctl(descriptor, TUNSETOFFLOAD, CHECKSUM | TSO4 | TSO6 | TSO_ECN)
    return descriptor


def delay(args):
    """Hands each packet over a constant time after it came, in order."""
    ends = [tun(args.left), tun(args.right)]
    print("ready", flush=True)
    under_way = collections.deque()
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        readable, _, _ = select.select(ends, [], [], wait)
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            _, to, packet = under_way.popleft()
            # A device that is down takes nothing.
            with contextlib.suppress(OSError):
                os.write(to, packet)
        for end in readable:
            to = ends[1 - ends.index(end)]
            with contextlib.suppress(OSError):
                while packet := os.read(end, 1 << 17):
                    under_way.append((time.monotonic() + args.delay, to, packet))


COMMANDS = {"server": serve, "client": request, "udp-send": send_datagrams, "udp-sink": count_datagrams, "delay": delay}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("to", nargs="?", help="ADDRESS:PORT")
    parser.add_argument("--cc", help="congestion control of every socket")
    parser.add_argument("--cgroup", action="append", default=[], help="where sockets are opened; of several, in turn")
    parser.add_argument("--flows", default="8x1MB,1x10KB", help="1x10KB/100ms: one request every 100 ms at most")
    parser.add_argument("--duration", type=seconds, default=5.0)
    parser.add_argument("--warm-up", type=seconds, default=0.5)
    parser.add_argument("--rate", type=rate_of, default=1e9)
    parser.add_argument("--size", type=size_of, default=1200)
    parser.add_argument("--left")
    parser.add_argument("--right")
    parser.add_argument("--delay", type=seconds, default=5e-3)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()
