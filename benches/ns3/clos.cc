// A Clos network of DCTCP flows in ns-3.37: the yardstick that `make bench` puts beside millpond.
//
// The scenario, which benches/scenarios/{ls128,ls1024,ft128,ft1024}.toml state for millpond:
//   ls128   leaf-spine, 8 leaves x 16 hosts, 4 spines, 10 Gb/s to hosts, 40 Gb/s in the fabric
//   ls1024  leaf-spine, 32 leaves x 32 hosts, 8 spines, 10 Gb/s to hosts, 40 Gb/s in the fabric
//   ft128   fat tree k = 8, ft1024: fat tree k = 16, all links 100 Gb/s
//   Every link 1 us. Every queue, the hosts' too: FIFO, 1000 packets waiting at most, CE on a packet that finds 65 or
//   more waiting (the packet in transmission does not wait). Host i sends one flow to (i + offset) mod H from i x 10 ns
//   (offset 16; ls1024 32, ft1024 64), after a handshake. DCTCP: initial window 10, g = 1/16, alpha from 0, an ACK a
//   packet, SACK on, timestamps off: 1460 B of payload make 1500 B of IP, an ACK 40 B.
//
// Two things are our own, so that ns-3 is not slowed by what the comparison is not about:
//   - routing is arithmetic (ClosRouting), instead of global routing tables that grow with the square of the hosts;
//   - the device's own queue marks (MarkingQueue), instead of a queue disc above a device queue: one queue, no more.
//     `--queue=disc` is the usual way (a queue disc above a device queue of one packet, which counts as waiting): the
//     same flow completion times to the last digit, about a fifth slower.
//
// What differs from the scenario: ns-3's point-to-point device puts a PPP header of 2 B on every packet, so 1502 B and
// 42 B are on the wire. What does not matter: minRTO and the connection timeout are 10 ms and 3 s; nothing times out.
// `timeouts` and `drops` in the output say so.

#include "../clos.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/ppp-header.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t PAYLOAD_BYTES = 1460;
constexpr uint32_t QUEUE_PACKETS = 1000;
constexpr uint32_t MARK_PACKETS = 65;
constexpr uint32_t ADDRESS_BASE = 0x0a000001; // host 0 is 10.0.0.1
constexpr uint16_t PORT = 5000;

uint64_t g_packet_hops = 0;
uint64_t g_marks = 0; // a packet counts at every queue that marks it
uint64_t g_drops = 0;
uint64_t g_timeouts = 0;

// The queue of a point-to-point device, with a step marker at its tail.
class MarkingQueue : public Queue<Packet>
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("MarkingQueue").SetParent<Queue<Packet>>().AddConstructor<MarkingQueue>();
        return tid;
    }

    MarkingQueue()
    {
        SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, QUEUE_PACKETS));
    }

    bool Enqueue(Ptr<Packet> packet) override
    {
        if (GetNPackets() >= MARK_PACKETS)
        {
            Mark(packet);
        }
        const bool fits = DoEnqueue(GetContainer().end(), packet);
        g_drops += !fits;
        return fits;
    }

    // The device takes each packet out of its queue to transmit it, so this is where a packet-hop is counted.
    Ptr<Packet> Dequeue() override
    {
        Ptr<Packet> packet = DoDequeue(GetContainer().begin());
        g_packet_hops += packet != nullptr;
        return packet;
    }

    Ptr<Packet> Remove() override
    {
        return DoRemove(GetContainer().begin());
    }

    Ptr<const Packet> Peek() const override
    {
        return DoPeek(GetContainer().begin());
    }

  private:
    static void Mark(Ptr<Packet> packet)
    {
        PppHeader ppp;
        Ipv4Header ip;
        packet->RemoveHeader(ppp);
        packet->RemoveHeader(ip);
        if (ip.GetEcn() != Ipv4Header::ECN_NotECT)
        {
            ip.SetEcn(Ipv4Header::ECN_CE);
            ++g_marks;
        }
        packet->AddHeader(ip);
        packet->AddHeader(ppp);
    }
};

NS_OBJECT_ENSURE_REGISTERED(MarkingQueue);

// The device queue below a StepDisc: it holds the packet that comes next and counts what is transmitted.
class OnePacketQueue : public DropTailQueue<Packet>
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid =
            TypeId("OnePacketQueue").SetParent<DropTailQueue<Packet>>().AddConstructor<OnePacketQueue>();
        return tid;
    }

    OnePacketQueue()
    {
        SetMaxSize(QueueSize("1p"));
    }

    Ptr<Packet> Dequeue() override
    {
        Ptr<Packet> packet = DropTailQueue<Packet>::Dequeue();
        g_packet_hops += packet != nullptr;
        return packet;
    }
};

NS_OBJECT_ENSURE_REGISTERED(OnePacketQueue);

// The same queue as MarkingQueue in ns-3's usual place. What waits is what the disc holds and the packet below it.
class StepDisc : public QueueDisc
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("StepDisc").SetParent<QueueDisc>().AddConstructor<StepDisc>();
        return tid;
    }

    StepDisc()
        : QueueDisc(QueueDiscSizePolicy::SINGLE_INTERNAL_QUEUE, QueueSizeUnit::PACKETS)
    {
        SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, QUEUE_PACKETS));
    }

    void SetBelow(Ptr<Queue<Packet>> below)
    {
        m_below = below;
    }

  private:
    bool DoEnqueue(Ptr<QueueDiscItem> item) override
    {
        const uint32_t waiting = GetNPackets() + m_below->GetNPackets();
        if (waiting >= QUEUE_PACKETS)
        {
            ++g_drops;
            DropBeforeEnqueue(item, "full");
            return false;
        }
        if (waiting >= MARK_PACKETS)
        {
            g_marks += Mark(item, "step");
        }
        return GetInternalQueue(0)->Enqueue(item);
    }

    Ptr<QueueDiscItem> DoDequeue() override
    {
        return GetInternalQueue(0)->Dequeue();
    }

    bool CheckConfig() override
    {
        if (GetNInternalQueues() == 0)
        {
            Ptr<InternalQueue> queue = CreateObject<DropTailQueue<QueueDiscItem>>();
            queue->SetMaxSize(GetMaxSize());
            AddInternalQueue(queue);
        }
        return true;
    }

    void InitializeParams() override
    {
    }

    Ptr<Queue<Packet>> m_below;
};

NS_OBJECT_ENSURE_REGISTERED(StepDisc);

// Constant-time routing. A node serves the hosts [first, first + count), `stride` of them on each down-port; ports are
// numbered down first, then up. Everything else goes up.
class ClosRouting : public Ipv4RoutingProtocol
{
  public:
    struct Place
    {
        uint32_t first = 0;
        uint32_t count = 0;
        uint32_t stride = 1;
        uint32_t ups = 0;
        uint32_t tier = 0;
        Path path = Path::Balanced;
        bool host = false;
    };

    explicit ClosRouting(const Place& place)
        : m_place(place)
    {
    }

    // Ports are added in their order: down first, then up.
    void AddPort(Ptr<NetDevice> device)
    {
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        if (m_place.host)
        {
            route->SetSource(Ipv4Address(ADDRESS_BASE + m_place.first));
        }
        // Any gateway: a point-to-point link has one other end, and a route with a gateway is not looked up twice.
        route->SetGateway(Ipv4Address("10.255.255.254"));
        route->SetOutputDevice(device);
        m_routes.push_back(route);
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>,
                               const Ipv4Header&,
                               Ptr<NetDevice>,
                               Socket::SocketErrno& error) override
    {
        error = Socket::ERROR_NOTERROR;
        return m_routes[0];
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice>,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback deliver,
                    ErrorCallback) override
    {
        if (m_place.host)
        {
            deliver(packet, header, 1);
            return true;
        }
        const uint32_t dst = header.GetDestination().Get() - ADDRESS_BASE;
        const uint32_t local = dst - m_place.first; // wraps below `first`
        uint32_t port;
        if (local < m_place.count)
        {
            port = local / m_place.stride;
        }
        else
        {
            const uint32_t src = header.GetSource().Get() - ADDRESS_BASE;
            port = m_place.count / m_place.stride + UpPort(m_place.path, src, dst, m_place.tier, m_place.ups);
        }
        forward(m_routes[port], packet, header);
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override
    {
    }

    void NotifyInterfaceDown(uint32_t) override
    {
    }

    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void SetIpv4(Ptr<Ipv4>) override
    {
    }

    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override
    {
    }

  private:
    Place m_place;
    std::vector<Ptr<Ipv4Route>> m_routes;
};

struct Shape
{
    bool fat_tree;
    uint32_t hosts_per_leaf; // fat tree: k / 2, which is every fan-out below
    uint32_t leaves;         // fat tree: edge switches
    uint32_t ups;            // of a leaf or an edge: spines, or aggregation switches of a pod
    uint64_t host_rate;
    uint64_t fabric_rate;
    uint32_t offset;

    uint32_t Hosts() const
    {
        return hosts_per_leaf * leaves;
    }
};

bool
ShapeOf(const std::string& name, Shape& shape)
{
    constexpr uint64_t G = 1000000000;
    if (name == "ls128")
    {
        shape = {false, 16, 8, 4, 10 * G, 40 * G, 16};
    }
    else if (name == "ls1024")
    {
        shape = {false, 32, 32, 8, 10 * G, 40 * G, 32};
    }
    else if (name == "ft128")
    {
        shape = {true, 4, 32, 4, 100 * G, 100 * G, 16};
    }
    else if (name == "ft1024")
    {
        shape = {true, 8, 128, 8, 100 * G, 100 * G, 64};
    }
    else
    {
        return false;
    }
    return true;
}

struct Network
{
    NodeContainer nodes;
    std::vector<Ptr<ClosRouting>> routing;
    InternetStackHelper stack;
    bool disc = false;

    uint32_t AddNode(const ClosRouting::Place& place)
    {
        Ptr<Node> node = CreateObject<Node>();
        stack.Install(node);
        Ptr<ClosRouting> table = CreateObject<ClosRouting>(place);
        node->GetObject<Ipv4>()->SetRoutingProtocol(table);
        nodes.Add(node);
        routing.push_back(table);
        return nodes.GetN() - 1;
    }

    void AddLink(uint32_t lower, uint32_t upper, uint64_t rate)
    {
        Ptr<PointToPointChannel> channel = CreateObject<PointToPointChannel>();
        channel->SetAttribute("Delay", TimeValue(MicroSeconds(1)));
        for (uint32_t end : {lower, upper})
        {
            Ptr<PointToPointNetDevice> device = CreateObject<PointToPointNetDevice>();
            device->SetDataRate(DataRate(rate));
            device->SetMtu(PAYLOAD_BYTES + 40);
            device->SetAddress(Mac48Address::Allocate());
            Ptr<Node> node = nodes.Get(end);
            node->AddDevice(device);
            device->Attach(channel);
            if (disc)
            {
                Ptr<OnePacketQueue> below = CreateObject<OnePacketQueue>();
                Ptr<NetDeviceQueueInterface> interface = CreateObject<NetDeviceQueueInterface>();
                interface->GetTxQueue(0)->ConnectQueueTraces(below);
                device->SetQueue(below);
                device->AggregateObject(interface);
                Ptr<StepDisc> above = CreateObject<StepDisc>();
                above->SetBelow(below);
                node->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, above);
            }
            else
            {
                device->SetQueue(CreateObject<MarkingQueue>());
            }
            Ptr<Ipv4> ipv4 = node->GetObject<Ipv4>();
            ipv4->SetUp(ipv4->AddInterface(device));
            routing[end]->AddPort(device);
        }
    }
};

// Links are made tier by tier from below, so that every switch has its down-ports before its up-ports.
void
BuildLeafSpine(Network& net, const Shape& shape, Path path)
{
    const uint32_t hosts = shape.Hosts();
    for (uint32_t leaf = 0; leaf < shape.leaves; ++leaf)
    {
        net.AddNode({leaf * shape.hosts_per_leaf, shape.hosts_per_leaf, 1, shape.ups, 0, path, false});
    }
    for (uint32_t spine = 0; spine < shape.ups; ++spine)
    {
        net.AddNode({0, hosts, shape.hosts_per_leaf, 0, 1, path, false});
    }
    for (uint32_t host = 0; host < hosts; ++host)
    {
        net.AddLink(host, hosts + host / shape.hosts_per_leaf, shape.host_rate);
    }
    for (uint32_t leaf = 0; leaf < shape.leaves; ++leaf)
    {
        for (uint32_t spine = 0; spine < shape.ups; ++spine)
        {
            net.AddLink(hosts + leaf, hosts + shape.leaves + spine, shape.fabric_rate);
        }
    }
}

void
BuildFatTree(Network& net, const Shape& shape, Path path)
{
    const uint32_t r = shape.hosts_per_leaf; // k / 2
    const uint32_t hosts = shape.Hosts();
    const uint32_t edges = shape.leaves;
    const uint32_t pods = edges / r;
    const uint32_t first_aggregation = hosts + edges;
    const uint32_t first_core = first_aggregation + pods * r;
    for (uint32_t edge = 0; edge < edges; ++edge)
    {
        net.AddNode({edge * r, r, 1, r, 0, path, false});
    }
    for (uint32_t aggregation = 0; aggregation < pods * r; ++aggregation)
    {
        net.AddNode({aggregation / r * r * r, r * r, r, r, 1, path, false});
    }
    for (uint32_t core = 0; core < r * r; ++core)
    {
        net.AddNode({0, hosts, r * r, 0, 2, path, false});
    }
    for (uint32_t host = 0; host < hosts; ++host)
    {
        net.AddLink(host, hosts + host / r, shape.host_rate);
    }
    for (uint32_t edge = 0; edge < edges; ++edge)
    {
        for (uint32_t up = 0; up < r; ++up)
        {
            net.AddLink(hosts + edge, first_aggregation + edge / r * r + up, shape.fabric_rate);
        }
    }
    for (uint32_t aggregation = 0; aggregation < pods * r; ++aggregation)
    {
        for (uint32_t up = 0; up < r; ++up)
        {
            net.AddLink(first_aggregation + aggregation, first_core + aggregation % r * r + up, shape.fabric_rate);
        }
    }
}

struct Flow
{
    Ptr<Socket> sender;
    Ptr<Socket> listener;
    Ptr<Socket> receiver;
    uint64_t bytes = 0;
    uint64_t received = 0;
    double fct_us = -1;
    Time start;
};

std::vector<Flow> g_flows;
uint32_t g_unfinished = 0;

void
OnConnected(Flow* flow, Ptr<Socket> socket)
{
    // The send buffer holds the flow, in pieces of up to 64 KiB so that cutting segments stays cheap.
    for (uint64_t left = flow->bytes; left > 0;)
    {
        const uint32_t piece = std::min<uint64_t>(left, 44 * PAYLOAD_BYTES);
        if (socket->Send(Create<Packet>(piece)) != int(piece))
        {
            NS_FATAL_ERROR("the send buffer is smaller than the flow");
        }
        left -= piece;
    }
}

void
OnReceive(Flow* flow, Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        flow->received += packet->GetSize();
    }
    if (flow->received >= flow->bytes && flow->fct_us < 0)
    {
        flow->fct_us = double((Simulator::Now() - flow->start).GetPicoSeconds()) / 1e6;
        if (--g_unfinished == 0)
        {
            Simulator::Stop();
        }
    }
}

void
OnAccept(Flow* flow, Ptr<Socket> socket, const Address&)
{
    flow->receiver = socket;
    socket->SetRecvCallback(MakeCallback(&OnReceive).Bind(flow));
}

void
OnCongestionState(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state)
{
    g_timeouts += state == TcpSocketState::CA_LOSS;
}

void
StartFlow(Flow* flow, uint32_t receiver)
{
    flow->sender->Connect(InetSocketAddress(Ipv4Address(ADDRESS_BASE + receiver), PORT));
}

void
AddFlows(const Network& net, const Shape& shape, uint64_t packets)
{
    const uint32_t hosts = shape.Hosts();
    g_flows.resize(hosts);
    g_unfinished = hosts;
    for (uint32_t i = 0; i < hosts; ++i)
    {
        Flow* flow = &g_flows[i];
        const uint32_t to = (i + shape.offset) % hosts;
        flow->bytes = packets * PAYLOAD_BYTES;
        flow->start = NanoSeconds(10) * i;

        flow->listener = Socket::CreateSocket(net.nodes.Get(to), TcpSocketFactory::GetTypeId());
        flow->listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        flow->listener->Listen();
        flow->listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                          MakeCallback(&OnAccept).Bind(flow));

        flow->sender = Socket::CreateSocket(net.nodes.Get(i), TcpSocketFactory::GetTypeId());
        flow->sender->SetConnectCallback(MakeCallback(&OnConnected).Bind(flow),
                                         MakeNullCallback<void, Ptr<Socket>>());
        flow->sender->TraceConnectWithoutContext("CongState", MakeCallback(&OnCongestionState));
        Simulator::ScheduleWithContext(i, flow->start, &StartFlow, flow, to);
    }
}

void
SetDefaults(uint64_t flow_bytes)
{
    // The largest window that scaling allows, and a send buffer that holds a flow: neither limits.
    const uint32_t buffer = uint32_t(std::min<uint64_t>(std::max<uint64_t>(flow_bytes, 1 << 20), 1 << 30));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpDctcp::GetTypeId()));
    Config::SetDefault("ns3::TcpDctcp::DctcpAlphaOnInit", DoubleValue(0.0));
    Config::SetDefault("ns3::TcpDctcp::DctcpShiftG", DoubleValue(1.0 / 16.0));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", EnumValue(TcpSocketState::On));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(10)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(3)));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PAYLOAD_BYTES));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string topology = "ls128";
    std::string path_name = "balanced";
    std::string scheduler = "ns3::MapScheduler";
    std::string queue = "device";
    uint64_t packets = 685;
    CommandLine cmd(__FILE__);
    cmd.AddValue("topology", "ls128, ls1024, ft128 or ft1024", topology);
    cmd.AddValue("path", "balanced or ecmp", path_name);
    cmd.AddValue("flows-packets", "data packets of each flow, 1460 B of payload each", packets);
    cmd.AddValue("queue", "device (marks in the device's queue) or disc (in a queue disc above it)", queue);
    cmd.AddValue("scheduler", "ns-3's event queue", scheduler);
    cmd.Parse(argc, argv);

    Shape shape;
    if (!ShapeOf(topology, shape))
    {
        std::cerr << "unknown topology \"" << topology << "\": ls128, ls1024, ft128 or ft1024\n";
        return 2;
    }
    if (path_name != "balanced" && path_name != "ecmp")
    {
        std::cerr << "unknown path \"" << path_name << "\": balanced or ecmp\n";
        return 2;
    }
    if (queue != "device" && queue != "disc")
    {
        std::cerr << "unknown queue \"" << queue << "\": device or disc\n";
        return 2;
    }
    if (packets == 0 || packets * PAYLOAD_BYTES > 1 << 30)
    {
        std::cerr << "flows-packets must be 1 to 735439\n";
        return 2;
    }
    const Path path = path_name == "ecmp" ? Path::Ecmp : Path::Balanced;

    Time::SetResolution(Time::PS);
    Simulator::SetScheduler(ObjectFactory(scheduler));
    SetDefaults(packets * PAYLOAD_BYTES);

    const auto build_start = std::chrono::steady_clock::now();
    Network net;
    net.stack.SetIpv6StackInstall(false);
    net.disc = queue == "disc";
    for (uint32_t host = 0; host < shape.Hosts(); ++host)
    {
        net.AddNode({host, 1, 1, 0, 0, path, true});
    }
    if (shape.fat_tree)
    {
        BuildFatTree(net, shape, path);
    }
    else
    {
        BuildLeafSpine(net, shape, path);
    }
    for (uint32_t host = 0; host < shape.Hosts(); ++host)
    {
        Ptr<Ipv4> ipv4 = net.nodes.Get(host)->GetObject<Ipv4>();
        ipv4->AddAddress(1, Ipv4InterfaceAddress(Ipv4Address(ADDRESS_BASE + host), Ipv4Mask("255.0.0.0")));
    }
    AddFlows(net, shape, packets);

    const auto run_start = std::chrono::steady_clock::now();
    Simulator::Stop(Seconds(60));
    Simulator::Run();
    const auto run_end = std::chrono::steady_clock::now();
    const double setup_s = std::chrono::duration<double>(run_start - build_start).count();
    const double wall_s = std::chrono::duration<double>(run_end - run_start).count();

    std::vector<double> fct;
    for (const Flow& flow : g_flows)
    {
        if (flow.fct_us >= 0)
        {
            fct.push_back(flow.fct_us);
        }
    }
    std::sort(fct.begin(), fct.end());
    const double mean = fct.empty() ? 0 : std::accumulate(fct.begin(), fct.end(), 0.0) / double(fct.size());
    std::printf("{\"simulator\":\"ns-3.37\",\"topology\":\"%s\",\"path\":\"%s\",\"packets_per_flow\":%" PRIu64
                ",\"wall_s\":%.3f,\"setup_s\":%.3f,\"simulated_s\":%.9f,\"packet_hops\":%" PRIu64
                ",\"mhops_per_s\":%.4f,\"events\":%" PRIu64 ",\"peak_rss_bytes\":%" PRIu64
                ",\"marks\":%" PRIu64 ",\"drops\":%" PRIu64 ",\"timeouts\":%" PRIu64 ",",
                topology.c_str(),
                path_name.c_str(),
                packets,
                wall_s,
                setup_s,
                Simulator::Now().GetSeconds(),
                g_packet_hops,
                double(g_packet_hops) / wall_s / 1e6,
                Simulator::GetEventCount(),
                PeakRssBytes(),
                g_marks,
                g_drops,
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
    std::printf("\"completed\":%zu,\"flows\":%zu}\n", fct.size(), g_flows.size());
    std::fflush(stdout);
    // The process ends here: tearing ten thousand objects down measures nothing.
    std::_Exit(fct.size() == g_flows.size() ? 0 : 1);
}
