//! Chakra execution traces: a file for each rank, with the operations that it did.
//!
//! A file has length-delimited protobuf messages: metadata, then nodes. A node waits for the end of
//! those that its dependencies name, whether of control or of data. Computations last their
//! duration; those of a rank's processor follow each other, and so do those of its accelerator.
//! Sends and collectives of a rank go one at a time, the lowest id first among those that may
//! begin. Nodes are put in the order of their ids.
//!
//! Ranks meet in a collective by the group and the order of issue, not by id: the first of a group
//! at one rank is the first of it at another. The order is that of dependencies, and of ids where
//! these leave it open; times have no part in it.
//!
//! | file | has |
//! |---|---|
//! | `message` | the messages, for prost |
//! | `node` | a node as an operation |
//! | `groups` | process groups |
//! | `meeting` | the collectives of all ranks, group by group |
//! | `unread` | notes on what a run does not follow |
//!
//! Invariant: an error names the file, and the byte or the node.

mod groups;
mod meeting;
pub mod message;
mod node;
mod unread;

use super::check::acyclic;
use super::{Program, ProgramError, RankProgram};
use groups::Named;
use message::{Metadata, Node, kind};
use node::{Joined, Place};
use prost::Message;
use unread::{Unread, never_received};

/// The schema's version in files that are written here.
const VERSION: &str = "0.0.4";

#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    pub name: &'a str,
    pub bytes: &'a [u8],
}

struct Trace<'a> {
    file: &'a str,
    program: RankProgram,
    collectives: Vec<(u32, Joined)>,
}

/// Reads the traces of ranks 0 to n − 1, and a file of process groups.
///
/// # Errors
/// The first thing that is wrong, with the file, and the byte or the node; a cycle, with its nodes;
/// collectives of a group that differ between its ranks.
pub fn read(traces: &[File<'_>], groups: Option<File<'_>>) -> Result<Program, ProgramError> {
    let ranks = traces.len() as u32;
    let named = match groups {
        None => Named::new(),
        Some(file) => {
            groups::of_file(file.bytes, ranks).map_err(|text| ProgramError::at(file.name, text))?
        }
    };
    let mut unread = Unread::default();
    let all: Vec<Trace<'_>> = (0..)
        .zip(traces)
        .map(|(rank, file)| one(rank, ranks, file, &named, &mut unread))
        .collect::<Result<_, _>>()?;
    let programs: Vec<_> = all.iter().map(|trace| (trace.file, &trace.program)).collect();
    let notes = unread.notes().into_iter().chain(never_received(&programs)).collect();
    Ok(Program { notes, ..meeting::meet(all)? })
}

/// A rank's trace as a file.
pub fn write(nodes: &[Node]) -> Vec<u8> {
    let metadata = Metadata { version: VERSION.into(), attributes: Vec::new() };
    let mut bytes = metadata.encode_length_delimited_to_vec();
    nodes.iter().for_each(|node| bytes.extend(node.encode_length_delimited_to_vec()));
    bytes
}

fn one<'a>(
    rank: u32,
    ranks: u32,
    file: &File<'a>,
    named: &Named,
    unread: &mut Unread,
) -> Result<Trace<'a>, ProgramError> {
    let mut nodes = decode(file)?;
    nodes.sort_by_key(|node| node.id);
    let wrong = |node: &Node, text: String| {
        ProgramError::at(format!("{}: node {} {:?}", file.name, node.id, node.name), text)
    };
    if let Some(pair) = nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(wrong(&pair[1], format!("its id is that of node {:?}", pair[0].name)));
    }
    let mut own = Named::new();
    for node in nodes.iter().filter(|node| node.kind == kind::METADATA) {
        let values = node.inputs.as_ref().map_or("", |inputs| &inputs.values);
        groups::of_metadata(values, ranks, &mut own).map_err(|text| wrong(node, text))?;
    }
    let place = Place { rank, ranks, groups: [&own, named] };
    let (mut operations, mut labels) = (Vec::new(), Vec::new());
    let (mut collectives, mut waits) = (Vec::new(), Vec::new());
    for (number, node) in (0..).zip(&nodes) {
        let read = node::read(node, &place).map_err(|text| wrong(node, text))?;
        unread.add(file.name, node);
        operations.push(read.operation);
        labels.push(format!("node {} {:?}", node.id, node.name));
        collectives.extend(read.collective.map(|joined| (number, joined)));
        let mut awaited: Vec<u64> = node.control.iter().chain(&node.data).copied().collect();
        awaited.sort_unstable();
        awaited.dedup();
        for id in awaited {
            let at = nodes.binary_search_by_key(&id, |node| node.id).map_err(|_| {
                wrong(node, format!("it depends on node {id}, which the trace does not have"))
            })?;
            waits.push((number, at as u32, false));
        }
    }
    let program = RankProgram::new(operations, labels, &waits);
    acyclic(&program).map_err(|text| ProgramError::at(file.name, text))?;
    Ok(Trace { file: file.name, program, collectives })
}

fn decode(file: &File<'_>) -> Result<Vec<Node>, ProgramError> {
    let mut rest = file.bytes;
    let (at, first) = message(file, &mut rest)?.ok_or_else(|| {
        ProgramError::at(file.name, "the file is empty; a trace begins with its metadata")
    })?;
    let wrong = |at: usize, what: &str, error: prost::DecodeError| {
        ProgramError::at(format!("{}: byte {at}", file.name), format!("{what}: {error}"))
    };
    let what = "expected a trace's GlobalMetadata";
    Metadata::decode(first).map_err(|error| wrong(at, what, error))?;
    let mut nodes = Vec::new();
    while let Some((at, bytes)) = message(file, &mut rest)? {
        let node = Node::decode(bytes).map_err(|error| wrong(at, "expected a Node", error))?;
        nodes.push(node);
    }
    Ok(nodes)
}

/// Takes a message from the rest of a file: its place and its bytes; `None` at the end.
fn message<'a>(
    file: &File<'_>,
    rest: &mut &'a [u8],
) -> Result<Option<(usize, &'a [u8])>, ProgramError> {
    let at = file.bytes.len() - rest.len();
    if rest.is_empty() {
        return Ok(None);
    }
    let wrong = |text: String| ProgramError::at(format!("{}: byte {at}", file.name), text);
    let len = prost::decode_length_delimiter(&mut *rest)
        .map_err(|error| wrong(format!("expected the length of a message: {error}")))?;
    let Some((found, after)) = rest.split_at_checked(len) else {
        let text = format!("a message of {len} bytes begins, and {} follow", rest.len());
        return Err(wrong(text));
    };
    *rest = after;
    Ok(Some((at, found)))
}

#[cfg(test)]
mod tests;
