//! A trace of a run for <https://ui.perfetto.dev> or chrome://tracing: flows and queries as slices
//! of their hosts, queues as counters of their nodes. Chrome's trace event format, JSON object
//! form.
//!
//! Processes: host h is 1 + h, switch s is 1,000,000,000 + s. Times are microseconds with all
//! digits.
//!
//! Invariant: an event is one line, and the bytes depend on the records alone. Flows, queries and
//! samples each come in the order of a run, but a run interleaves the three as it likes, and that
//! depends on threads. So the trace has all flows, then all queries, then all counters, then the
//! names: what follows the flows waits in files of its own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use millpond_core::Time;
use serde_json::json;

use crate::model::{At, FlowRecord, Node, QueryRecord, QueueRecord, Result};

const SWITCHES: u64 = 1_000_000_000;

pub(crate) struct Trace {
    flows: Part,
    queries: Part,
    counters: Part,
    classes: Vec<String>,
    nodes: Vec<String>,
    names: BTreeMap<u64, String>,
}

/// A file that a part of the trace is written to.
struct Part {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Part {
    fn create(path: &Path) -> Result<Part> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
        let out = BufWriter::with_capacity(1 << 18, file.at("create", path)?);
        Ok(Part { path: path.to_path_buf(), out })
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) -> Result<()> {
        self.out.write_fmt(line).and_then(|()| self.out.write_all(b"\n")).at("write", &self.path)
    }

    /// Appends another part and removes its file.
    fn append(&mut self, mut other: Part) -> Result<()> {
        other.out.flush().at("write", &other.path)?;
        let file = other.out.get_mut();
        file.rewind().at("read", &other.path)?;
        io::copy(file, &mut self.out).at("write", &self.path)?;
        fs::remove_file(&other.path).at("remove", &other.path)
    }
}

fn us(time: Time) -> String {
    let ps = time.as_ps();
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

impl Trace {
    /// Creates the file, and two beside it that [`Trace::close`] removes: of queries and of
    /// counters.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a file cannot be created or written.
    pub fn create(
        path: &Path,
        [queries, counters]: [&Path; 2],
        classes: Vec<String>,
        nodes: Vec<String>,
    ) -> Result<Trace> {
        let mut flows = Part::create(path)?;
        flows.line(format_args!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":["))?;
        let (queries, counters) = (Part::create(queries)?, Part::create(counters)?);
        Ok(Trace { flows, queries, counters, classes, nodes, names: BTreeMap::new() })
    }

    /// Adds a flow: a slice of its sending host.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn flow(&mut self, flow: &FlowRecord) -> Result<()> {
        let class = json!(self.classes[flow.class as usize]);
        let process = self.host(flow.src);
        // A response to a request, or a message of a persistent connection, may bear its
        // connection's number again.
        let id = format!("{}.{}", flow.flow, flow.start.as_ps());
        let args = format!(
            "{{\"flow\":{},\"class\":{class},\"dst\":{},\"bytes\":{},\"retransmitted\":{},\"\
             timeouts\":{}}}",
            flow.flow, flow.dst, flow.bytes, flow.retransmitted, flow.timeouts
        );
        let name = format!("{} → host{}", self.classes[flow.class as usize], flow.dst);
        let (start, finish) = (flow.start, flow.finish);
        Slice { category: "flow", name, id, process, start, finish, args }.write(&mut self.flows)
    }

    /// Adds a query: a slice of the host that asks.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn query(&mut self, query: &QueryRecord) -> Result<()> {
        let process = self.host(query.client);
        let args = format!(
            "{{\"query\":{},\"degree\":{},\"completed\":{}}}",
            query.query, query.degree, query.completed
        );
        let name = format!("{} ×{}", self.classes[query.class as usize], query.degree);
        let (id, start, finish) = (query.query.to_string(), query.start, query.finish);
        Slice { category: "query", name, id, process, start, finish, args }.write(&mut self.queries)
    }

    /// Adds a sample of a queue: two counters of its node, named by its port and the node at the
    /// other end of the port's link, if `peer` names one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn queue(&mut self, q: &QueueRecord, peer: &str) -> Result<()> {
        let process = match q.node {
            Node::Host(host) => self.host(host),
            Node::Switch(switch) => {
                let name = self.nodes.get(switch as usize).map_or("", String::as_str);
                self.names.entry(SWITCHES + u64::from(switch)).or_insert_with(|| name.to_string());
                SWITCHES + u64::from(switch)
            }
        };
        let at = us(q.at);
        let port = match peer {
            "" => format!("port {}", q.port),
            peer => format!("port {} → {peer}", q.port),
        };
        for (what, count) in [("bytes", q.bytes), ("packets", u64::from(q.packets))] {
            let name = json!(format!("{port} {what}"));
            self.counters.line(format_args!(
                "{{\"ph\":\"C\",\"name\":{name},\"pid\":{process},\"ts\":{at},\"args\":\
                 {{\"{what}\":{count}}}}},"
            ))?;
        }
        Ok(())
    }

    /// Puts queries, counters and names behind the flows, down to the disk.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a part cannot be read back, or the file written or
    /// synced.
    pub fn close(self) -> Result<()> {
        let Trace { flows: mut out, queries, counters, names, .. } = self;
        out.append(queries)?;
        out.append(counters)?;
        for (process, name) in names {
            let name = json!(name);
            out.line(format_args!(
                "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"args\":{{\"name\":\
                 {name}}}}},"
            ))?;
        }
        // JSON wants no comma after the last event.
        out.line(format_args!(
            "{{\"ph\":\"M\",\"name\":\"trace\",\"pid\":0,\"args\":{{\"by\":\"millpond\"}}}}\n]}}"
        ))?;
        out.out.flush().at("write", &out.path)?;
        out.out.get_ref().sync_all().at("write", &out.path)
    }

    /// A host's process, which gets its name.
    fn host(&mut self, host: u32) -> u64 {
        let process = 1 + u64::from(host);
        self.names.entry(process).or_insert_with(|| format!("host{host}"));
        process
    }
}

/// A time of a host in which something of a category was under way.
struct Slice<'a> {
    category: &'a str,
    name: String,
    id: String,
    process: u64,
    start: Time,
    finish: Option<Time>,
    args: String,
}

impl Slice<'_> {
    /// Writes its beginning and, where it has one, its end.
    fn write(&self, out: &mut Part) -> Result<()> {
        let Slice { category, id, process, args, .. } = self;
        let (name, start) = (json!(self.name), us(self.start));
        let common = format!(
            "\"cat\":\"{category}\",\"name\":{name},\"id\":\"{id}\",\"pid\":{process},\"tid\":\
             {process}"
        );
        out.line(format_args!("{{\"ph\":\"b\",{common},\"ts\":{start},\"args\":{args}}},"))?;
        self.finish.map_or(Ok(()), |end| {
            out.line(format_args!("{{\"ph\":\"e\",{common},\"ts\":{}}},", us(end)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_dir;

    fn flow(flow: u32, src: u32) -> FlowRecord {
        FlowRecord {
            flow,
            src,
            dst: 1,
            start: Time::from_us(3),
            finish: Some(Time::from_us(9)),
            ..FlowRecord::default()
        }
    }

    /// A run hands over flows, queries and samples as its edges fall, which depends on threads.
    #[test]
    fn the_bytes_do_not_depend_on_how_records_interleave() {
        let query = QueryRecord { client: 7, ..QueryRecord::default() };
        let queue =
            |node| QueueRecord { at: Time::from_us(5), node, port: 2, bytes: 3000, packets: 2 };
        type Write<'a> = &'a dyn Fn(&mut Trace) -> Result<()>;
        let records: [Write; 5] = [
            &|trace| trace.flow(&flow(1, 4)),
            &|trace| trace.flow(&flow(2, 0)),
            &|trace| trace.query(&query),
            &|trace| trace.queue(&queue(Node::Host(3)), ""),
            &|trace| trace.queue(&queue(Node::Switch(0)), "host4"),
        ];
        let dir = test_dir("trace");
        let write = |name: &str, order: [usize; 5]| {
            let path = dir.join(name);
            let beside = [".queries", ".counters"].map(|name| dir.join(name));
            let parts = [beside[0].as_path(), beside[1].as_path()];
            let mut trace =
                Trace::create(&path, parts, vec!["web".into()], vec!["leaf0".into()]).unwrap();
            order.iter().for_each(|at| records[*at](&mut trace).unwrap());
            trace.close().unwrap();
            assert!(beside.iter().all(|path| !path.exists()));
            fs::read_to_string(path).unwrap()
        };
        let whole = write("a", [0, 1, 2, 3, 4]);
        for (name, order) in
            [("b", [3, 2, 0, 4, 1]), ("c", [2, 3, 4, 0, 1]), ("d", [0, 3, 1, 4, 2])]
        {
            assert_eq!(write(name, order), whole);
        }
        let json: serde_json::Value = serde_json::from_str(&whole).unwrap();
        // Two flows of two lines, a query's beginning, four counters, five names, and the last
        // line.
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 15);
        for name in ["port 2 bytes", "port 2 → host4 bytes"] {
            assert!(events.iter().any(|event| event["name"] == name), "{name}");
        }
    }
}
