//! Writes one run: rows as flows and queries end, statistics while they pass, the summary and the
//! page at the end.
//!
//! Invariant: memory grows with the records of what is open at the end, and with no others; the
//! bytes depend on the records, their order and the totals alone (manifest aside); without
//! [`RunWriter::finish`] no file of the run remains.

pub(crate) mod capture;
pub(crate) mod connections;
mod jobs;
pub(crate) mod pcap;
mod programs;
mod summing;
mod trace;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_core::{Bytes, Time};
use parquet::data_type::ByteArray;

use crate::model::summary::Summary;
use crate::model::{
    At, COLLECTIVES, CollectiveRecord, ConnectionRecord, Error, FLOW_COLUMNS, FLOWS, FlowRecord,
    Kind, Manifest, PacketRecord, PauseRecord, QUERIES, QUERY_COLUMNS, QueryRecord, QueueRecord,
    RANKS, REPORT, RankRecord, Result, SCHEMA, SIZES, Table, Totals, World, replace_file,
    write_sizes,
};
use crate::render::html;
use crate::statistics::by_size::{BySize, SizeBins};
use crate::statistics::completions::{Completions, Slowdowns};
use crate::statistics::samples::Samples;
use capture::{Captures, Recording};
pub use jobs::JobHeader;
use jobs::Jobs;
use programs::Outputs;
use summing::show;

/// The classes that every run has, before the header's own.
const BUILT_IN: [&str; 3] = ["all", "mice", "elephants"];

/// The facts about a run that are known before it starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    pub name: String,
    pub seed: u64,
    /// The variant, if the scenario has any.
    pub variant: Option<String>,
    pub world: World,
    /// Every traffic's name, then the classes of CSV files. Unique, and none of `all`, `mice`,
    /// `elephants`.
    pub classes: Vec<String>,
    /// Flows smaller than this are mice.
    pub mice: Bytes,
    /// Flows larger than this are elephants.
    pub elephants: Bytes,
    /// By which sizes slowdown is reported.
    pub size_bins: SizeBins,
    pub jobs: Vec<JobHeader>,
}

/// The files that are kept of a run besides `summary.json` and `manifest.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    Summary,
    /// `queries.parquet`.
    Queries,
    /// `flows.parquet`, `queries.parquet` and the output of programs.
    Flows,
    /// `flows.parquet`, `queries.parquet`, `sizes.parquet`, the output of programs and
    /// `report.html`.
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

pub struct RunWriter {
    dir: PathBuf,
    /// The beginning of the paths of temporary files.
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
    responses: Vec<(String, Completions)>,
    /// Round-trip times and timeouts by class, if they are asked for.
    timers: Option<Vec<[Samples; 2]>>,
    keep: Keep,
    recording: Recording,
    outputs: Outputs,
    jobs: Jobs,
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
            writer.flows = Some(Table::of(&writer.dir.join(FLOWS), &FLOW_COLUMNS, &notes)?);
        }
        if keep != Keep::Summary {
            let path = writer.dir.join(QUERIES);
            writer.queries = Some(Table::of(&path, &QUERY_COLUMNS, &notes[..1])?);
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
            responses: Vec::new(),
            timers: None,
            keep,
            recording: Recording::default(),
            outputs: Outputs::default(),
            jobs: Jobs::new(&header.jobs, samples),
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

    /// Reports the classes of each application together, too; `None`: all classes. Call before the
    /// first record.
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
        let class = usize::from(flow.class);
        table.row(&FLOW_COLUMNS, flow, &self.names[class..=class])
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
        let class = usize::from(query.class);
        table.row(&QUERY_COLUMNS, query, &self.names[class..=class])
    }

    /// Adds a rank's part of a round. Rows keep the order of the calls.
    ///
    /// # Errors
    /// [`Error::UnknownClass`] if the header has no such class, [`Error::Io`] if the file cannot be
    /// written.
    pub fn rank(&mut self, record: &RankRecord) -> Result<()> {
        self.class(record.round, record.class)?;
        let dir = self.keeps_jobs().then_some(self.dir.as_path());
        self.jobs.rank(record, &self.names[usize::from(record.class)], dir)
    }

    /// Adds a round of a job that all ranks have ended, or that is unfinished at the end.
    ///
    /// # Errors
    /// As [`RunWriter::rank`].
    pub fn collective(&mut self, record: &CollectiveRecord) -> Result<()> {
        self.class(record.round, record.class)?;
        let dir = self.keeps_jobs().then_some(self.dir.as_path());
        let job = self.header.jobs.iter().position(|job| job.class == record.class);
        let name = &self.names[usize::from(record.class)];
        self.jobs.collective(record, job.unwrap_or(usize::MAX), name, dir)
    }

    /// Whether there are files of jobs.
    fn keeps_jobs(&self) -> bool {
        !self.finished && matches!(self.keep, Keep::Flows | Keep::All)
    }

    /// Adds a round-trip time that a probe measured.
    ///
    /// # Errors
    /// [`Error::Io`] if the spill file cannot be written.
    pub fn rtt(&mut self, rtt: Time) -> Result<()> {
        self.rtt.push(rtt.as_ps())
    }

    /// Adds the response time that a program of a class reported.
    ///
    /// # Errors
    /// [`Error::Io`] if the spill file cannot be written.
    pub fn response(&mut self, class: &str, time: Time) -> Result<()> {
        let known = self.responses.iter().position(|(name, _)| name == class);
        let at = known.unwrap_or_else(|| {
            let samples = longer(&self.spill, format!("response-{}", self.responses.len()));
            self.responses.push((class.to_string(), Completions::new(Samples::new(samples))));
            self.responses.len() - 1
        });
        self.responses[at].1.push(Time::ZERO, Some(time))
    }

    /// Adds bytes that a program wrote to `stream` (`stdout` or `stderr`), in the file
    /// `programs/PROGRAM.STREAM`. The first call makes the file. A run in memory keeps none.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn output(&mut self, program: &str, stream: &str, bytes: &[u8]) -> Result<()> {
        if self.finished || !matches!(self.keep, Keep::Flows | Keep::All) {
            return Ok(());
        }
        self.outputs.write(&self.dir, program, stream, bytes)
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
        self.jobs.close()?;
        let inputs = totals.inputs.clone();
        let summary = show(self.summary(totals)?, &manifest.shows);
        crate::model::files::write_json(&self.dir.join("summary.json"), &summary)?;
        let manifest = Manifest {
            kind: Kind::Run,
            name: summary.name.clone(),
            world: summary.world,
            seed: summary.seed,
            variant: summary.variant.clone(),
            status: summary.status,
            warnings: summary.warnings.clone(),
            inputs,
            ..manifest
        };
        if self.keep == Keep::All {
            write_sizes(&self.dir, &summary.slowdown_by_size)?;
            replace_file(
                &self.dir,
                REPORT,
                html::run_page(&self.dir, &summary, &manifest)?.as_bytes(),
            )?;
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
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.finished {
            for name in [FLOWS, QUERIES, SIZES, COLLECTIVES, RANKS, "summary.json", "report.html"] {
                let _ = fs::remove_file(self.dir.join(name));
            }
            for file in &self.recording.files {
                let _ = fs::remove_file(file);
            }
            self.outputs.remove(&self.dir);
        }
    }
}

/// The path with something appended to its last part.
fn longer(path: &Path, with: impl AsRef<OsStr>) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(with);
    name.into()
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
