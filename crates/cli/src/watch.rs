//! Watching a run: progress on stderr, `progress.json` each second, Ctrl-C.
//!
//! The simulator reads no clock; it calls [`Watch::edge`] now and then, and the clock is read here.

use indicatif::{ProgressBar, ProgressStyle};
use millpond_core::Time;
use millpond_results::{
    ConnectionRecord, FlowRecord, Folder, PacketRecord, PauseRecord, Progress, QueryRecord, QueueRecord, RunWriter,
};
use millpond_sim::{Observer, Standing};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C (or SIGTERM) asks runs to end at their next edge; a second one ends the program.
pub fn catch_interrupts() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // Where no handler can be set, Ctrl-C just ends the program, and the partial folder shows that it did.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
    });
}

/// Whether the user has asked to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// A progress bar on stderr, or nothing where stderr is no terminal or the user wants quiet.
pub fn progress_bar(steps: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps);
    let style = ProgressStyle::with_template("{prefix} [{bar:30}] {percent:>3}%  {msg}  eta {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar
}

/// Receives a run's records and shows how it goes.
pub struct Watch<'a> {
    writer: RunWriter,
    /// Gets `progress.json`; several runs may share a folder, then none of them writes it.
    folder: Option<&'a Folder>,
    bar: Option<&'a ProgressBar>,
    horizon_s: f64,
    began: Instant,
    shown: Instant,
    written: Option<Instant>,
}

/// Steps of the progress bar for one run.
pub const STEPS: u64 = 1000;

impl<'a> Watch<'a> {
    /// Watches a run that ends at `horizon_s` of virtual time at the latest.
    pub fn new(writer: RunWriter, folder: Option<&'a Folder>, bar: Option<&'a ProgressBar>, horizon_s: f64) -> Self {
        let now = Instant::now();
        Watch { writer, folder, bar, horizon_s, began: now, shown: now, written: None }
    }

    /// The writer, with all records in it, and how long the run took.
    pub fn end(self) -> (RunWriter, Duration) {
        (self.writer, self.began.elapsed())
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
    type Error = millpond_results::Error;

    fn flow(&mut self, record: &FlowRecord) -> Result<(), Self::Error> {
        self.writer.flow(record)
    }

    fn query(&mut self, record: &QueryRecord) -> Result<(), Self::Error> {
        self.writer.query(record)
    }

    fn rtt(&mut self, rtt: Time) -> Result<(), Self::Error> {
        self.writer.rtt(rtt)
    }

    fn queue(&mut self, record: &QueueRecord) -> Result<(), Self::Error> {
        self.writer.queue(record)
    }

    fn connection(&mut self, record: &ConnectionRecord) -> Result<(), Self::Error> {
        self.writer.connection(record)
    }

    fn packet(&mut self, record: &PacketRecord) -> Result<(), Self::Error> {
        self.writer.packet(record)
    }

    fn pause(&mut self, record: &PauseRecord) -> Result<(), Self::Error> {
        self.writer.pause(record)
    }

    fn edge(&mut self, standing: &Standing) -> Result<bool, Self::Error> {
        let now = Instant::now();
        if let Some(bar) = self.bar
            && now - self.shown > Duration::from_millis(100)
        {
            self.shown = now;
            let p = self.progress(standing);
            bar.set_position((p.fraction.unwrap_or(0.0) * STEPS as f64) as u64);
            let rate = p.packet_hops_per_s / 1e6;
            let (started, completed) = (p.flows_started, p.flows_completed);
            bar.set_message(format!("{:.3} ms  {rate:.1} Mhop/s  {completed}/{started} flows", p.simulated_s * 1e3));
        }
        if let Some(folder) = self.folder
            && self.written.is_none_or(|at| now - at >= Duration::from_secs(1))
        {
            self.written = Some(now);
            folder.progress(&self.progress(standing))?;
        }
        Ok(!interrupted())
    }
}
