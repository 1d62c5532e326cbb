//! One plan, run into memory or into a results folder.
//!
//! No world reads the clock for its results; it calls [`Observer::edge`] now and then, and the
//! clock is read here.

use crate::totals::{captures, classes_of_applications, header, link_failures};
use crate::{
    ConnectionRecord, Control, Error, FlowRecord, Observer, Options, PacketRecord, PauseRecord,
    Plan, Progress, QueryRecord, QueueRecord, Standing, Status, Summary, Time, Totals, revision,
};
use millpond_results::{
    CollectiveRecord, Folder, Header, Kind, Manifest, Owner, RankRecord, RunWriter,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Runs a plan and returns its statistics. It writes no files, except nameless temporary ones where
/// memory does not hold all values (2 MB a statistic).
///
/// ```
/// use millpond::{Options, Scenario, run};
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n\
///             [[traffic]]\nkind = \"incast\"\ndegree = 3\nresponse = \"20KB\"\ncount = 1";
/// let summary = run(&Scenario::parse("a.toml", text)?.plan(None)?, &Options::default())?;
/// let fct = summary.fct_us.get("all").unwrap();
/// assert!(fct.count == 3 && fct.p99.unwrap() > 20.0);
/// # Ok::<(), millpond::Error>(())
/// ```
///
/// # Errors
/// If the world does not support the plan, or a temporary file cannot be written. A failed audit is
/// no error but the summary's status.
pub fn run(plan: &Plan, options: &Options<'_>) -> Result<Summary, Error> {
    let plan = &plan.prepared(|plan| options.world.prepare(plan))?.on(options.threads);
    let mut writer = RunWriter::in_memory(header(plan.detail(), options.world.kind()))?;
    begin(plan, &mut writer)?;
    options.world.note(plan).into_iter().for_each(|note| options.control.note(&note));
    let mut watch = Watch::new(writer, None, Some(options.control), options.control, plan);
    let totals = timed(plan, options.world.run(plan, &mut watch)?);
    Ok(watch.writer.conclude(totals, &plan.detail().shows)?)
}

/// A run in its results folder.
///
/// ```
/// fn print(written: &millpond::Written) {
///     println!("{} flows: {}", written.summary.flows.completed, written.folder.display());
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Written {
    /// The statistics.
    pub summary: Summary,
    /// Where the results are. An interrupted run does not replace the folder of a complete one:
    /// then it is that folder's temporary neighbour.
    pub folder: PathBuf,
    /// Whether an older, complete result kept its place.
    pub kept_older: bool,
}

impl Written {
    /// Reads the results folder of a run, and checks that its files are as they were written.
    ///
    /// ```no_run
    /// let written = millpond::Written::read("out/web")?;
    /// println!("{} flows", written.summary.flows.completed);
    /// # Ok::<(), millpond::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the folder holds no run, one in the form of another version, or a damaged file.
    pub fn read(folder: impl AsRef<Path>) -> Result<Written, Error> {
        let folder = folder.as_ref().to_path_buf();
        Manifest::read_kind(&folder, Kind::Run)?;
        Manifest::verified(&folder)?;
        Ok(Written { summary: Summary::read(&folder)?, folder, kept_older: false })
    }
}

/// Runs a plan and writes its results folder, in the place of an older result of the same scenario.
/// While it runs, `progress.json` in the folder's temporary neighbour `FOLDER.partial` reports how
/// far it is.
///
/// ```
/// use millpond::{Options, Scenario, run_into};
///
/// let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
///             [[traffic]]\nkind = \"permutation\"\nsize = \"5KB\"";
/// let folder = std::env::temp_dir().join(format!("millpond-doc-{}", std::process::id()));
/// let plan = Scenario::parse("pair.toml", text)?.plan(None)?;
/// let written = run_into(&plan, &folder, &Options::default())?;
/// assert!(written.folder.join("report.html").exists());
/// assert_eq!(millpond::Written::read(&folder)?.summary, written.summary);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), millpond::Error>(())
/// ```
///
/// # Errors
/// If `folder` holds something else and [`Options::force`] is off, if it cannot be written, or if
/// the world does not support the plan. Then the folder is what it was before. A failed audit is no
/// error but the summary's status.
pub fn run_into(
    plan: &Plan,
    folder: impl AsRef<Path>,
    options: &Options<'_>,
) -> Result<Written, Error> {
    let plan = &plan.prepared(|plan| options.world.prepare(plan))?.on(options.threads);
    let detail = plan.detail();
    let owner = Owner { variant: detail.variant.clone(), ..Owner::new(Kind::Run, &detail.name) };
    let folder = Folder::create(folder.as_ref(), &owner, options.force)?;
    let notes = folder.replaces().into_iter().chain(options.world.note(plan));
    notes.for_each(|note| options.control.note(&note));
    let open = |header| RunWriter::new(folder.path(), header);
    let summary = write(plan, open, Some(&folder), Some(options.control), options)?;
    // A part of a run is no replacement for a whole one.
    let kept_older = summary.status == Status::Interrupted && folder.would_replace_complete();
    let folder = if kept_older { folder.leave() } else { folder.commit()? };
    Ok(Written { summary, folder, kept_older })
}

/// Runs a plan and writes its files with the writer that `open` makes; `folder` gets
/// `progress.json`, and `shown` the progress.
pub(crate) fn write(
    plan: &Plan,
    open: impl FnOnce(Header) -> millpond_results::Result<RunWriter>,
    folder: Option<&Folder>,
    shown: Option<&dyn Control>,
    options: &Options<'_>,
) -> Result<Summary, Error> {
    let detail = plan.detail();
    let manifest = Manifest {
        identity: detail.identity(),
        base: detail.base.clone(),
        about: detail.about.clone(),
        variant_about: detail.variant_about.clone(),
        shows: detail.shows.clone(),
        overrides: plan.overrides().iter().map(|(key, value)| format!("{key}={value}")).collect(),
        failures: link_failures(detail),
        host_numbers: detail.topology.numbers.clone(),
        ports: detail.traffic.ports(),
        ..revision::manifest(detail.resolved.clone())
    };
    let mut writer = open(header(detail, options.world.kind()))?;
    begin(plan, &mut writer)?;
    let mut watch = Watch::new(writer, folder, shown, options.control, plan);
    let totals = timed(plan, options.world.run(plan, &mut watch)?);
    Ok(watch.writer.finish(totals, manifest)?)
}

/// Totals with the time that the plan's making took.
fn timed(plan: &Plan, mut totals: Totals) -> Totals {
    totals.run.setup_s = plan.setup().as_secs_f64();
    totals
}

/// Announces the records that come to a writer.
fn begin(plan: &Plan, writer: &mut RunWriter) -> Result<(), Error> {
    writer.capture(&captures(plan.detail()))?;
    writer.applications(classes_of_applications(plan.detail()));
    Ok(())
}

/// Between two reports of progress.
const SHOWN: Duration = Duration::from_millis(100);
/// Between two texts of `progress.json`.
const WRITTEN: Duration = Duration::from_secs(1);

/// Receives a run's records and reports how it goes.
struct Watch<'a> {
    writer: RunWriter,
    /// Gets `progress.json`. Several runs may share a folder; then none of them writes it.
    folder: Option<&'a Folder>,
    shown: Option<&'a dyn Control>,
    control: &'a dyn Control,
    horizon_s: f64,
    began: Instant,
    reported: Instant,
    written: Option<Instant>,
    /// Whether `progress.json` could not be written once: one warning is enough.
    lacks_progress: bool,
}

impl<'a> Watch<'a> {
    fn new(
        writer: RunWriter,
        folder: Option<&'a Folder>,
        shown: Option<&'a dyn Control>,
        control: &'a dyn Control,
        plan: &Plan,
    ) -> Watch<'a> {
        let now = Instant::now();
        let horizon_s = plan.horizon().as_s_f64();
        Watch {
            writer,
            folder,
            shown,
            control,
            horizon_s,
            began: now,
            reported: now,
            written: None,
            lacks_progress: false,
        }
    }

    fn progress(&self, standing: &Standing) -> Progress {
        let wall_s = self.began.elapsed().as_secs_f64();
        let simulated_s = standing.simulated.as_s_f64();
        let fraction = (self.horizon_s > 0.0).then(|| (simulated_s / self.horizon_s).min(1.0));
        Progress {
            simulated_s,
            horizon_s: Some(self.horizon_s),
            fraction,
            packet_hops: standing.hops,
            packet_hops_per_s: if wall_s > 0.0 { standing.hops as f64 / wall_s } else { 0.0 },
            flows_started: standing.started,
            flows_completed: standing.completed,
            wall_s,
            eta_s: fraction.filter(|f| *f > 0.0).map(|f| wall_s * (1.0 - f) / f),
            status: "running".to_string(),
        }
    }
}

impl Observer for Watch<'_> {
    fn flow(&mut self, record: &FlowRecord) -> Result<(), Error> {
        Ok(self.writer.flow(record)?)
    }

    fn query(&mut self, record: &QueryRecord) -> Result<(), Error> {
        Ok(self.writer.query(record)?)
    }

    fn rtt(&mut self, rtt: Time) -> Result<(), Error> {
        Ok(self.writer.rtt(rtt)?)
    }

    fn queue(&mut self, record: &QueueRecord) -> Result<(), Error> {
        Ok(self.writer.queue(record)?)
    }

    fn connection(&mut self, record: &ConnectionRecord) -> Result<(), Error> {
        Ok(self.writer.connection(record)?)
    }

    fn packet(&mut self, record: &PacketRecord) -> Result<(), Error> {
        Ok(self.writer.packet(record)?)
    }

    fn pause(&mut self, record: &PauseRecord) -> Result<(), Error> {
        Ok(self.writer.pause(record)?)
    }

    fn rank(&mut self, record: &RankRecord) -> Result<(), Error> {
        Ok(self.writer.rank(record)?)
    }

    fn collective(&mut self, record: &CollectiveRecord) -> Result<(), Error> {
        Ok(self.writer.collective(record)?)
    }

    fn response(&mut self, class: &str, time: Time) -> Result<(), Error> {
        Ok(self.writer.response(class, time)?)
    }

    fn output(&mut self, program: &str, stream: &str, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.writer.output(program, stream, bytes)?)
    }

    fn edge(&mut self, standing: &Standing) -> Result<bool, Error> {
        let now = Instant::now();
        if let Some(shown) = self.shown
            && now - self.reported > SHOWN
        {
            self.reported = now;
            shown.progress(&self.progress(standing));
        }
        if let Some(folder) = self.folder
            && self.written.is_none_or(|at| now - at >= WRITTEN)
        {
            self.written = Some(now);
            // Progress is for who watches: a full disk that is cleared in time costs no run.
            let written = folder.progress(&self.progress(standing));
            if let Err(error) = written
                && !std::mem::replace(&mut self.lacks_progress, true)
            {
                self.control.warn(&format!("{error}; the run goes on"));
            }
        }
        Ok(!self.control.is_stopped())
    }
}
