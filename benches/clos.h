// Parts of the drivers in ns3/clos.cc and htsim/clos.cpp that do not depend on the simulator: the choice of a path, and
// statistics.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

// SplitMix64's finaliser (Vigna).
inline uint64_t
SplitMix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

enum class Path
{
    Balanced,
    Ecmp,
};

// Which of a switch's n up-ports a packet takes. Tier 0 is the leaf or edge, tier 1 the aggregation.
inline uint32_t
UpPort(Path path, uint32_t src, uint32_t dst, uint32_t tier, uint32_t n)
{
    if (path == Path::Balanced)
    {
        return (tier == 0 ? dst : dst / n) % n;
    }
    const uint64_t hash = SplitMix64(uint64_t(src) << 32 | dst);
    return ((hash >> (16 * tier)) & 0xffff) % n;
}

// Linear interpolation between closest ranks; `sorted` is not empty.
inline double
Percentile(const std::vector<double>& sorted, double q)
{
    const double rank = q * double(sorted.size() - 1);
    const size_t below = size_t(std::floor(rank));
    const size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (rank - double(below)) * (sorted[above] - sorted[below]);
}

// The high-water mark of the resident set. getrusage would also count what the calling process held before exec.
inline uint64_t
PeakRssBytes()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
    {
        if (line.rfind("VmHWM:", 0) == 0)
        {
            return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
        }
    }
    return 0;
}
