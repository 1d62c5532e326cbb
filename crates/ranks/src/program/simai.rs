//! SimAI's workload text: the layers of a model, with the computations and collectives of each.
//!
//! The first line names the policy and the parallelism, the second the number of layers; a layer
//! has twelve fields. An iteration goes forward over the layers, each with its computation and then
//! its collective. It goes back from the last: input gradient with its collective, then weight
//! gradient, whose collective only the layer's next forward pass waits for. Sizes are a
//! collective's whole buffer.
//!
//! All ranks run the same layers. Ranks are numbered by tensor, then data, then pipeline stage. The
//! messages between stages (`pp_comm`), `vpp`, `ga` and checkpoints are not run.
//!
//! Invariant: an error names the line, and each thing that is not run is a note with its line.

use super::call::{Call, Groups};
use super::{Action, Operation, Program, ProgramError, RankProgram};
use crate::collective::{Collective, Operation as Op, algorithms};
use std::sync::Arc;

/// More of anything than this is taken for a slip of the pen.
const MOST: u64 = 1 << 20;
/// Operations of a rank, over all iterations.
const OPERATIONS_MAX: u64 = 1 << 24;
const FIELDS: usize = 12;
/// A layer's second field.
const AWAITED: &str = "the dependency";
/// Forward collectives of less are of so much.
const FORWARD_LEAST: u64 = 4_096;

/// Keys of the first line that a run follows.
const FOLLOWED: [&str; 4] = ["model_parallel_NPU_group", "ep", "pp", "all_gpus"];
/// Keys that it does not follow, the largest value that asks for nothing, and the effect.
const IGNORED: [(&str, u64, &str); 6] = [
    ("pp", 1, "stages run side by side, without the bubbles of a pipeline: iterations are shorter"),
    ("vpp", 1, "stages are not interleaved: bubbles and messages between stages are missing"),
    ("ga", 1, "the layers run once an iteration, not once a micro-batch: iterations are shorter"),
    ("pp_comm", 0, "no messages pass between stages: their bytes and time are missing"),
    ("checkpoints", 0, "no forward pass is computed again: iterations are shorter"),
    ("checkpoint_initiates", 0, "no forward pass is computed again: iterations are shorter"),
];

/// Divisions of the ranks, by their number in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Division {
    Tensor,
    Data,
    Expert,
    DataOfExperts,
}

/// One column of a layer: computation, collective, size.
#[derive(Clone, Copy, Debug)]
struct Part {
    compute: u64,
    collective: Option<(Op, Division, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Parallel {
    ranks: u32,
    tensor: u32,
    expert: u32,
    stages: u32,
}

impl Parallel {
    fn data(&self) -> u32 {
        self.ranks / self.tensor / self.stages
    }

    fn size(&self, division: Division) -> u32 {
        match division {
            Division::Tensor => self.tensor,
            Division::Data => self.data(),
            Division::Expert => self.expert,
            Division::DataOfExperts => self.data() / self.expert,
        }
    }

    fn groups(&self, division: Division) -> Groups {
        let Parallel { ranks, tensor, expert, .. } = *self;
        let data = self.data();
        Groups::new(ranks, |rank| {
            let (of_tensor, rest) = (rank % tensor, rank / tensor);
            let (of_data, stage) = (rest % data, rest / data);
            match division {
                Division::Tensor => rest,
                Division::Data => stage * tensor + of_tensor,
                Division::Expert => {
                    (stage * (data / expert) + of_data / expert) * tensor + of_tensor
                }
                Division::DataOfExperts => (stage * expert + of_data % expert) * tensor + of_tensor,
            }
        })
    }
}

/// Reads a workload, to be run so often.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn read(text: &str, iterations: u32) -> Result<Program, ProgramError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (place, first) =
        lines.next().ok_or_else(|| ProgramError::at("line 1", "there is no policy"))?;
    let parallel = head(place, first)?;
    let mut notes = ignored(place, first);
    let (number, second) = lines.next().ok_or_else(|| {
        let text = "there is no number of layers in a line of its own";
        ProgramError::at("the end of the file", text)
    })?;
    let count = number_of(second.trim(), number, "the number of layers", MOST)?;
    let mut layers = Vec::new();
    for layer in 0..count {
        let (line, text) = lines.next().ok_or_else(|| {
            let text = format!("{count} layers are announced, and {layer} follow");
            ProgramError::at("the end of the file", text)
        })?;
        let own: Vec<_> = text.split_whitespace().map(|field| (line, field)).collect();
        if own.len() != FIELDS {
            let text = format!("a layer has {FIELDS} fields, and this line has {}", own.len());
            return Err(ProgramError::at(format!("line {line}"), text));
        }
        let awaited = own[1].1;
        if awaited != "-1" && !notes.iter().any(|note| note.contains(AWAITED)) {
            notes.push(format!(
                "line {line}: {AWAITED} {awaited} is not followed: layers run in turn"
            ));
        }
        let part = |at: usize, is_last: bool| part(&own[at..at + 3], is_last);
        let update = number_of(own[11].1, own[11].0, "a time", u64::MAX)?;
        layers.push(([part(2, false)?, part(5, false)?, part(8, true)?], update));
    }
    if let Some((number, text)) = lines.next() {
        let name = text.split_whitespace().next().unwrap_or_default();
        let text = format!("{name:?} comes after the last of {count} layers");
        return Err(ProgramError::at(format!("line {number}"), text));
    }
    if count * 7 * u64::from(iterations) > OPERATIONS_MAX {
        let text = format!(
            "{count} layers, {iterations} times (iterations), are more than {OPERATIONS_MAX} \
             operations of a rank"
        );
        return Err(ProgramError::at(format!("line {number}"), text));
    }
    Ok(Program { notes, ..program(&layers, parallel, iterations) })
}

/// Notes on the first line's keys that a run does not follow.
fn ignored(number: usize, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let pairs = words[1..].windows(2).filter(|pair| pair[0].ends_with(':'));
    let note = |pair: &[&str]| {
        let key = pair[0].trim_end_matches(':');
        let effect = match IGNORED.iter().find(|(ignored, ..)| *ignored == key) {
            Some((_, nothing, _)) if pair[1].parse().is_ok_and(|n: u64| n <= *nothing) => {
                return None;
            }
            Some((.., effect)) => effect,
            None if FOLLOWED.contains(&key) => return None,
            None => "the key is not known here",
        };
        Some(format!("line {number}: {key}: {} is not run: {effect}", pair[1]))
    };
    pairs.filter_map(note).collect()
}

fn number_of(text: &str, line: usize, what: &str, most: u64) -> Result<u64, ProgramError> {
    let number = text.parse::<u64>().ok().filter(|number| *number <= most);
    number.ok_or_else(|| {
        let text = format!("{what}: expected a whole number of at most {most}, found {text:?}");
        ProgramError::at(format!("line {line}"), text)
    })
}

fn head(number: usize, line: &str) -> Result<Parallel, ProgramError> {
    let wrong = |text: String| ProgramError::at(format!("line {number}"), text);
    let mut words = line.split_whitespace();
    let policy = words.next().unwrap_or_default();
    if !policy.starts_with("HYBRID_TRANSFORMER") {
        let known = "HYBRID_TRANSFORMER and HYBRID_TRANSFORMER_FWD_IN_BCKWD";
        return Err(wrong(format!("the policy {policy:?} is not known; {known} are")));
    }
    let value = |key: &str| -> Result<Option<u32>, ProgramError> {
        let mut words =
            line.split_whitespace().skip_while(|word| word.trim_end_matches(':') != key);
        match (words.next(), words.next()) {
            (None, _) => Ok(None),
            (_, text) => {
                number_of(text.unwrap_or_default(), number, key, MOST).map(|n| Some(n as u32))
            }
        }
    };
    let at_least = |key: &str, value: Option<u32>| match value {
        Some(0) => Err(wrong(format!("{key} must be at least 1"))),
        value => Ok(value.unwrap_or(1)),
    };
    let tensor = at_least("model_parallel_NPU_group", value("model_parallel_NPU_group")?)?;
    let (expert, stages) = (at_least("ep", value("ep")?)?, at_least("pp", value("pp")?)?);
    let ranks =
        value("all_gpus")?.ok_or_else(|| wrong("there is no all_gpus: the ranks".into()))?;
    let (model, all) = (u64::from(tensor) * u64::from(stages), u64::from(ranks));
    if ranks == 0 || all % model != 0 || (all / model) % u64::from(expert) != 0 {
        let text = format!(
            "all_gpus {ranks} is no multiple of tensor {tensor} × pipeline {stages}, or what that \
             leaves none of ep {expert}"
        );
        return Err(wrong(text));
    }
    Ok(Parallel { ranks, tensor, expert, stages })
}

/// A column of a layer; `is_data`: its collectives are of the data-parallel group.
fn part(fields: &[(usize, &str)], is_data: bool) -> Result<Part, ProgramError> {
    let [(line, time), (_, kind), (_, bytes)] = *fields else {
        return Err(ProgramError::at("a layer", "a column has three fields"));
    };
    let compute = number_of(time, line, "a time", u64::MAX)?;
    let bytes = number_of(bytes, line, "a size", 1 << 48)?;
    let (name, division) = match kind {
        kind if kind.ends_with("_DP_EP") => {
            (kind.trim_end_matches("_DP_EP"), Division::DataOfExperts)
        }
        kind if kind.ends_with("_EP") => (kind.trim_end_matches("_EP"), Division::Expert),
        kind => (kind, if is_data { Division::Data } else { Division::Tensor }),
    };
    let operation = match name {
        "NONE" => None,
        "ALLREDUCE" => Some(Op::AllReduce),
        "ALLGATHER" => Some(Op::AllGather),
        "REDUCESCATTER" => Some(Op::ReduceScatter),
        "ALLTOALL" => Some(Op::AllToAll),
        _ => {
            let known = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, each with _EP or \
                         _DP_EP behind it";
            let text = format!("{kind:?} is no collective; they are {known}");
            return Err(ProgramError::at(format!("line {line}"), text));
        }
    };
    let collective = operation.filter(|_| bytes > 0).map(|operation| (operation, division, bytes));
    Ok(Part { compute, collective })
}

/// The operations of every rank while they are put in order.
struct Chain {
    parallel: Parallel,
    operations: Vec<Operation>,
    waits: Vec<(u32, u32, bool)>,
    calls: Vec<Call>,
    /// By division: its collectives so far.
    counts: [u32; 4],
    /// The operation that the next one waits for.
    last: Option<u32>,
}

impl Chain {
    fn push(&mut self, action: Action, size: u64, also: Option<u32>) -> u32 {
        let number = self.operations.len() as u32;
        self.operations.push(Operation { action, size, tag: 0, cpu: 0, nic: 0, waits: 0 });
        let awaited = self.last.into_iter().chain(also);
        self.waits.extend(awaited.map(|awaited| (number, awaited, false)));
        number
    }

    /// A computation; what follows waits for it.
    fn compute(&mut self, ns: u64, also: Option<u32>) {
        if ns > 0 || also.is_some() {
            self.last = Some(self.push(Action::Compute, ns, also));
        }
    }

    /// A collective, if there is anybody to do it with.
    fn call(&mut self, operation: Op, division: Division, bytes: u64) -> Option<u32> {
        let ranks = self.parallel.size(division);
        if ranks < 2 {
            return None;
        }
        let collective = Collective::plain(operation, algorithms(operation)[0], ranks, bytes);
        let call = Call { collective, groups: division as u32 };
        let number = self.calls.iter().position(|known| *known == call).unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        });
        let operation = self.push(Action::Collective { call: number as u32 }, bytes, None);
        let count = &mut self.counts[division as usize];
        self.operations[operation as usize].tag = *count;
        *count += 1;
        Some(operation)
    }
}

fn program(layers: &[([Part; 3], u64)], parallel: Parallel, iterations: u32) -> Program {
    let mut chain = Chain {
        parallel,
        operations: Vec::new(),
        waits: Vec::new(),
        calls: Vec::new(),
        counts: [0; 4],
        last: None,
    };
    // By layer: the collective of its weight gradient.
    let mut reduced: Vec<Option<u32>> = vec![None; layers.len()];
    for _ in 0..iterations {
        for (([forward, ..], _), reduced) in layers.iter().zip(&reduced) {
            chain.compute(forward.compute, *reduced);
            let call = |(op, of, bytes): (Op, _, u64)| chain.call(op, of, bytes.max(FORWARD_LEAST));
            chain.last = forward.collective.and_then(call).or(chain.last);
        }
        for (([_, input, weight], update), reduced) in layers.iter().zip(&mut reduced).rev() {
            chain.compute(input.compute, None);
            chain.last =
                input.collective.and_then(|(op, of, n)| chain.call(op, of, n)).or(chain.last);
            chain.compute(weight.compute, None);
            *reduced = weight.collective.and_then(|(op, of, n)| chain.call(op, of, n));
            if *update > 0 {
                // It waits for the gradient, and only the layer waits for it.
                let before = chain.last;
                chain.last = reduced.or(before);
                *reduced = Some(chain.push(Action::Compute, *update, None));
                chain.last = before;
            }
        }
    }
    let divisions = [Division::Tensor, Division::Data, Division::Expert, Division::DataOfExperts];
    let own = Arc::new(RankProgram::new(chain.operations, Vec::new(), &chain.waits));
    Program {
        ranks: vec![own; parallel.ranks as usize],
        calls: chain.calls,
        groups: divisions.map(|division| parallel.groups(division)).to_vec(),
        ..Program::default()
    }
}
