// A Clos network of DCTCP flows in htsim (Broadcom's csg-htsim): a peer that `make bench` puts beside millpond.
//
//   clos TOPOLOGY PATH PACKETS      for example: clos ls128 balanced 6850
//
// The scenario is that of benches/ns3/clos.cc and benches/scenarios/{ls128,ls1024,ft128,ft1024}.toml: the same networks,
// paths, flows and starts. All classes are htsim's (EventList, ECNQueue, Pipe, DCTCPSrc, TcpSink, TcpRtxTimerScanner),
// and each flow has one source route each way, so that no switch looks anything up. Three small subclasses count packets
// that a queue has transmitted, timeouts, and the time of a flow's last byte.
//
// What differs from the scenario:
//   - ECNQueue counts bytes and marks a packet as it leaves, where more than 65 data packets' bytes are in the queue, the
//     packet itself included. The scenario counts packets and marks on arrival.
//   - A TCP segment is 1500 B with all its headers, an ACK 40 B, but a SYN is 1 B.
//   - The handshake has two packets: data follows the SYN-ACK at once.
//   - DCTCPSrc updates alpha once a window and cuts at each update while alpha is above 0, with marks in that window or
//     without. It leaves slow start at the first mark.
//   - The minimum retransmission timeout is 250 ms, and timers are looked at each 10 ms. Nothing times out: `timeouts`,
//     `retransmits` and `drops` in the output are 0.

#include "../clos.h"

#include "dctcp.h"
#include "ecnqueue.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "route.h"
#include "tcp.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {

constexpr uint32_t PAYLOAD_AND_HEADERS_BYTES = 1500;
constexpr uint32_t QUEUE_PACKETS = 1000;
constexpr uint32_t MARK_PACKETS = 65;
constexpr uint64_t LINK_DELAY_PS = 1000000;
constexpr uint64_t START_GAP_PS = 10000;
constexpr uint64_t LAST_TIME_PS = 60000000000000; // what has not ended by then never will

uint64_t g_packet_hops = 0;
uint64_t g_timeouts = 0;
uint32_t g_unfinished = 0;

class CountingQueue : public ECNQueue
{
  public:
    CountingQueue(linkspeed_bps rate, EventList& events)
        : ECNQueue(rate,
                   mem_b(QUEUE_PACKETS) * PAYLOAD_AND_HEADERS_BYTES,
                   events,
                   nullptr,
                   mem_b(MARK_PACKETS) * PAYLOAD_AND_HEADERS_BYTES)
    {
    }

    void completeService() override
    {
        ++g_packet_hops;
        ECNQueue::completeService();
    }
};

class CountingSource : public DCTCPSrc
{
  public:
    CountingSource(EventList& events, uint64_t packets)
        : DCTCPSrc(nullptr, nullptr, events)
    {
        // A source sends another packet as long as at most this many bytes and one were sent: `packets` in all.
        _flow_size = packets * PAYLOAD_AND_HEADERS_BYTES - 1;
        set_ssthresh(UINT32_MAX);
    }

    void rtx_timer_hook(simtime_picosec now, simtime_picosec period) override
    {
        DCTCPSrc::rtx_timer_hook(now, period);
        g_timeouts += _rtx_timeout_pending;
    }
};

class TimingSink : public TcpSink
{
  public:
    TimingSink(uint64_t packets, simtime_picosec start)
        : m_last_byte(1 + packets * PAYLOAD_AND_HEADERS_BYTES), // the SYN is byte 1
          m_start(start)
    {
    }

    void receivePacket(Packet& packet) override
    {
        TcpSink::receivePacket(packet);
        if (_cumulative_ack >= m_last_byte && fct_us < 0)
        {
            fct_us = double(EventList::now() - m_start) / 1e6;
            --g_unfinished;
        }
    }

    double fct_us = -1;

  private:
    uint64_t m_last_byte;
    simtime_picosec m_start;
};

// One direction of a link.
struct Port
{
    CountingQueue queue;
    Pipe pipe;

    Port(linkspeed_bps rate, EventList& events)
        : queue(rate, events),
          pipe(LINK_DELAY_PS, events)
    {
    }
};

struct Shape
{
    const char* name;
    bool fat_tree;
    uint32_t hosts_per_leaf; // fat tree: k / 2, which is every fan-out
    uint32_t leaves;         // fat tree: edge switches
    uint32_t ups;            // of a leaf or an edge: spines, or aggregation switches of a pod
    linkspeed_bps host_rate;
    linkspeed_bps fabric_rate;
    uint32_t offset;

    uint32_t
    Hosts() const
    {
        return hosts_per_leaf * leaves;
    }
};

constexpr linkspeed_bps G = 1000000000;
constexpr Shape SHAPES[] = {
    {"ls128", false, 16, 8, 4, 10 * G, 40 * G, 16},
    {"ls1024", false, 32, 32, 8, 10 * G, 40 * G, 32},
    {"ft128", true, 4, 32, 4, 100 * G, 100 * G, 16},
    {"ft1024", true, 8, 128, 8, 100 * G, 100 * G, 64},
};

// All ports of a network, tier by tier. "Up" leads away from the hosts.
class Network
{
  public:
    Network(const Shape& shape, Path path, EventList& events)
        : m_shape(shape),
          m_path(path)
    {
        const uint32_t r = shape.hosts_per_leaf;
        Add(m_host_up, shape.Hosts(), shape.host_rate, events);
        Add(m_host_down, shape.Hosts(), shape.host_rate, events);
        Add(m_leaf_up, shape.leaves * shape.ups, shape.fabric_rate, events);
        Add(m_leaf_down, shape.leaves * shape.ups, shape.fabric_rate, events);
        if (shape.fat_tree)
        {
            Add(m_aggregation_up, shape.leaves * r, shape.fabric_rate, events);
            Add(m_aggregation_down, shape.leaves * r, shape.fabric_rate, events);
        }
    }

    // The route between two hosts, without the end that takes the packet.
    Route
    Between(uint32_t src, uint32_t dst)
    {
        const uint32_t r = m_shape.hosts_per_leaf;
        const uint32_t n = m_shape.ups;
        const uint32_t from = src / r;
        const uint32_t to = dst / r;
        Route route;
        Append(route, m_host_up[src]);
        if (from != to)
        {
            const uint32_t up = UpPort(m_path, src, dst, 0, n);
            Append(route, m_leaf_up[from * n + up]);
            if (m_shape.fat_tree && from / r != to / r)
            {
                // The same aggregation switch of each pod has the same cores above it.
                const uint32_t core = UpPort(m_path, src, dst, 1, n);
                Append(route, m_aggregation_up[(from / r * r + up) * r + core]);
                Append(route, m_aggregation_down[(to / r * r + up) * r + core]);
            }
            Append(route, m_leaf_down[to * n + up]);
        }
        Append(route, m_host_down[dst]);
        return route;
    }

    uint64_t
    Drops() const
    {
        uint64_t drops = 0;
        for (const std::deque<Port>* tier :
             {&m_host_up, &m_host_down, &m_leaf_up, &m_leaf_down, &m_aggregation_up, &m_aggregation_down})
        {
            for (const Port& port : *tier)
            {
                drops += port.queue.num_drops();
            }
        }
        return drops;
    }

  private:
    static void
    Add(std::deque<Port>& tier, uint32_t count, linkspeed_bps rate, EventList& events)
    {
        for (uint32_t i = 0; i < count; ++i)
        {
            tier.emplace_back(rate, events);
        }
    }

    static void
    Append(Route& route, Port& port)
    {
        route.push_back(&port.queue);
        route.push_back(&port.pipe);
    }

    Shape m_shape;
    Path m_path;
    // By host; by leaf and the switch above; by aggregation switch and core. A deque never moves what it holds.
    std::deque<Port> m_host_up, m_host_down, m_leaf_up, m_leaf_down, m_aggregation_up, m_aggregation_down;
};

struct Flow
{
    CountingSource source;
    TimingSink sink;
    Route there;
    Route back;

    Flow(Network& network, EventList& events, uint32_t src, uint32_t dst, uint64_t packets)
        : source(events, packets),
          sink(packets, START_GAP_PS * src),
          there(network.Between(src, dst)),
          back(network.Between(dst, src))
    {
        there.push_back(&sink);
        back.push_back(&source);
        source.connect(there, back, sink, START_GAP_PS * src);
    }
};

double
CpuSeconds()
{
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const timeval &user = usage.ru_utime, &system = usage.ru_stime;
    return double(user.tv_sec + system.tv_sec) + double(user.tv_usec + system.tv_usec) / 1e6;
}

struct Measured
{
    double setup_s = 0;
    double wall_s = 0;
    double cpu_s = 0;
    uint64_t events = 0;
    uint64_t drops = 0;
    uint64_t retransmits = 0;
};

void
Print(const Shape& shape, const std::string& path, uint64_t packets, const Measured& run, std::vector<double> fct)
{
    std::sort(fct.begin(), fct.end());
    const double mean = fct.empty() ? 0 : std::accumulate(fct.begin(), fct.end(), 0.0) / double(fct.size());
    std::printf("{\"simulator\":\"htsim\",\"topology\":\"%s\",\"path\":\"%s\",\"packets_per_flow\":%" PRIu64
                ",\"wall_s\":%.3f,\"cpu_s\":%.6f,\"setup_s\":%.3f,\"simulated_s\":%.9f,\"packet_hops\":%" PRIu64
                ",\"mhops_per_s\":%.4f,\"events\":%" PRIu64 ",\"peak_rss_bytes\":%" PRIu64 ",\"drops\":%" PRIu64
                ",\"retransmits\":%" PRIu64 ",\"timeouts\":%" PRIu64 ",",
                shape.name,
                path.c_str(),
                packets,
                run.wall_s,
                run.cpu_s,
                run.setup_s,
                double(EventList::now()) / 1e12,
                g_packet_hops,
                double(g_packet_hops) / std::max(run.cpu_s, 1e-6) / 1e6, // a short run may count as 0 s
                run.events,
                PeakRssBytes(),
                run.drops,
                run.retransmits,
                g_timeouts);
    if (fct.empty())
    {
        std::printf("\"fct_us\":null,");
    }
    else
    {
        std::printf("\"fct_us\":{\"min\":%.3f,\"mean\":%.3f,\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f},",
                    fct.front(),
                    mean,
                    Percentile(fct, 0.5),
                    Percentile(fct, 0.99),
                    fct.back());
    }
    std::printf("\"completed\":%zu,\"flows\":%u}\n", fct.size(), shape.Hosts());
    std::fflush(stdout);
}

int
Run(const Shape& shape, const std::string& path, uint64_t packets)
{
    Measured run;
    const auto build_start = std::chrono::steady_clock::now();
    Packet::set_packet_size(PAYLOAD_AND_HEADERS_BYTES);
    EventList& events = EventList::getTheEventList();
    Network network(shape, path == "ecmp" ? Path::Ecmp : Path::Balanced, events);
    TcpRtxTimerScanner scanner(timeFromMs(10), events);
    std::deque<Flow> flows;
    g_unfinished = shape.Hosts();
    for (uint32_t src = 0; src < shape.Hosts(); ++src)
    {
        flows.emplace_back(network, events, src, (src + shape.offset) % shape.Hosts(), packets);
        scanner.registerTcp(flows.back().source);
    }

    std::cout.rdbuf(nullptr); // htsim reports each flow's end there
    const double cpu_start = CpuSeconds();
    const auto run_start = std::chrono::steady_clock::now();
    while (g_unfinished != 0 && EventList::now() < LAST_TIME_PS && EventList::doNextEvent())
    {
        ++run.events;
    }
    const auto run_end = std::chrono::steady_clock::now();
    run.cpu_s = CpuSeconds() - cpu_start;
    run.setup_s = std::chrono::duration<double>(run_start - build_start).count();
    run.wall_s = std::chrono::duration<double>(run_end - run_start).count();

    run.drops = network.Drops();
    std::vector<double> fct;
    for (const Flow& flow : flows)
    {
        run.retransmits += flow.source._drops;
        if (flow.sink.fct_us >= 0)
        {
            fct.push_back(flow.sink.fct_us);
        }
    }
    Print(shape, path, packets, run, fct);
    return fct.size() == flows.size() ? 0 : 1;
}

} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 4)
    {
        std::fprintf(stderr, "usage: clos ls128|ls1024|ft128|ft1024 balanced|ecmp PACKETS\n");
        return 2;
    }
    const std::string name = argv[1], path = argv[2];
    const auto shape = std::find_if(std::begin(SHAPES), std::end(SHAPES), [&](const Shape& s) { return name == s.name; });
    if (shape == std::end(SHAPES))
    {
        std::fprintf(stderr, "unknown topology \"%s\": ls128, ls1024, ft128 or ft1024\n", argv[1]);
        return 2;
    }
    if (path != "balanced" && path != "ecmp")
    {
        std::fprintf(stderr, "unknown path \"%s\": balanced or ecmp\n", argv[2]);
        return 2;
    }
    char* end = nullptr;
    const uint64_t packets = std::strtoull(argv[3], &end, 10);
    if (*end != '\0' || packets == 0 || packets > 1000000)
    {
        std::fprintf(stderr, "PACKETS must be 1 to 1000000 (got \"%s\")\n", argv[3]);
        return 2;
    }
    // The process ends here: tearing ten thousand objects down measures nothing.
    std::_Exit(Run(*shape, path, packets));
}
