//! The output of a program: the part that a run keeps, the response times in it, and its row.
//!
//! Invariant: memory holds the last bytes of standard error and one line of standard output; the
//! rest goes to the [`Sink`], up to [`KEPT`] bytes.

use crate::address;
use crate::responses::Responses;
use millpond_core::Time;
use millpond_results::Program;
use millpond_scenario::plan::ProgramPlan;

/// Output of a program that is kept, of both streams together.
pub const KEPT: u64 = 64 << 20;
/// The end of standard error that a warning quotes, in bytes.
const QUOTED: usize = 160;
/// The two streams, as file names have them.
const STREAMS: [&str; 2] = ["stdout", "stderr"];

pub trait Sink {
    /// Takes bytes of a program's `stdout` or `stderr`. The first call of each stream comes when
    /// the program starts, and has none.
    fn output(&mut self, program: &str, stream: &str, bytes: &[u8]);
    /// Takes a response time that a program of this class has written.
    fn response(&mut self, class: &str, time: Time);
}

pub struct Output<'a> {
    plan: &'a ProgramPlan,
    /// By stream: bytes written.
    written: [u64; 2],
    dropped: u64,
    /// The last bytes of standard error.
    tail: Vec<u8>,
    responses: Responses,
}

impl<'a> Output<'a> {
    /// Of a program that has written nothing.
    pub fn new(plan: &'a ProgramPlan) -> Output<'a> {
        let (tail, responses) = (Vec::new(), Responses::default());
        Output { plan, written: [0; 2], dropped: 0, tail, responses }
    }

    pub fn begin(&self, sink: &mut dyn Sink) {
        STREAMS.iter().for_each(|stream| sink.output(&self.plan.name, stream, &[]));
    }

    /// Takes bytes of standard output (`stream` 0) or standard error (1).
    pub fn take(&mut self, stream: usize, bytes: &[u8], sink: &mut dyn Sink) {
        let left = KEPT.saturating_sub(self.written.iter().sum());
        let kept = left.min(bytes.len() as u64);
        self.written[stream] += bytes.len() as u64;
        self.dropped += bytes.len() as u64 - kept;
        if kept > 0 {
            sink.output(&self.plan.name, STREAMS[stream], &bytes[..kept as usize]);
        }
        if let (0, Some(class)) = (stream, &self.plan.responses) {
            self.responses.read(bytes, &mut |time| sink.response(class, time));
        }
        if stream == 1 {
            self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(QUOTED)..]);
            self.tail.drain(..self.tail.len().saturating_sub(QUOTED));
        }
    }

    /// The program's row in results, and warnings, with the one of its failure if it has `failed`.
    pub fn end(&self, status: String, failed: bool) -> (Program, Vec<String>) {
        let name = &self.plan.name;
        let mut warnings = Vec::new();
        if failed {
            let text = String::from_utf8_lossy(&self.tail);
            let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
            let last = last.map_or(String::new(), |line| format!(": {line}"));
            warnings.push(format!("program {name}: {status}{last}"));
        }
        if self.dropped > 0 {
            let (dropped, kept) = (self.dropped, KEPT >> 20);
            warnings.push(format!(
                "program {name}: {dropped} bytes of output are not kept: more than {kept} MiB"
            ));
        }
        warnings.extend(self.responses.warning(name));
        let program = Program {
            name: name.clone(),
            host: self.plan.host,
            command: self.plan.expanded(address::ip),
            status,
            stdout_bytes: self.written[0],
            stderr_bytes: self.written[1],
            dropped_bytes: self.dropped,
        };
        (program, warnings)
    }
}
