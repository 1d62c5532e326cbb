//! The command line: what can be asked, and how `--help` teaches it.

#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod linux;
#[cfg(not(all(feature = "linux", target_os = "linux")))]
#[path = "without_linux.rs"]
mod linux;

pub use linux::{LabArgs, LimitArgs, SwitchArgs};

pub use crate::worlds::WorldName;
use clap::{Args, Parser, Subcommand, ValueEnum};
use millpond_results::Warnings;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// A packet-level simulator of a datacenter network, and the mechanisms that keep its tail calm.
#[derive(Parser, Debug)]
#[command(
    name = "millpond",
    version = millpond::command::LONG_VERSION,
    max_term_width = 100,
    after_help = "\
Try:
  millpond new first.toml                                 a scenario by five questions
  millpond run scenarios/incast.toml                      one run, a table, out/incast/
  millpond compare scenarios/microburst.toml              its variants beside each other
  millpond run scenarios/incast.toml --set transport.kind=cubic --seed 7
  millpond explain transport.min-rto                      what a key means, and where it comes from

Paths such as scenarios/ and docs/ are those of the repository; the Debian package has both below
/usr/share/doc/millpond.

Exit codes: 0 done, 1 failed (audit, I/O), 2 bad usage or scenario, 3 stalled (no open flow can
end), 4 invalid (the machine was too slow for a lab), 5 worse than --tolerate allows, 130
interrupted."
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run one scenario and write its results
    #[command(after_help = "\
Example: millpond run scenarios/incast.toml --set switch.marking.threshold-packets=20 --json")]
    Run(RunArgs),
    /// Run all variants of a scenario and lay them side by side
    #[command(after_help = "\
Example: millpond compare scenarios/microburst.toml --seeds 5

          millpond compare scenarios/five.toml --tolerate queries.qct.p95=5 --baseline old.json

Ctrl-C or a crash loses only the runs under way: the same command goes on with those that remain.
Exit codes: 0 done, 1 failed, 2 bad usage or scenario, 3 stalled, 5 worse than --tolerate allows,
130 interrupted.")]
    Compare(CompareArgs),
    /// Write a scenario by five questions: network, rate, transport, traffic, mechanisms
    #[command(after_help = "\
Examples: millpond new first.toml                        asks; Enter takes the default
          millpond new first.toml --yes                  all defaults
          millpond new burst.toml --topology single-switch:64 --traffic incast:32 --yes
          millpond new - --yes --mechanisms tlt,canary | millpond check -

An option answers its question. With a closed standard input the command needs all options, or
--yes.")]
    New(NewArgs),
    /// Make a results folder's report.html again
    #[command(after_help = "Example: millpond report out/microburst-compare")]
    Report {
        /// The results folder: of a run, a compare or a sweep
        dir: PathBuf,
    },
    /// Draw runs and compares, several in one chart, or a sweep over its longest key, as SVG files
    Plot {
        /// The results folders: of runs and compares, or of one sweep
        #[arg(required = true, value_name = "RESULT")]
        results: Vec<PathBuf>,
        /// Charts to draw: fct, qct, slowdown-p99-by-size, goodput, queue and others; of a sweep
        /// those of its columns, such as mean-fct, fct-p99-of-mice. A wrong name prints all
        /// [default: all]
        #[arg(long = "figure", value_name = "NAME,…", value_delimiter = ',')]
        figures: Vec<String>,
        /// The folder of the files, NAME.svg each; older ones of these names are replaced
        #[arg(long, value_name = "DIR", default_value = "out/plots")]
        out: PathBuf,
    },
    /// Run a grid of values and seeds over all cores; stopped, the same command goes on
    #[command(after_help = "\
Examples: millpond sweep scenarios/incast.toml --grid traffic.incast.degree=8,16,32 --seeds 10
          millpond sweep scenarios/microburst.toml --grid traffic.background.load=0.2..0.8/0.2 \\
              --seeds 5

A range FROM..TO/STEP has both ends (TO only if a step meets it). Whole numbers step by 1 if no step
is given. Values may have units (10us..50us/10us) and are exact decimals.
The grid is the product of all --grid, of the scenario's variants with --variants, and of the seeds.
Ctrl-C or a crash loses only the runs under way: the same command goes on with those that remain.
Exit codes: 0 all runs are complete, 1 some runs failed (listed; the same command repeats them),
2 bad usage, 3 some runs stalled (no open flow can end; results are kept), 130 interrupted.")]
    Sweep(SweepArgs),
    /// Run a paper's experiments and report which of its claims hold; stopped, the same command
    /// goes on
    #[command(after_help = "\
Examples: millpond reproduce canary --quick               what minutes can decide
          millpond reproduce canary --dry-run             list the runs and estimate their time
          millpond reproduce canary --only one-gig        one experiment and its claims
          millpond reproduce canary --only S1,P2          some claims and the runs that they need
          millpond reproduce all --page out/gallery --recorded     one page of all recorded claims

Without a paper, the command lists the papers. Each experiment is a sweep in a subfolder of the
results. Finished runs are kept, and more --seeds are added to them.
Exit codes: 0 done, 1 failed (audit, I/O; with --strict a claim that fails), 2 bad usage,
3 a run stalled, 130 interrupted.")]
    Reproduce(ReproduceArgs),
    /// Write a table of a results folder as CSV, or its flows as the HPCC family's fct.txt
    #[command(after_help = "\
Examples: millpond export out/incast --csv flows.csv
          millpond export out/incast fct.txt
          millpond export out/incast --table queries | head
          millpond export out/incast-compare --table flows --csv pooled.csv")]
    Export(ExportArgs),
    /// Make a scenario of another simulator's files, and report what became of every key
    #[command(after_help = "\
Examples: millpond import hpcc mix/config.txt --out imported
          millpond import hpcc config.txt --strict          exit 2 if a key is not modelled
          millpond import htsim perm.cm --topology leaf_spine.topo

hpcc reads the configuration, topology and flow files of HPCC's released simulator, and of its forks
by TLT, ConWeave and SimAI. htsim reads its connection matrices and topologies. An error names file
and line; nothing is written then.")]
    Import {
        #[command(subcommand)]
        from: ImportFrom,
    },
    /// Hold cgroups to their bandwidth without queueing (Linux, eBPF)
    #[command(after_help = "\
Examples: millpond limit apply limits.toml              install the file's limits, or change them
          millpond limit apply limits.toml --dry-run    print what would change
          millpond limit observe limits.toml            count what would happen, let everything pass
          millpond limit show --watch                   rates, marks, drops, credit, every second
          millpond limit set batch rate=500Mbps
          millpond limit remove --all                   lift every limit, leave no trace

A file:   [[limit]]
          name = \"batch\"
          cgroup = \"batch.slice\"     # or unit, container, pid; none: a scope that others name
          rate = \"1Gbps\"
          scopes = [\"uplink\"]
          [[limit]]
          name = \"uplink\"
          rate = \"8Gbps\"

Limits stay when this command exits, and when it is killed or upgraded. Needs root, or CAP_BPF and
CAP_NET_ADMIN (and CAP_SYS_ADMIN to mount a bpf file system where there is none). Only connections
that processes open while they are in the cgroup are limited.
docs/limit-reference.md has every key.")]
    Limit(LimitArgs),
    /// Run a virtual switch between network namespaces and interfaces (Linux)
    #[command(after_help = "\
Examples: millpond switch apply switch.toml     run the switch of the file, or change it
          millpond switch show --watch          frames, rates, drops by reason, every second
          millpond switch serve                 run it in the foreground, as a service
          millpond switch remove --all          end it, remove its interfaces and every other trace

A file:   [[port]]
          name = \"web\"
          kind = \"tap\"                # a new interface; af-packet: an existing one; pcap: files
          device = \"mpweb\"
          namespace = \"web\"
          addresses = [\"10.1.0.1/24\"]

Interfaces stay when the switch ends or is killed, and connections over them go on when it is back.
Needs root, or CAP_NET_ADMIN, CAP_NET_RAW for af-packet, and CAP_SYS_ADMIN for ports in other
namespaces. docs/switch-reference.md has every key.")]
    Switch(SwitchArgs),
    /// Run a scenario under real kernel TCP: hosts are network namespaces (Linux)
    #[command(after_help = "\
Examples: millpond lab scenarios/lab/incast.toml             one run, or all variants: 30 s
          millpond lab scenarios/lab/incast.toml --scale 100 10 Gb/s becomes 100 Mb/s
          millpond compare scenarios/lab/incast.toml --worlds sim,lab --seeds 5

The network is the simulator's switches in one process; links are paced by its clock. The lab slows
the network so that this machine can follow: rates are divided by --scale, and all times multiplied.
A run whose packets left too late is \"invalid\" (exit code 4).
Needs root. Namespaces end with the command, also by Ctrl-C; after kill -9 the next lab removes
them.")]
    Lab(LabArgs),
    /// Check a scenario without running it: its content, what each port gets, its warnings
    #[command(after_help = "\
Examples: millpond check scenarios/incast.toml
          millpond check - < scenario.toml
          millpond check scenarios/incast.toml --resolved")]
    Check(CheckArgs),
    /// List topologies, traffic, size distributions, and the mechanisms at each place
    List(JsonArgs),
    /// Explain a key, a mechanism, a place or a name of the field: meaning, unit, default, source
    #[command(after_help = "\
Examples: millpond explain transport.min-rto            a key
          millpond explain traffic.background.load      a key as --set takes it
          millpond explain dctcp                        a mechanism
          millpond explain switch.marking               a place and what can be there
          millpond explain wcmp                         a name of the field, and its name here")]
    Explain {
        /// A key (transport.min-rto), a kind (dctcp), a place (switch.marking) or a name of the
        /// field (wcmp)
        name: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON schema of scenarios, for editors
    #[command(after_help = "\
Example: millpond schema > millpond.schema.json
Then write #:schema ./millpond.schema.json in a scenario's first line: an editor with a TOML plug-in
completes keys, shows what they mean, and marks wrong ones. docs/editors.md has the settings.")]
    Schema,
    /// Print completions for a shell
    #[command(after_help = "\
Example: millpond completions bash > ~/.local/share/bash-completion/completions/millpond")]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    #[command(
        after_help = "Example: millpond man --out ~/.local/share/man/man1 && man millpond-sweep"
    )]
    Man {
        /// The folder to write to
        #[arg(long, value_name = "DIR", default_value = "man")]
        out: PathBuf,
    },
    /// Print the scenario reference of the book, in Markdown
    #[command(hide = true)]
    Reference,
}

/// The changes in a scenario.
#[derive(Args, Clone, Debug, Default)]
pub struct Overrides {
    /// Override a key: transport.kind=cubic, 'topology.fabric-link={ rate = "100Gbps", delay =
    /// "1us" }'
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
}

/// Which numbers.
#[derive(Args, Clone, Debug, Default)]
pub struct Shows {
    /// Numbers to show, instead of those of the scenario's `shows`:
    /// queries.qct.p99,rpc.latency.p99,timeouts (CLASS.METRIC.STAT, or one of the network)
    /// [default: those that suit the traffic]
    #[arg(long = "shows", value_name = "NAME,…", value_delimiter = ',')]
    pub names: Vec<String>,
}

/// Which seeds.
#[derive(Args, Clone, Debug, Default)]
pub struct Seeds {
    /// How many seeds (5 means 1 to 5), or from which to which (3..7, both included) [default: the
    /// scenario's or the experiment's]
    #[arg(
        long = "seeds",
        value_name = "N|A..B",
        value_parser = seeds,
        allow_negative_numbers = true
    )]
    pub range: Option<(u64, u64)>,
}

impl Seeds {
    /// The first to the last.
    pub fn inclusive(&self) -> Option<RangeInclusive<u64>> {
        self.range.map(|(from, to)| from..=to)
    }
}

/// How much at a time.
#[derive(Args, Debug, Default)]
pub struct Threads {
    /// Threads, or runs at a time; the results are the same for any number [default: all cores, and
    /// one for a run whose windows hold too little to share]
    #[arg(
        long = "threads",
        value_name = "N",
        value_parser = threads,
        allow_negative_numbers = true
    )]
    pub given: Option<usize>,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The scenario (TOML; - is standard input), or a results folder's manifest.json to run again
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub shows: Shows,
    /// Run this variant of the scenario
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// The seed of every random stream [default: the scenario's]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    pub seed: Option<u64>,
    /// Where to run it
    #[arg(long, value_enum, default_value = "sim")]
    pub world: WorldName,
    /// In world virtual: stop at this time (5ms) and read commands for hosts, such as
    /// "host0 ss -ti", from standard input; "go 2ms" goes on; "help" has all
    #[arg(long, value_name = "TIME")]
    pub console: Option<millpond::Time>,
    #[command(flatten)]
    pub scale: Scale,
    #[command(flatten)]
    pub threads: Threads,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The factor by which a lab slows the network.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Scale {
    /// In the lab: divide rates and multiply times by this [default: as this machine needs]
    #[arg(long = "scale", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub factor: Option<u32>,
}

/// Arguments of `new`.
#[derive(Args, Debug)]
pub struct NewArgs {
    /// The file to write; - is standard output
    #[arg(value_name = "FILE", default_value = "scenario.toml")]
    pub file: PathBuf,
    /// The network, such as leaf-spine:4x2x8 (leaves, spines, hosts a leaf), single-switch:32,
    /// fat-tree:4, dumbbell:8 or rail-optimised:4x4
    #[arg(long, value_name = "KIND[:SIZE]")]
    pub topology: Option<String>,
    /// The rate of each link, such as 25Gbps; for other uplinks edit fabric-link in the file
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// The transport, such as dctcp, cubic, dcqcn, homa or uet
    #[arg(long, value_name = "KIND")]
    pub transport: Option<String>,
    /// The traffic, such as web-search:0.5, incast:24, elephants:8MB or all-reduce:2MB
    #[arg(long, value_name = "KIND[:VALUE]")]
    pub traffic: Option<String>,
    /// The mechanisms to compare with the plain network, such as tlt,canary; or none
    #[arg(long, value_name = "NAME,…")]
    pub mechanisms: Option<String>,
    /// Ask nothing: take the default of each question that no option answers
    #[arg(long, short)]
    pub yes: bool,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The scenario (TOML; - is standard input)
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Compare these variants alone, the others with the first of them [default: all]
    #[arg(long = "variant", value_name = "NAME,…", value_delimiter = ',')]
    pub variants: Vec<String>,
    /// Vary a key instead of, or on top of, the scenario's variants:
    /// transport.kind=newreno,cubic,dctcp, or a range with its step:
    /// traffic.background.load=0.2..0.8/0.2
    #[arg(long = "vary", value_name = "KEY=A,B,…", value_parser = key_value)]
    pub vary: Vec<(String, String)>,
    #[command(flatten)]
    pub shows: Shows,
    /// Print slowdown by flow size, too
    #[arg(long)]
    pub by_size: bool,
    /// Run each variant in these worlds. Beside the lab, the simulator runs the lab's slowed
    /// network with the kernel's timers
    #[arg(long, value_enum, value_delimiter = ',', default_value = "sim", value_name = "NAME,…")]
    pub worlds: Vec<WorldName>,
    #[command(flatten)]
    pub scale: Scale,
    #[command(flatten)]
    pub seeds: Seeds,
    #[command(flatten)]
    pub threads: Threads,
    #[command(flatten)]
    pub judging: Judging,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The numbers that must not become worse.
#[derive(Args, Debug, Default)]
pub struct Judging {
    /// Exit with 5 if this number is worse than the baseline's by more than so many percent:
    /// queries.qct.p99=5. May be repeated
    #[arg(long = "tolerate", value_name = "NUMBER=PERCENT", value_parser = tolerance)]
    pub tolerances: Vec<millpond_results::Tolerance>,
    /// Judge each variant by the variant of its name in these results: the folder of a compare, or
    /// a file with what compare --json has printed [default: by the first variant]
    #[arg(long, value_name = "RESULT", requires = "tolerances")]
    pub baseline: Option<PathBuf>,
}

/// For which program a result is printed.
#[derive(Args, Debug, Default)]
pub struct FormatArgs {
    /// Print the result for another program, and nothing else, on stdout
    #[arg(long = "format", value_name = "NAME", value_enum, conflicts_with = "json")]
    pub name: Option<Format>,
}

/// The programs' forms.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JUnit's XML, for continuous integration
    Junit,
    /// A table, for issues and pull requests
    Markdown,
}

/// Arguments of `sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// The scenario (TOML; - is standard input)
    pub scenario: PathBuf,
    /// Values of a key; several --grid make their product: transport.kind=dctcp,cubic, or a range
    /// with its step: traffic.background.load=0.2..0.8/0.2
    #[arg(long = "grid", value_name = "KEY=A,B,…", value_parser = key_value)]
    pub grid: Vec<(String, String)>,
    #[command(flatten)]
    pub seeds: Seeds,
    /// Sweep the scenario's variants, too, as a key `variant`; some of them: --grid variant=A,B
    /// [default: the scenario as it stands]
    #[arg(long)]
    pub variants: bool,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub shows: Shows,
    /// Name the point with the best of this number [default: the first number shown]
    #[arg(long, value_name = "NAME")]
    pub best: Option<String>,
    /// Name the best point among those within this bound; several must all hold: "bulk.fct.mean <=
    /// 105 %" of the first point, "timeouts <= 0", "queries.qct.p99 <= 2ms"
    #[arg(long, value_name = "NAME<=LIMIT")]
    pub subject: Vec<String>,
    /// Leave out points that are no valid scenario, instead of stopping before the first run
    #[arg(long)]
    pub skip_invalid: bool,
    /// The files to keep of each run
    #[arg(long, value_enum, default_value = "summary")]
    pub keep: Keep,
    /// Make every Nth run, from the Ith, into a folder of the shard's own: a task of a batch system
    #[arg(long, value_name = "I/N", value_parser = shard, conflicts_with = "merge")]
    pub shard: Option<(u32, u32)>,
    /// Take the finished runs of these folders (shards of the same sweep), then make the others
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub merge: Vec<PathBuf>,
    #[command(flatten)]
    pub threads: Threads,
    /// Print what would be run and how long it may take
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: SweepOutput,
}

/// The files that `sweep` keeps of a run.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Its summary and manifest
    Summary,
    /// Its queries as well; those of all runs are pooled beside them
    Queries,
    /// Its flows, queries and report as well; flows and queries of all runs are pooled beside them
    All,
}

impl From<Keep> for millpond_results::Keep {
    fn from(keep: Keep) -> millpond_results::Keep {
        match keep {
            Keep::Summary => millpond_results::Keep::Summary,
            Keep::Queries => millpond_results::Keep::Queries,
            Keep::All => millpond_results::Keep::All,
        }
    }
}

/// Where a sweep goes and what is printed.
#[derive(Args, Debug)]
pub struct SweepOutput {
    /// The sweep's folder [default: out/<name>-sweep, of a shard out/<name>-sweep-I-of-N]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace what is there; of another sweep, keep the finished runs that both share
    #[arg(long)]
    pub force: bool,
    /// Print the result as JSON, and nothing else, on stdout
    #[arg(long)]
    pub json: bool,
    /// No progress and no table
    #[arg(long, short)]
    pub quiet: bool,
    /// Print all warnings instead of the first three
    #[arg(long)]
    pub verbose: bool,
}

impl SweepOutput {
    /// How many warnings are printed.
    pub fn warnings(&self) -> Warnings {
        if self.verbose { Warnings::All } else { Warnings::First }
    }
}

/// Arguments of `reproduce`.
#[derive(Args, Debug, Default)]
pub struct ReproduceArgs {
    /// The paper: presto, nrm, hpcc, tlt, backdraft, canary, all of them (all), or a folder with a
    /// paper.toml
    pub paper: Option<String>,
    /// Run what minutes can decide; claims that need more are not evaluated
    #[arg(long)]
    pub quick: bool,
    /// Print the claims as JSON, and nothing else, on stdout
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Exit with 1 if a claim fails
    #[arg(long)]
    pub strict: bool,
    /// Run and show only these: experiments, claims (S1a), groups of claims (S1)
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,
    #[command(flatten)]
    pub seeds: Seeds,
    #[command(flatten)]
    pub threads: Threads,
    /// Print what would be run and how long it may take
    #[arg(long)]
    pub dry_run: bool,
    /// The results folder [default: out/reproduce-PAPER, with --quick out/reproduce-PAPER-quick]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run the experiments of the lab, too: real kernel TCP and real programs (root, Linux)
    #[arg(long)]
    pub lab: bool,
    /// Run the experiments of world virtual, too: real Linux kernels in virtual time (Linux on
    /// x86_64)
    #[arg(long = "virtual")]
    pub kernels: bool,
    /// Write results.json and page.md of what was measured into the paper's folder DIR; of all
    /// papers gallery.html, one page of all claims, into the folder DIR
    #[arg(long, value_name = "DIR")]
    pub page: Option<PathBuf>,
    /// Run nothing: decide the claims by the runs that the paper's ledger has, runs.jsonl beside
    /// paper.toml, in a second
    #[arg(long, conflicts_with_all = ["quick", "record", "check", "dry_run", "out"])]
    pub from_ledger: bool,
    /// Run what the ledger lacks, and add it; can be stopped at any time [default: papers/PAPER]
    #[arg(long, value_name = "DIR", num_args = 0..=1, conflicts_with_all = ["quick", "dry_run"])]
    pub record: Option<Option<PathBuf>>,
    /// Repeat N runs of the ledger, drawn at random, and compare their digests
    #[arg(long, value_name = "N", conflicts_with_all = ["quick", "record", "dry_run", "page"])]
    pub check: Option<usize>,
    /// Run nothing: write gallery.html of the results that are recorded in the program, or in the
    /// folder of a paper
    #[arg(
        long,
        requires = "page",
        conflicts_with_all = [
            "quick", "strict", "only", "range", "given", "dry_run", "lab", "kernels", "out"
        ]
    )]
    pub recorded: bool,
    /// Replace finished runs of another version or of a changed scenario
    #[arg(long)]
    pub force: bool,
    /// No progress and no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of `export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The results folder
    pub dir: PathBuf,
    /// The file to write: NAME.csv is a table, NAME.txt the fct.txt of the HPCC family's simulators
    #[arg(value_name = "FILE", conflicts_with = "csv")]
    pub file: Option<PathBuf>,
    /// Which table [default: flows of a run, compare of a compare, sweep of a sweep]
    #[arg(
        long,
        value_name = "TABLE",
        value_parser = clap::builder::PossibleValuesParser::new(millpond_results::TABLES)
    )]
    pub table: Option<String>,
    /// The file to write; - is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub csv: PathBuf,
}

/// Whose files.
#[derive(Subcommand, Debug)]
pub enum ImportFrom {
    /// Files of HPCC's simulator and of its forks
    Hpcc {
        /// The configuration; the files that it names are looked for from here and from the folders
        /// above it
        config: PathBuf,
        /// The topology file [default: the one that the configuration names]
        #[arg(long, value_name = "FILE")]
        topology: Option<PathBuf>,
        /// The flow file [default: the one that the configuration names]
        #[arg(long, value_name = "FILE")]
        flows: Option<PathBuf>,
        /// A workload of SimAI, a program of GOAL, or Chakra's traces (NAME of NAME.0.et, …) in the
        /// place of flows
        #[arg(long, value_name = "FILE", conflicts_with = "flows")]
        workload: Option<PathBuf>,
        #[command(flatten)]
        output: ImportOutput,
    },
    /// Files of htsim
    Htsim {
        /// The connection matrix (.cm)
        matrix: PathBuf,
        /// The topology (.topo) [default: the fat tree that htsim makes of so many nodes]
        #[arg(long, value_name = "FILE")]
        topology: Option<PathBuf>,
        #[command(flatten)]
        output: ImportOutput,
    },
}

/// Where an import goes.
#[derive(Args, Debug)]
pub struct ImportOutput {
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Write nothing and exit with 2 if a key is unknown or not modelled, or a line is left out
    #[arg(long)]
    pub strict: bool,
    /// Report every key, not only those that the scenario lacks
    #[arg(long)]
    pub all: bool,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// Print the report as JSON, with every key
    #[arg(long)]
    pub json: bool,
}

/// Where results go and what is printed.
#[derive(Args, Clone, Debug)]
pub struct OutputArgs {
    /// The results folder [default: out/<name>; of a variant out/<name>-<variant>, of a compare
    /// out/<name>-compare]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the folder even if it holds something else than an older result of this command and
    /// scenario; compare makes finished runs again, except those of an interrupted call
    #[arg(long)]
    pub force: bool,
    /// Print the result as JSON, and nothing else, on stdout
    #[arg(long)]
    pub json: bool,
    /// No progress and no table
    #[arg(long, short)]
    pub quiet: bool,
    /// Print all warnings instead of the first three
    #[arg(long)]
    pub verbose: bool,
}

impl OutputArgs {
    /// How many warnings are printed.
    pub fn warnings(&self) -> Warnings {
        if self.verbose { Warnings::All } else { Warnings::First }
    }
}

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The scenario (TOML; - is standard input)
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Check this variant only [default: all]
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Print the scenario with every default written out, as TOML
    #[arg(long, conflicts_with = "json")]
    pub resolved: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `list`.
#[derive(Args, Debug)]
pub struct JsonArgs {
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_string(), value.trim().to_string()))
        }
        _ => Err("write KEY=VALUE, for example transport.kind=cubic".to_string()),
    }
}

fn tolerance(text: &str) -> Result<millpond_results::Tolerance, String> {
    let (number, percent) = key_value(text)
        .map_err(|_| "write NUMBER=PERCENT, for example queries.qct.p99=5".to_string())?;
    let percent = percent.trim_end_matches('%').trim();
    let percent: f64 = percent
        .parse()
        .ok()
        .filter(|percent| (0.0..=10_000.0).contains(percent))
        .ok_or("the percentage is a number from 0 to 10000".to_string())?;
    let tolerance = millpond_results::Tolerance { number, percent };
    tolerance.check().map(|()| tolerance)
}

fn shard(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((shard, of)) if (1..=of).contains(&shard) => Ok((shard, of)),
        _ => Err("write I/N with I from 1 to N, for example 3/8".to_string()),
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least one thread is needed".to_string()),
        Ok(n) if n > 1024 => Err("more than 1024 threads help nobody".to_string()),
        Ok(n) => Ok(n),
        Err(_) => Err("a whole number of threads from 1".to_string()),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// More seeds than this are a slip.
const SEEDS_MAX: u64 = 100_000;

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let help = "write how many, for example 5 (seeds 1 to 5), or A..B with A ≤ B (both included), \
                for example 3..7";
    if text == "0" {
        return Err(format!("no seeds, nothing to run; {help}, or 0..0 for seed 0 alone"));
    }
    let (a, b) = text.split_once("..").unwrap_or(("1", text));
    let b = b.strip_prefix('=').unwrap_or(b);
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) if a <= b && b - a >= SEEDS_MAX => {
            Err(format!("more than {SEEDS_MAX} seeds"))
        }
        (Ok(a), Ok(b)) if a <= b => Ok((a, b)),
        _ => Err(help.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn values_are_read_as_documented() {
        assert_eq!(key_value("a.b = c"), Ok(("a.b".into(), "c".into())));
        assert!(key_value("a.b").is_err());
        assert_eq!(seeds("1..5"), Ok((1, 5)));
        assert_eq!(seeds("3"), Ok((1, 3)));
        assert_eq!(seeds("3..3"), Ok((3, 3)));
        assert!(seeds("five").unwrap_err().contains("how many"));
        assert!(seeds("5..1").unwrap_err().contains("A ≤ B"));
        assert_eq!(seeds("0..99999"), Ok((0, 99_999)));
        assert_eq!(seeds("1..99999999999").unwrap_err(), "more than 100000 seeds");
        assert!(seeds("0").unwrap_err().contains("0..0 for seed 0"));
        assert_eq!(seeds("0..0"), Ok((0, 0)));
        assert!(threads("0").unwrap_err().contains("at least one"));
        let read = |text: &str| tolerance(text).map(|of| (of.number, of.percent));
        assert_eq!(read("timeouts=5"), Ok(("timeouts".into(), 5.0)));
        assert_eq!(read("q.qct.p99 = 2.5 %"), Ok(("q.qct.p99".into(), 2.5)));
        assert!(read("timeouts").unwrap_err().contains("NUMBER=PERCENT"));
        assert!(read("timeouts=-1").unwrap_err().contains("from 0 to 10000"));
        assert!(read("packets.marked=1").unwrap_err().contains("neither more nor less"));
    }
}
