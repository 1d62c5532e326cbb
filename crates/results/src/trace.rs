//! A trace of a run for <https://ui.perfetto.dev> or chrome://tracing: flows and queries as slices of their hosts, queues
//! as counters of their nodes. Chrome's trace event format, JSON object form.
//!
//! Processes: host h is 1 + h, switch s is 1,000,000,000 + s. Times are microseconds with all digits.
//!
//! Invariant: an event is one line, and the bytes depend on the records and their order alone. Counters come after all
//! flows, whatever the order in which they were given: they wait in a file of their own.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use millpond_core::Time;
use serde_json::json;

use crate::error::{At, Result};
use crate::record::{FlowRecord, Node, QueryRecord, QueueRecord};

const SWITCHES: u64 = 1_000_000_000;

/// The trace being written.
pub(crate) struct Trace {
    path: PathBuf,
    out: BufWriter<File>,
    counters_path: PathBuf,
    counters: BufWriter<File>,
    classes: Vec<String>,
    nodes: Vec<String>,
    /// Processes that have a name.
    named: BTreeSet<u64>,
}

fn us(time: Time) -> String {
    let ps = time.as_ps();
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

impl Trace {
    /// Creates the file, and one beside it that [`Trace::close`] removes.
    pub fn create(path: &Path, counters_path: &Path, classes: Vec<String>, nodes: Vec<String>) -> Result<Trace> {
        let open = |path: &Path| {
            let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
            file.at("create", path).map(|file| BufWriter::with_capacity(1 << 18, file))
        };
        let (mut out, counters) = (open(path)?, open(counters_path)?);
        writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[").at("write", path)?;
        let (path, counters_path) = (path.to_path_buf(), counters_path.to_path_buf());
        Ok(Trace { path, out, counters_path, counters, classes, nodes, named: BTreeSet::new() })
    }

    /// Adds a flow: a slice of its sending host.
    pub fn flow(&mut self, flow: &FlowRecord) -> Result<()> {
        let class = json!(self.classes[flow.class as usize]);
        let process = self.host(flow.src)?;
        // A response to a request, or a message of a persistent connection, may bear its connection's number again.
        let id = format!("{}.{}", flow.flow, flow.start.as_ps());
        let args = format!(
            "{{\"flow\":{},\"class\":{class},\"dst\":{},\"bytes\":{},\"retransmitted\":{},\"timeouts\":{}}}",
            flow.flow, flow.dst, flow.bytes, flow.retransmitted, flow.timeouts
        );
        let name = format!("{} → host{}", self.classes[flow.class as usize], flow.dst);
        self.slice("flow", &name, &id, process, (flow.start, flow.finish), &args)
    }

    /// Adds a query: a slice of the host that asks.
    pub fn query(&mut self, query: &QueryRecord) -> Result<()> {
        let process = self.host(query.client)?;
        let args =
            format!("{{\"query\":{},\"degree\":{},\"completed\":{}}}", query.query, query.degree, query.completed);
        let name = format!("{} ×{}", self.classes[query.class as usize], query.degree);
        self.slice("query", &name, &query.query.to_string(), process, (query.start, query.finish), &args)
    }

    /// Adds a sample of a queue: two counters of its node.
    pub fn queue(&mut self, q: &QueueRecord) -> Result<()> {
        let process = match q.node {
            Node::Host(host) => self.host(host)?,
            Node::Switch(switch) => {
                let (process, name) = (SWITCHES + switch as u64, self.nodes.get(switch as usize).cloned());
                self.name(process, &name.unwrap_or_default())?;
                process
            }
        };
        let (at, port) = (us(q.at), q.port);
        writeln!(
            self.counters,
            "{{\"ph\":\"C\",\"name\":\"port {port} bytes\",\"pid\":{process},\"ts\":{at},\"args\":{{\"bytes\":{}}}}},\n\
             {{\"ph\":\"C\",\"name\":\"port {port} packets\",\"pid\":{process},\"ts\":{at},\"args\":{{\"packets\":{}}}}},",
            q.bytes, q.packets
        )
        .at("write", &self.counters_path)
    }

    /// Puts the counters behind the flows, down to the disk.
    pub fn close(mut self) -> Result<()> {
        self.counters.flush().at("write", &self.counters_path)?;
        let file = self.counters.get_mut();
        file.rewind().at("read", &self.counters_path)?;
        let mut buffer = vec![0; 1 << 18];
        loop {
            let count = file.read(&mut buffer).at("read", &self.counters_path)?;
            if count == 0 {
                break;
            }
            self.out.write_all(&buffer[..count]).at("write", &self.path)?;
        }
        // JSON wants no comma after the last event.
        writeln!(self.out, "{{\"ph\":\"M\",\"name\":\"trace\",\"pid\":0,\"args\":{{\"by\":\"millpond\"}}}}\n]}}")
            .at("write", &self.path)?;
        self.out.flush().at("write", &self.path)?;
        self.out.get_ref().sync_all().at("write", &self.path)?;
        fs::remove_file(&self.counters_path).at("remove", &self.counters_path)
    }

    fn host(&mut self, host: u32) -> Result<u64> {
        let process = 1 + host as u64;
        self.name(process, &format!("host{host}"))?;
        Ok(process)
    }

    /// Names a process when it is first seen. Names of switches go with the counters.
    fn name(&mut self, process: u64, name: &str) -> Result<()> {
        if !self.named.insert(process) {
            return Ok(());
        }
        let (out, path) = match process < SWITCHES {
            true => (&mut self.out, &self.path),
            false => (&mut self.counters, &self.counters_path),
        };
        let name = json!(name);
        writeln!(out, "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"args\":{{\"name\":{name}}}}},")
            .at("write", path)
    }

    /// Writes a slice's beginning and, where it has one, its end.
    fn slice(
        &mut self,
        category: &str,
        name: &str,
        id: &str,
        process: u64,
        (start, finish): (Time, Option<Time>),
        args: &str,
    ) -> Result<()> {
        let common = format!(
            "\"cat\":\"{category}\",\"name\":{},\"id\":\"{id}\",\"pid\":{process},\"tid\":{process}",
            json!(name)
        );
        let start = us(start);
        writeln!(self.out, "{{\"ph\":\"b\",{common},\"ts\":{start},\"args\":{args}}},").at("write", &self.path)?;
        match finish {
            Some(finish) => {
                writeln!(self.out, "{{\"ph\":\"e\",{common},\"ts\":{}}},", us(finish)).at("write", &self.path)
            }
            None => Ok(()),
        }
    }
}
