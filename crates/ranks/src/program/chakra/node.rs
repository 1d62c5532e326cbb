//! A node as an operation of its rank.
//!
//! Invariant: a node whose time or peers are not given is refused.

use super::super::{Action, Operation};
use super::groups::Named;
use super::message::{Node, Value, kind};
use crate::collective::Operation as Op;

/// Clocks of a rank: its processor, its accelerator, that of messages, and that of nodes which take
/// no time.
const PROCESSOR: u8 = 0;
const ACCELERATOR: u8 = 1;
const MESSAGES: u8 = 2;
const NONE: u8 = 3;

/// More bytes of a collective than this are a slip.
const BYTES_MAX: u64 = 1 << 48;

/// A node as its rank takes part in it.
pub(super) struct Read {
    /// As an operation, which has no call yet if it is a collective.
    pub operation: Operation,
    pub collective: Option<Joined>,
}

/// A collective as a node has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    pub op: Op,
    /// The rank's whole buffer, as millpond counts it.
    pub bytes: u64,
    /// The group's name; `None`: all ranks.
    pub group: Option<String>,
    pub members: Vec<u32>,
    /// The rank that a broadcast begins at, or a reduction ends at.
    pub root: u32,
}

/// The job that a node is part of.
pub(super) struct Place<'a> {
    pub rank: u32,
    pub ranks: u32,
    /// Groups of the trace and of the file.
    pub groups: [&'a Named; 2],
}

pub(super) fn read(node: &Node, place: &Place<'_>) -> Result<Read, String> {
    let alone = |action, size, tag, cpu| Read {
        operation: Operation { action, size, tag, cpu, nic: 0, waits: 0 },
        collective: None,
    };
    let none = || alone(Action::Compute, 0, 0, NONE);
    Ok(match node.kind {
        kind::METADATA => none(),
        kind::COMPUTE => computation(node, "num_ops")?,
        kind::LOAD | kind::STORE => computation(node, "tensor_size")?,
        kind::SEND => {
            let own = peer(node, "comm_src", place)?;
            if let Some(other) = own.filter(|own| *own != place.rank) {
                let text = format!("it sends from rank {other} (comm_src)");
                return Err(format!("{text}, and this is the trace of rank {}", place.rank));
            }
            let to = peer(node, "comm_dst", place)?.ok_or("a send has no comm_dst")?;
            let size = integer(node, "comm_size", u64::MAX)?.ok_or("a send has no comm_size")?;
            alone(Action::Send { to }, size, tag(node)?, MESSAGES)
        }
        kind::RECEIVE => {
            let own = peer(node, "comm_dst", place)?;
            if let Some(other) = own.filter(|own| *own != place.rank) {
                let text = format!("it receives at rank {other} (comm_dst)");
                return Err(format!("{text}, and this is the trace of rank {}", place.rank));
            }
            let from = peer(node, "comm_src", place)?.ok_or("a receive has no comm_src")?;
            let size = integer(node, "comm_size", u64::MAX)?.unwrap_or(0);
            alone(Action::Receive { from }, size, tag(node)?, MESSAGES)
        }
        kind::COLLECTIVE => match joined(node, place)? {
            None => none(),
            Some(joined) => {
                let (action, size) = (Action::Collective { call: 0 }, joined.bytes);
                Read { collective: Some(joined), ..alone(action, size, 0, MESSAGES) }
            }
        },
        other => return Err(format!("its type is {other}; types are 1 to 7")),
    })
}

/// A computation, which lasts its duration. `work`: the attribute from which other simulators
/// derive a time where there is none.
fn computation(node: &Node, work: &str) -> Result<Read, String> {
    let ns = node.duration_us.checked_mul(1_000).ok_or_else(|| {
        format!("its duration of {} µs is more than {} ns", node.duration_us, u64::MAX)
    })?;
    if ns == 0
        && let Some(amount) = integer(node, work, u64::MAX)?.filter(|amount| *amount > 0)
    {
        let text = format!("it has {work} {amount} and no duration_micros");
        return Err(format!("{text}; millpond derives no time from work"));
    }
    let cpu = if flag(node, "is_cpu_op")? { PROCESSOR } else { ACCELERATOR };
    let operation = Operation { action: Action::Compute, size: ns, tag: 0, cpu, nic: 0, waits: 0 };
    Ok(Read { operation, collective: None })
}

/// A collective; `None`: there is nothing to do, or nobody to do it with.
fn joined(node: &Node, place: &Place<'_>) -> Result<Option<Joined>, String> {
    let number = integer(node, "comm_type", u64::MAX)?.ok_or("a collective has no comm_type")?;
    let op = match number {
        0 => Op::AllReduce,
        1 => Op::Reduce,
        2 => Op::AllGather,
        5 => Op::Broadcast,
        6 => Op::AllToAll,
        // Shares of equal size, which reduce-scatter has here.
        7 | 8 => Op::ReduceScatter,
        9 => Op::Barrier,
        3 => return Err(unsupported("gather", 3)),
        4 => return Err(unsupported("scatter", 4)),
        other => return Err(format!("its comm_type is {other}; 0 to 9 are known")),
    };
    let size = integer(node, "comm_size", BYTES_MAX)?;
    let (group, members) = group(node, place)?;
    let count = members.len() as u64;
    let bytes = match op {
        Op::Barrier => 1,
        _ => size.ok_or("a collective has no comm_size")?,
    };
    // A gathering rank's buffer is what it gives; here it is what all give.
    let whole = if op == Op::AllGather { bytes.checked_mul(count) } else { Some(bytes) };
    let bytes = whole.filter(|bytes| *bytes <= BYTES_MAX).ok_or_else(|| {
        format!("its comm_size {bytes} from each of {count} ranks is more than {BYTES_MAX}")
    })?;
    let root = match op {
        Op::Broadcast => peer(node, "comm_src", place)?,
        Op::Reduce => peer(node, "comm_dst", place)?,
        _ => None,
    };
    let root = root.unwrap_or(members[0]);
    if !members.contains(&root) {
        return Err(format!("its root {root} is no rank of its group"));
    }
    let is_empty = bytes == 0 || count < 2;
    Ok((!is_empty).then_some(Joined { op, bytes, group, members, root }))
}

fn unsupported(name: &str, number: u32) -> String {
    format!("its comm_type {number}, {name}, is not supported")
}

/// The group of a collective: its name, and its ranks, of which this rank is one.
fn group(node: &Node, place: &Place<'_>) -> Result<(Option<String>, Vec<u32>), String> {
    match node.attribute("involved_dim").map(|attribute| &attribute.value) {
        None => {}
        Some(Some(Value::Bools(dims))) if dims.values.iter().all(|is_involved| *is_involved) => {}
        Some(Some(Value::Bool(true))) => {}
        Some(_) => {
            let text = "its involved_dim leaves out dimensions of a network, which millpond's have \
                        not; name its ranks by pg_name";
            return Err(text.into());
        }
    }
    let name = match node.attribute("pg_name").map(|attribute| &attribute.value) {
        None => String::new(),
        Some(Some(Value::Text(name))) => name.clone(),
        Some(Some(value)) if value.integer().is_some() => {
            value.integer().unwrap_or_default().to_string()
        }
        Some(_) => return Err("its pg_name is neither a text nor an integer".into()),
    };
    if name.is_empty() {
        return Ok((None, (0..place.ranks).collect()));
    }
    let found = place.groups.iter().find_map(|groups| groups.get(&name));
    let members = found.ok_or_else(|| {
        let known = place.groups.iter().flat_map(|groups| groups.keys());
        let mut names: Vec<String> = known.map(|name| format!("{name:?}")).collect();
        names.sort();
        names.dedup();
        // Names as short as numbers have no nearest.
        names.truncate(8);
        let known = match names.is_empty() {
            true => "no group is defined, in metadata nodes or a file of `groups`".to_string(),
            false => format!("groups are {}", names.join(", ")),
        };
        format!("its group {name:?} (pg_name) is not defined; {known}")
    })?;
    match members.contains(&place.rank) {
        true => Ok((Some(name), members.clone())),
        false => Err(format!("its group {name:?} (pg_name) does not have rank {}", place.rank)),
    }
}

/// An attribute that is a number from 0 on.
fn integer(node: &Node, name: &str, most: u64) -> Result<Option<u64>, String> {
    let Some(attribute) = node.attribute(name) else { return Ok(None) };
    let found = attribute.value.as_ref().and_then(Value::integer);
    let found = found.ok_or_else(|| format!("its {name} is no integer"))?;
    match u64::try_from(found).ok().filter(|number| *number <= most) {
        Some(number) => Ok(Some(number)),
        None => Err(format!("its {name} is {found}; 0 to {most} are possible")),
    }
}

fn flag(node: &Node, name: &str) -> Result<bool, String> {
    match node.attribute(name).map(|attribute| &attribute.value) {
        None => Ok(false),
        Some(Some(Value::Bool(is_set))) => Ok(*is_set),
        Some(Some(value)) if value.integer().is_some() => Ok(value.integer() != Some(0)),
        Some(_) => Err(format!("its {name} is neither a bool nor an integer")),
    }
}

/// A rank that a node names.
fn peer(node: &Node, name: &str, place: &Place<'_>) -> Result<Option<u32>, String> {
    let Some(rank) = integer(node, name, u64::MAX)? else { return Ok(None) };
    match u32::try_from(rank).ok().filter(|rank| *rank < place.ranks) {
        Some(rank) => Ok(Some(rank)),
        None => Err(format!("its {name} is rank {rank}: there are {}, from 0", place.ranks)),
    }
}

fn tag(node: &Node) -> Result<u32, String> {
    // The last number stands for any tag.
    let tag = integer(node, "comm_tag", u64::from(u32::MAX) - 1)?;
    Ok(tag.unwrap_or(0) as u32)
}
