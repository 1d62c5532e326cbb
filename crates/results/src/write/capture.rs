//! Files that a run writes beside its flows and queries: samples of queues and connections,
//! captures, a trace.
//!
//! Invariant: as for the rest of a run, memory does not grow with the records, and no file remains
//! of a run that was not finished.

use std::path::{Path, PathBuf};

use parquet::data_type::ByteArray;

use crate::model::{
    CONNECTIONS, ConnectionRecord, FlowRecord, Node, PacketRecord, PauseRecord, QUEUE_COLUMNS,
    QUEUES, QueryRecord, QueueRecord, Result, Table,
};
use crate::write::connections::Connections;
use crate::write::pcap::{Capture, Place};
use crate::write::trace::Trace;
use millpond_core::congestion::Quantity;

pub(crate) const TRACE: &str = "trace.json";

/// The captures that are to be written, as the scenario asks.
#[derive(Clone, Debug, Default)]
pub struct Captures {
    /// Whether there are samples of queues.
    pub queues: bool,
    /// Whether there are samples of connections, and what their control laws steer by.
    pub connections: Option<Vec<Quantity>>,
    /// Names of the switches, by number.
    pub nodes: Vec<String>,
    /// Names of the nodes at the other ends of the links of each switch, by port.
    pub peers: Vec<Vec<String>>,
    /// The same of each host with one link; empty of others.
    pub host_peers: Vec<String>,
    /// By capture: its place, whose name is its file's without the extension.
    pub taps: Vec<Place>,
    /// Bytes of each captured packet that are kept.
    pub snaplen: u32,
    /// Whether captured packets show TCP timestamps.
    pub tcp_timestamps: bool,
    /// Whether the summary reports round-trip times and timeouts.
    pub timers: bool,
    pub trace: bool,
}

#[derive(Default)]
pub(crate) struct Recording {
    queues: Option<Table>,
    connections: Option<Connections>,
    nodes: Vec<ByteArray>,
    peers: Vec<Vec<ByteArray>>,
    host_peers: Vec<ByteArray>,
    captures: Vec<Capture>,
    trace: Option<Trace>,
    /// All files, to be removed if the run is not finished.
    pub files: Vec<PathBuf>,
}

impl Recording {
    /// Creates the files. Those that exist when it fails are in `files`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a file cannot be created.
    pub fn open(
        &mut self,
        dir: &Path,
        what: &Captures,
        classes: &[String],
        schema: (&str, String),
    ) -> Result<()> {
        let mut file = |name: &str| {
            self.files.push(dir.join(name));
            dir.join(name)
        };
        if what.queues {
            let schema = std::slice::from_ref(&schema);
            self.queues = Some(Table::of(&file(QUEUES), &QUEUE_COLUMNS, schema)?);
            let names = |names: &[String]| -> Vec<ByteArray> {
                names.iter().map(|name| ByteArray::from(name.as_str())).collect()
            };
            self.nodes = names(&what.nodes);
            self.peers = what.peers.iter().map(|peers| names(peers)).collect();
            self.host_peers = names(&what.host_peers);
        }
        if let Some(laws) = &what.connections {
            self.connections =
                Some(Connections::create(&file(CONNECTIONS), classes, laws, schema)?);
        }
        for place in &what.taps {
            let path = file(&format!("{}.pcapng", place.name));
            self.captures.push(Capture::create(&path, place, what.snaplen, what.tcp_timestamps)?);
        }
        if what.trace {
            let [path, queries, counters] =
                [TRACE, ".spill-trace-queries", ".spill-trace"].map(file);
            self.trace = Some(Trace::create(
                &path,
                [&queries, &counters],
                classes.to_vec(),
                what.nodes.clone(),
            )?);
        }
        Ok(())
    }

    /// Adds a flow to the trace, if there is one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn flow(&mut self, flow: &FlowRecord) -> Result<()> {
        self.trace.as_mut().map_or(Ok(()), |trace| trace.flow(flow))
    }

    /// Adds a query to the trace, if there is one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn query(&mut self, query: &QueryRecord) -> Result<()> {
        self.trace.as_mut().map_or(Ok(()), |trace| trace.query(query))
    }

    /// Adds a sample of a queue to the table and the trace, where they are.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn queue(&mut self, q: &QueueRecord) -> Result<()> {
        let Some(table) = &mut self.queues else { return Ok(()) };
        let (name, peer) = match q.node {
            Node::Switch(switch) => {
                let switch = switch as usize;
                (self.nodes[switch].clone(), self.peers[switch].get(usize::from(q.port)))
            }
            Node::Host(host) => {
                let name = ByteArray::from(format!("host{host}").as_str());
                (name, self.host_peers.get(host as usize))
            }
        };
        let peer = peer.cloned().unwrap_or_else(|| ByteArray::from(""));
        table.row(&QUEUE_COLUMNS, q, &[name, peer.clone()])?;
        let peer = peer.as_utf8().unwrap_or_default();
        self.trace.as_mut().map_or(Ok(()), |trace| trace.queue(q, peer))
    }

    /// Adds a sample of a connection, if the run takes them.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn connection(&mut self, record: &ConnectionRecord) -> Result<()> {
        self.connections.as_mut().map_or(Ok(()), |connections| connections.add(record))
    }

    /// Adds a packet to its place's capture.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn packet(&mut self, record: &PacketRecord) -> Result<()> {
        self.captures.get_mut(record.tap as usize).map_or(Ok(()), |capture| capture.write(record))
    }

    /// Adds a PAUSE frame to its place's capture.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn pause(&mut self, record: &PauseRecord) -> Result<()> {
        self.captures
            .get_mut(record.tap as usize)
            .map_or(Ok(()), |capture| capture.write_pause(record))
    }

    /// Writes the rest of all files.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a file cannot be written.
    pub fn close(&mut self) -> Result<()> {
        if let Some(table) = self.queues.take() {
            table.close()?;
        }
        if let Some(connections) = self.connections.take() {
            connections.close()?;
        }
        for capture in self.captures.drain(..) {
            capture.close()?;
        }
        self.trace.take().map_or(Ok(()), Trace::close)
    }
}
