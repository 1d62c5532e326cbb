//! The points of the built-in distributions, as their sources give them.

use super::{Builtin, Shape};

/// The built-in distributions.
#[rustfmt::skip]
pub const BUILTIN: &[Builtin] = &[
    Builtin {
        name: "web-search",
        source: "DCTCP's web search as used by pFabric, HPCC and TLT (DCTCP_CDF.txt, \
            WebSearch_distribution.txt); mean 1.71 MB",
        shape: Shape::Linear,
        percent: false,
        points: &[
            (0.0, 0.0), (10e3, 0.15), (20e3, 0.20), (30e3, 0.30), (50e3, 0.40), (80e3, 0.53),
            (200e3, 0.60), (1e6, 0.70), (2e6, 0.80), (5e6, 0.90), (10e6, 0.97), (30e6, 1.0),
        ],
    },
    Builtin {
        name: "web-search-original",
        source: "DCTCP's web search, the points before they were rounded (search.txt); mean \
            1.71 MB",
        shape: Shape::Linear,
        percent: false,
        points: &[
            (9e3, 0.0), (9e3, 0.15), (18_582.0, 0.2), (28_140.0, 0.3), (38_913.0, 0.4),
            (77_468.0, 0.53), (200e3, 0.6), (1e6, 0.7), (2e6, 0.8), (5e6, 0.9), (10e6, 0.97),
            (30e6, 1.0),
        ],
    },
    Builtin {
        name: "data-mining",
        source: "VL2's data mining, SIGCOMM 2009, as used by TLT",
        shape: Shape::Linear,
        percent: false,
        points: &[
            (100.0, 0.0), (10e3, 0.8), (152_522.0, 0.8346), (390_541.0, 0.9),
            (3_223_542.0, 0.953846), (100e6, 0.99), (1e9, 1.0),
        ],
    },
    Builtin {
        name: "cache-follower",
        source: "Facebook cache follower, all traffic: Roy et al., SIGCOMM 2015, digitised by \
            parsimon-eval; mean 610 KB",
        shape: Shape::Linear,
        percent: true,
        points: &[
            (0.0, 0.0), (51.0, 0.37), (71.0, 0.56), (76.0, 2.88), (133.0, 3.16), (183.0, 4.51),
            (271.0, 5.47), (321.0, 7.11), (349.0, 16.10), (436.0, 17.64), (484.0, 24.60),
            (561.0, 27.11), (651.0, 27.59), (731.0, 31.16), (913.0, 33.00), (1037.0, 33.57),
            (1323.0, 36.08), (2421.0, 39.56), (3779.0, 41.97), (6155.0, 43.89), (11_629.0, 46.69),
            (18_938.0, 49.10), (31_169.0, 51.70), (46_628.0, 54.21), (73_544.0, 57.49),
            (113_561.0, 60.87), (173_480.0, 64.92), (233_326.0, 69.07), (304_021.0, 72.55),
            (431_276.0, 75.44), (694_981.0, 77.47), (1_120_120.0, 78.53), (1_640_451.0, 81.13),
            (1_984_136.0, 85.57), (2_300_215.0, 89.73), (2_610_206.0, 94.84), (2_900_867.0, 97.84),
            (4_386_575.0, 99.48), (12_540_802.0, 99.76), (28_388_498.0, 100.0),
        ],
    },
    Builtin {
        name: "cache-follower-intra",
        source: "Facebook cache follower, intra-cluster: Roy et al., main points of \
            HomaSimulation's file, as steps",
        shape: Shape::Steps,
        percent: true,
        points: &[
            (68.0, 2.0), (144.0, 4.1), (340.0, 18.0), (490.0, 27.7), (707.0, 35.3), (1110.0, 40.0),
            (1440.0, 42.4), (3000.0, 45.4), (10_000.0, 47.8), (28_270.0, 50.0), (62_583.0, 51.9),
            (102_060.0, 53.4), (127_700.0, 54.7), (169_860.0, 57.4), (212_537.0, 60.2),
            (260_573.0, 63.0), (326_042.0, 65.8), (531_696.0, 69.5), (588_724.0, 71.4),
            (1_385_457.0, 72.0), (1_597_864.0, 74.2), (1_787_361.0, 77.9), (1_959_004.0, 81.6),
            (2_213_771.0, 85.3), (2_329_467.0, 87.2), (2_553_169.0, 92.8), (2_827_011.0, 97.4),
            (3_006_219.0, 98.9), (3_260_426.0, 99.4), (3_837_698.0, 100.0),
        ],
    },
    Builtin {
        name: "cache-follower-tlt",
        source: "Facebook cache follower as in TLT's simulators",
        shape: Shape::Linear,
        percent: false,
        points: &[
            (70.0, 0.0), (70.0, 0.01), (150.0, 0.015), (150.0, 0.04), (300.0, 0.08), (350.0, 0.1),
            (350.0, 0.19), (450.0, 0.2), (500.0, 0.28), (600.0, 0.3), (700.0, 0.35), (1100.0, 0.4),
            (2000.0, 0.42), (10e3, 0.48), (30e3, 0.5), (100e3, 0.52), (200e3, 0.6), (400e3, 0.68),
            (600e3, 0.7), (1.5e6, 0.701), (2e6, 0.8), (2.4e6, 0.9), (3e6, 1.0),
        ],
    },
    Builtin {
        name: "hadoop",
        source: "Facebook Hadoop as in HPCC's simulator (FbHdp_distribution.txt)",
        shape: Shape::Linear,
        percent: false,
        points: &[
            (0.0, 0.0), (100.0, 0.01), (200.0, 0.02), (300.0, 0.05), (350.0, 0.15), (400.0, 0.2),
            (500.0, 0.3), (600.0, 0.4), (700.0, 0.5), (1000.0, 0.6), (2000.0, 0.67), (7000.0, 0.7),
            (30e3, 0.72), (50e3, 0.82), (80e3, 0.87), (120e3, 0.9), (300e3, 0.95), (1e6, 0.975),
            (2e6, 0.99), (10e6, 1.0),
        ],
    },
    Builtin {
        name: "web-server",
        source: "Facebook web server as in TLT's simulators",
        shape: Shape::Linear,
        percent: false,
        points: &[
            (150.0, 0.0), (300.0, 0.12), (300.0, 0.2), (600.0, 0.2), (1000.0, 0.3), (2000.0, 0.4),
            (3100.0, 0.5), (6000.0, 0.6), (20e3, 0.71), (60e3, 0.8), (150e3, 0.82), (300e3, 0.9),
            (500e3, 1.0),
        ],
    },
    Builtin {
        name: "ali-storage",
        source: "Alibaba storage 2019 as in HPCC's simulator (AliStorage2019.txt)",
        shape: Shape::Linear,
        percent: false,
        points: &[
            (0.0, 0.0), (4e3, 0.2293), (8e3, 0.6921), (16e3, 0.8061), (32e3, 0.9047),
            (64e3, 0.9353), (128e3, 0.9677), (256e3, 0.9753), (2e6, 1.0),
        ],
    },
];
