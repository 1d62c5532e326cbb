//! Writes one run: rows as flows and queries end, statistics while they pass, the summary and the
//! page at the end.
//!
//! Invariant: memory grows with the records of what is open at the end, and with no others; the
//! bytes depend on the records, their order and the totals alone (manifest aside); without
//! [`RunWriter::finish`] no file of the run remains.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_core::{Bytes, Time};
use parquet::data_type::ByteArray;

use crate::capture::{Captures, Recording};
use crate::censoring;
use crate::columns::{self as tables, Of, ROW_GROUP, Table};
use crate::compare::statistics;
use crate::completions::{Completions, PS_PER_US, Slowdowns};
use crate::error::{At, Error, Result};
use crate::html;
use crate::manifest::{Kind, Manifest};
use crate::ordered::Ordered;
use crate::record::{
    ConnectionRecord, FlowRecord, PacketRecord, PauseRecord, QueryRecord, QueueRecord,
};
use crate::shows::{Column, columns};
use crate::sizes::{self, BySize, SIZES, SizeBins};
use crate::statistics::Samples;
use crate::summary::{
    Application, Fct, Flows, Latency, Packets, Percentiles, Rtt, SCHEMA, Slowdown, Spread, Status,
    Summary, Timers, Totals, World,
};
use crate::survival::percentiles;

/// Rows of `flows.parquet`.
pub(crate) const FLOWS: &str = "flows.parquet";
/// Rows of `queries.parquet`.
pub(crate) const QUERIES: &str = "queries.parquet";

/// The classes that every run has, before the header's own.
const BUILT_IN: [&str; 3] = ["all", "mice", "elephants"];

/// What is known of a run before it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The scenario's name.
    pub name: String,
    /// The seed.
    pub seed: u64,
    /// The variant, if the scenario has any.
    pub variant: Option<String>,
    /// Where it runs.
    pub world: World,
    /// Every traffic's name, then the classes of CSV files. Unique, and none of `all`, `mice`,
    /// `elephants`.
    pub classes: Vec<String>,
    /// Flows smaller than this are mice.
    pub mice: Bytes,
    /// Flows larger than this are elephants.
    pub elephants: Bytes,
    /// By which sizes slowdown is told.
    pub size_bins: SizeBins,
}

pub(crate) const FLOW_COLUMNS: [tables::Column<'static>; 14] = [
    ("flow", Of::U32, "number of the flow"),
    ("class", Of::Name, "its traffic's name, or its class in the CSV file"),
    ("src", Of::U32, "sending host"),
    ("dst", Of::U32, "receiving host"),
    ("bytes", Of::I64, "application bytes"),
    ("start_us", Of::F64, "when it started, in microseconds"),
    (
        "fct_us",
        Of::OptionalF64,
        "start to last byte delivered in order, in microseconds; null if unfinished",
    ),
    (
        "fct_sender_us",
        Of::OptionalF64,
        "first data byte sent to last byte acknowledged, in microseconds",
    ),
    ("slowdown", Of::OptionalF64, "fct_us over that of the same flow alone in the empty network"),
    (
        "retransmitted",
        Of::OptionalU32,
        "data packets sent again; null for a call on a persistent connection",
    ),
    (
        "timeouts",
        Of::OptionalU32,
        "retransmission timeouts; null for a call on a persistent connection",
    ),
    (
        "out_of_order",
        Of::OptionalU32,
        "data packets that arrived before an earlier one, late or lost; null if not counted",
    ),
    (
        "path_changes",
        Of::OptionalU32,
        "how often the path changed between two packets; null if not counted",
    ),
    ("query", Of::OptionalU32, "the query that it answers"),
];

pub(crate) const QUERY_COLUMNS: [tables::Column<'static>; 7] = [
    ("query", Of::U32, "number of the query"),
    ("class", Of::Name, "its traffic's name"),
    ("client", Of::U32, "the host that asks"),
    ("degree", Of::U32, "flows that answer"),
    ("start_us", Of::F64, "when its first request was sent, or it started, in microseconds"),
    (
        "qct_us",
        Of::OptionalF64,
        "start to last response complete, in microseconds; null if unfinished",
    ),
    ("completed", Of::U32, "responses complete"),
];

/// What is kept of a run besides `summary.json` and `manifest.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Nothing.
    Summary,
    /// `queries.parquet`.
    Queries,
    /// `flows.parquet` and `queries.parquet`.
    Flows,
    /// `flows.parquet`, `queries.parquet`, `sizes.parquet` and `report.html`.
    #[default]
    All,
}

/// The classes of an application together, while records pass.
struct Group {
    name: String,
    /// Places in the header; `None`: all.
    classes: Option<Vec<u16>>,
    fct: Completions,
    slowdown: Slowdowns,
    qct: Completions,
}

impl Group {
    fn has(&self, class: u16) -> bool {
        self.classes.as_ref().is_none_or(|classes| classes.contains(&class))
    }
}

/// One run being written.
pub struct RunWriter {
    dir: PathBuf,
    /// What paths of temporary files begin with.
    spill: PathBuf,
    header: Header,
    names: Vec<ByteArray>,
    /// `None` once closed, or if no rows of flows are kept.
    flows: Option<Table>,
    /// `None` once closed, or if no rows of queries are kept.
    queries: Option<Table>,
    /// Of the built-in classes and the header's, in this order.
    fct: Vec<Completions>,
    slowdown: Vec<Slowdowns>,
    by_size: BySize,
    qct: Completions,
    /// Of the header's classes, in their order.
    qct_by_class: Vec<Completions>,
    applications: Vec<Group>,
    rtt: Samples,
    /// Round-trip times and timeouts by class, if they are told.
    timers: Option<Vec<[Samples; 2]>>,
    keep: Keep,
    recording: Recording,
    finished: bool,
}

impl RunWriter {
    /// Opens the files of a run in `dir`, which is a [`Folder`](crate::Folder) or a folder within
    /// one, made if need be.
    ///
    /// # Errors
    /// [`Error::ClassName`] if two classes have one name or a name is reserved, [`Error::Io`] if a
    /// file cannot be made.
    pub fn new(dir: impl AsRef<Path>, header: Header) -> Result<RunWriter> {
        RunWriter::keeping(Keep::All, dir, header)
    }

    /// Does the same for a run of which only `keep` is kept.
    ///
    /// # Errors
    /// As [`RunWriter::new`].
    pub fn keeping(keep: Keep, dir: impl AsRef<Path>, header: Header) -> Result<RunWriter> {
        let dir = dir.as_ref().to_path_buf();
        check_classes(&header.classes)?;
        fs::create_dir_all(&dir).at("create", &dir)?;
        let mut writer = RunWriter::collecting(keep, dir.join(".spill-"), dir, header)?;
        let notes = [
            ("schema", SCHEMA.to_string()),
            ("mice_bytes", writer.header.mice.get().to_string()),
            ("elephants_bytes", writer.header.elephants.get().to_string()),
            ("size_bins", writer.header.size_bins.note()),
        ];
        // From here on, dropping the writer removes the files.
        if matches!(keep, Keep::Flows | Keep::All) {
            writer.flows =
                Some(Table::create(&writer.dir.join(FLOWS), &FLOW_COLUMNS, &notes, ROW_GROUP)?);
        }
        if keep != Keep::Summary {
            let table =
                Table::create(&writer.dir.join(QUERIES), &QUERY_COLUMNS, &notes[..1], ROW_GROUP)?;
            writer.queries = Some(table);
        }
        Ok(writer)
    }

    /// A writer that has no files yet; names of temporary ones begin with `spill`.
    fn collecting(keep: Keep, spill: PathBuf, dir: PathBuf, header: Header) -> Result<RunWriter> {
        check_classes(&header.classes)?;
        let classes = BUILT_IN.len() + header.classes.len();
        let samples = |what: &str, n: usize| Samples::new(longer(&spill, format!("{what}-{n}")));
        Ok(RunWriter {
            names: header.classes.iter().map(|name| ByteArray::from(name.as_str())).collect(),
            flows: None,
            queries: None,
            fct: (0..classes).map(|n| Completions::new(samples("fct", n))).collect(),
            slowdown: (0..classes).map(|n| Slowdowns::new(samples("slowdown", n))).collect(),
            by_size: BySize::new(longer(&spill, "size")),
            qct: Completions::new(samples("qct", 0)),
            qct_by_class: (0..header.classes.len())
                .map(|n| Completions::new(samples("qct-of", n)))
                .collect(),
            applications: Vec::new(),
            rtt: samples("rtt", 0),
            timers: None,
            keep,
            recording: Recording::none(),
            finished: false,
            header,
            spill,
            dir,
        })
    }

    /// The same for a run of which no file is kept, which ends by [`RunWriter::conclude`]. Values
    /// that memory does not hold go to nameless temporary files.
    ///
    /// # Errors
    /// If a class name is used twice, or is one of those that results give themselves.
    pub fn in_memory(header: Header) -> Result<RunWriter> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let spill =
            std::env::temp_dir().join(format!(".millpond-{}-{number}-", std::process::id()));
        let mut writer = RunWriter::collecting(Keep::Summary, spill, PathBuf::new(), header)?;
        // There are no files to remove.
        writer.finished = true;
        Ok(writer)
    }

    /// Records `what` as well. Call before the first record.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be made.
    pub fn capture(&mut self, what: &Captures) -> Result<()> {
        if what.timers {
            let samples =
                |what: &str, n: usize| Samples::new(longer(&self.spill, format!("{what}-{n}")));
            self.timers = Some(
                (0..self.fct.len()).map(|n| [samples("srtt", n), samples("rto", n)]).collect(),
            );
        }
        if self.finished {
            return Ok(());
        }
        self.recording.open(&self.dir, what, &self.header.classes, ("schema", SCHEMA.to_string()))
    }

    /// Tells the classes of applications together, too; `None`: all classes. Call before the first
    /// record.
    pub fn applications(
        &mut self,
        applications: impl IntoIterator<Item = (String, Option<Vec<u16>>)>,
    ) {
        for (n, (name, classes)) in applications.into_iter().enumerate() {
            let samples = |what: &str| {
                Samples::new(longer(&self.spill, format!("{what}-of-application-{n}")))
            };
            let (fct, qct) = (Completions::new(samples("fct")), Completions::new(samples("qct")));
            let slowdown = Slowdowns::new(samples("slowdown"));
            self.applications.push(Group { name, classes, fct, slowdown, qct });
        }
    }

    /// Adds a sample of a queue. Rows keep the order of the calls.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn queue(&mut self, record: &QueueRecord) -> Result<()> {
        self.recording.queue(record)
    }

    /// Adds a sample of a connection. Rows keep the order of the calls.
    ///
    /// # Errors
    /// [`Error::UnknownClass`] if the header has no such class, [`Error::Io`] if the file cannot be
    /// written.
    pub fn connection(&mut self, record: &ConnectionRecord) -> Result<()> {
        self.class(record.flow, record.class)?;
        self.recording.connection(record)
    }

    /// Adds a captured packet.
    ///
    /// # Errors
    /// [`Error::Io`] if the capture cannot be written.
    pub fn packet(&mut self, record: &PacketRecord) -> Result<()> {
        self.recording.packet(record)
    }

    /// Adds a captured PAUSE frame.
    ///
    /// # Errors
    /// [`Error::Io`] if the capture cannot be written.
    pub fn pause(&mut self, record: &PauseRecord) -> Result<()> {
        self.recording.pause(record)
    }

    /// Adds a flow that ended, or that is unfinished at the end. Rows keep the order of the calls.
    ///
    /// # Errors
    /// [`Error::UnknownClass`] if the header has no such class, [`Error::EndsEarly`] if the flow
    /// ends before it starts, [`Error::Io`] if a file cannot be written.
    pub fn flow(&mut self, flow: &FlowRecord) -> Result<()> {
        let own = self.class(flow.flow, flow.class)?;
        if flow.finish.is_some_and(|finish| finish < flow.start) {
            return Err(Error::EndsEarly(flow.flow));
        }
        if !flow.counted {
            return Ok(());
        }
        self.recording.flow(flow)?;
        let (fct, slowdown) = (flow.fct(), flow.slowdown());
        let mouse = flow.is_mouse(self.header.mice).then_some(1);
        let elephant = flow.is_elephant(self.header.elephants).then_some(2);
        for class in [Some(0), mouse, elephant, Some(own)].into_iter().flatten() {
            self.fct[class].push(flow.start, fct)?;
            self.slowdown[class].push(flow, slowdown)?;
            if let Some(timers) = &mut self.timers
                && flow.srtt > Time::ZERO
            {
                let [srtt, rto] = &mut timers[class];
                srtt.push(flow.srtt.as_ps())?;
                rto.push(flow.rto.as_ps())?;
            }
        }
        for group in self.applications.iter_mut().filter(|group| group.has(flow.class)) {
            group.fct.push(flow.start, fct)?;
            group.slowdown.push(flow, slowdown)?;
        }
        // A flow that completed and whose FCT alone is not known has no slowdown, and is not open
        // either.
        if slowdown.is_some() || fct.is_none() {
            self.by_size.push(flow.bytes, slowdown)?;
        }
        let Some(table) = &mut self.flows else { return Ok(()) };
        let us = |time: Option<Time>| time.map(Time::as_us_f64);
        table
            .u32(flow.flow)
            .name(&self.names[flow.class as usize])
            .u32(flow.src)
            .u32(flow.dst)
            .i64(flow.bytes);
        table.f64(flow.start.as_us_f64()).optional_f64(us(fct)).optional_f64(us(flow.fct_sender()));
        let own = |count: u32| (!flow.is_call).then_some(count);
        table
            .optional_f64(slowdown)
            .optional_u32(own(flow.retransmitted))
            .optional_u32(own(flow.timeouts));
        table
            .optional_u32(flow.out_of_order)
            .optional_u32(flow.path_changes)
            .optional_u32(flow.query)
            .end_row()
    }

    /// Adds a query that ended, or that is unfinished at the end.
    ///
    /// # Errors
    /// [`Error::UnknownClass`] if the header has no such class, [`Error::EndsEarly`] if the query
    /// ends before it starts, [`Error::Io`] if a file cannot be written.
    pub fn query(&mut self, query: &QueryRecord) -> Result<()> {
        self.class(query.query, query.class)?;
        if query.finish.is_some_and(|finish| finish < query.start) {
            return Err(Error::EndsEarly(query.query));
        }
        if !query.counted {
            return Ok(());
        }
        self.recording.query(query)?;
        self.qct.push(query.start, query.qct())?;
        self.qct_by_class[usize::from(query.class)].push(query.start, query.qct())?;
        for group in self.applications.iter_mut().filter(|group| group.has(query.class)) {
            group.qct.push(query.start, query.qct())?;
        }
        let Some(table) = &mut self.queries else { return Ok(()) };
        table
            .u32(query.query)
            .name(&self.names[query.class as usize])
            .u32(query.client)
            .u32(query.degree);
        table
            .f64(query.start.as_us_f64())
            .optional_f64(query.qct().map(Time::as_us_f64))
            .u32(query.completed);
        table.end_row()
    }

    /// Adds a round-trip time that a probe measured.
    ///
    /// # Errors
    /// [`Error::Io`] if the spill file cannot be written.
    pub fn rtt(&mut self, rtt: Time) -> Result<()> {
        self.rtt.push(rtt.as_ps())
    }

    /// Ends the run: closes the tables, writes `summary.json`, `report.html` and, last,
    /// `manifest.json`. Returns the summary.
    ///
    /// Of `manifest` it takes what header and totals lack: version, scenario, overrides, machine,
    /// start.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be written or a spill file cannot be read.
    pub fn finish(mut self, totals: Totals, manifest: Manifest) -> Result<Summary> {
        for table in [self.flows.take(), self.queries.take()].into_iter().flatten() {
            table.close()?;
        }
        self.recording.close()?;
        let summary = show(self.summary(totals)?, &manifest.shows);
        crate::write_json(&self.dir.join("summary.json"), &summary)?;
        let manifest = Manifest {
            kind: Kind::Run,
            name: summary.name.clone(),
            world: summary.world,
            seed: summary.seed,
            variant: summary.variant.clone(),
            status: summary.status,
            warnings: summary.warnings.clone(),
            ..manifest
        };
        if self.keep == Keep::All {
            sizes::write(&self.dir, &summary.slowdown_by_size)?;
            html::write_run(&self.dir, &summary, &manifest)?;
        }
        manifest.write(&self.dir)?;
        self.finished = true;
        Ok(summary)
    }

    /// Ends a run [in memory](RunWriter::in_memory); `shows` are the numbers that its summary
    /// shows.
    ///
    /// # Errors
    /// If a temporary file cannot be read.
    pub fn conclude(mut self, totals: Totals, shows: &[String]) -> Result<Summary> {
        Ok(show(self.summary(totals)?, shows))
    }

    /// The place of a record's own class among the statistics.
    fn class(&self, record: u32, class: u16) -> Result<usize> {
        let classes = self.header.classes.len();
        if usize::from(class) < classes {
            return Ok(BUILT_IN.len() + usize::from(class));
        }
        Err(Error::UnknownClass { record, class, classes })
    }

    /// The statistics of flows, by class; takes the samples.
    fn of_flows(&mut self, horizon: Time) -> Result<OfFlows> {
        let header = &self.header;
        let classes =
            || BUILT_IN.iter().map(|name| name.to_string()).chain(header.classes.iter().cloned());
        let mut flows = OfFlows::default();
        for (name, completions) in classes().zip(self.fct.drain(..)) {
            flows.fct_us.push((name, completions.end(horizon)?.fct()));
        }
        for (name, slowdowns) in classes().zip(self.slowdown.drain(..)) {
            flows.slowdown.push((name, slowdowns.end(horizon)?));
        }
        for (name, [mut srtt, mut rto]) in classes().zip(self.timers.take().into_iter().flatten()) {
            let timer =
                Timers { count: srtt.count(), srtt: spread(&mut srtt)?, rto: spread(&mut rto)? };
            flows.timers.push((name, timer));
        }
        Ok(flows)
    }

    /// The statistics of applications, by name; takes the samples.
    fn of_applications(&mut self, horizon: Time) -> Result<Vec<(String, Application)>> {
        let mut applications = Vec::new();
        for Group { name, fct, slowdown, qct, .. } in self.applications.drain(..) {
            let fct_us = fct.end(horizon)?.fct();
            let (slowdown, qct_us) = (slowdown.end(horizon)?, qct.end(horizon)?.qct());
            applications.push((name, Application { fct_us, slowdown, qct_us }));
        }
        Ok(applications)
    }

    fn summary(&mut self, totals: Totals) -> Result<Summary> {
        let OfFlows { fct_us, slowdown, timers } = self.of_flows(totals.horizon)?;
        let mut by_size = std::mem::replace(&mut self.by_size, BySize::new(PathBuf::new()));
        let is_cut_by_flows = matches!(self.header.size_bins, SizeBins::Equal(_));
        let by_fixed_size =
            if is_cut_by_flows { by_size.by_fixed_size()? } else { Ordered::default() };
        let qct = std::mem::replace(&mut self.qct, Completions::new(Samples::new(PathBuf::new())));
        let mut qct_by_class = Vec::new();
        for (name, completions) in self.header.classes.iter().zip(self.qct_by_class.drain(..)) {
            qct_by_class.push((name.clone(), completions.end(totals.horizon)?.qct()));
        }
        qct_by_class.retain(|(_, qct)| qct.started > 0);
        let applications = self.of_applications(totals.horizon)?;
        let Percentiles { p50, p90, p95, p99, p999, .. } =
            percentiles(&mut self.rtt, |between| between.interpolate(PS_PER_US))?;
        let (completed, unfinished) =
            fct_us.first().map_or((0, 0), |(_, all)| (all.count, all.unfinished));
        let measured_ps = totals.measured.as_ps() as f64;
        let is_call = |name: &&(String, Fct)| totals.calls.contains(&name.0);
        let latency: Vec<(String, Latency)> = fct_us
            .iter()
            .filter(is_call)
            .map(|(name, fct)| (name.clone(), Latency::of(fct)))
            .collect();
        let header = &self.header;
        let summary = Summary {
            schema: SCHEMA,
            name: header.name.clone(),
            world: header.world,
            seed: header.seed,
            variant: header.variant.clone(),
            status: if totals.audit.conserved { totals.status } else { Status::Failed },
            until_complete: totals.until_complete,
            flows: Flows {
                started: completed + unfinished,
                completed,
                not_started: totals.not_started,
                bytes_delivered: totals.bytes_delivered,
                // Bits a picosecond are Tb/s.
                goodput_gbps: (measured_ps > 0.0)
                    .then(|| totals.bytes_delivered as f64 * 8e3 / measured_ps),
            },
            latency_us: Ordered::from(latency),
            fct_us: Ordered::from(fct_us),
            slowdown: Ordered::from(slowdown),
            slowdown_by_size: by_size.by(&self.header.size_bins)?,
            slowdown_by_fixed_size: by_fixed_size,
            qct_us: qct.end(totals.horizon)?.qct(),
            qct_by_class_us: Ordered::from(qct_by_class),
            applications: Ordered::from(applications),
            shows: Ordered::default(),
            rtt_us: Rtt { count: self.rtt.count(), p50, p90, p95, p99, p999 },
            timers_us: Ordered::from(timers),
            goodput_over_time: totals.goodput_over_time.clone(),
            packets: Packets::of(&totals),
            warnings: totals.warnings,
            run: totals.run,
            timeouts: totals.timeouts,
            pause_frames: totals.pause_frames,
            overlay_pauses: totals.overlay_pauses,
            fairness_jain: totals.fairness_jain.filter(|index| index.is_finite()),
            mechanisms: totals.mechanisms,
            limits: totals.limits,
            audit: totals.audit,
        };
        let warnings = censoring::warnings(std::slice::from_ref(&summary));
        Ok(Summary {
            warnings: summary.warnings.iter().cloned().chain(warnings).collect(),
            ..summary
        })
    }
}

/// Statistics of flows, by class.
#[derive(Default)]
struct OfFlows {
    fct_us: Vec<(String, Fct)>,
    slowdown: Vec<(String, Slowdown)>,
    timers: Vec<(String, Timers)>,
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.finished {
            for name in [FLOWS, QUERIES, SIZES, "summary.json", "report.html"] {
                let _ = fs::remove_file(self.dir.join(name));
            }
            for file in &self.recording.files {
                let _ = fs::remove_file(file);
            }
        }
    }
}

/// The path with something appended to its last part.
fn longer(path: &Path, with: impl AsRef<OsStr>) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(with);
    name.into()
}

/// The summary with the numbers of these names.
fn show(summary: Summary, names: &[String]) -> Summary {
    if names.is_empty() {
        return summary;
    }
    let tree = statistics(&summary);
    let columns = columns(names, &[&tree]);
    let number = |column: Column| {
        (column.name.clone(), tree.leaf(&column.at()).and_then(|estimate| estimate.mean))
    };
    Summary { shows: columns.into_iter().map(number).collect(), ..summary }
}

fn check_classes(classes: &[String]) -> Result<()> {
    for (at, name) in classes.iter().enumerate() {
        if BUILT_IN.contains(&name.as_str()) {
            return Err(Error::ClassName(
                name.clone(),
                "is a class that every result has; choose another",
            ));
        }
        if classes[..at].contains(name) {
            return Err(Error::ClassName(name.clone(), "is used twice"));
        }
    }
    Ok(())
}

fn spread(samples: &mut Samples) -> Result<Spread> {
    let Percentiles { p50, p95, p99, .. } =
        percentiles(samples, |between| between.interpolate(PS_PER_US))?;
    Ok(Spread { p50, p95, p99 })
}
