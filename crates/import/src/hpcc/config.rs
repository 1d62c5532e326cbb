//! The configuration: a line a key, by name and value. The fate of each is kept beside it.
//!
//! The family's programs read words, and skip unknown ones. So does this: an unknown key, and words
//! behind a value, are kept with their probable meaning (`guess`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use millpond_core::Rate;

use super::guess;
use super::keys::{Form, Key, Part, find};
use crate::outcome::{Fate, Outcome};
use crate::source::{Place, Source};
use crate::{Error, Result, units};

/// A key as it is given.
struct Given {
    /// `None`: it is in no table, or a line of a group, or words behind a value.
    key: Option<&'static Key>,
    line: usize,
    text: String,
    words: Vec<String>,
}

/// The fate of settings of some nodes (`GROUP_START{` in SimAI's).
const GROUP: &str = "settings of some nodes alone are not modelled: all nodes have the same";

pub(super) struct Config {
    pub source: Source,
    given: Vec<Given>,
    /// By a key's first name: the last line that gives it.
    last: BTreeMap<&'static str, usize>,
    fates: RefCell<BTreeMap<usize, Fate>>,
    /// Files that are given in the place of those that keys name.
    instead: BTreeMap<&'static str, Source>,
}

impl Config {
    pub fn read(source: Source) -> Result<Config> {
        let mut given: Vec<Given> = Vec::new();
        let mut fates: BTreeMap<usize, Fate> = BTreeMap::new();
        let mut in_group = false;
        let mut strange = |given: &mut Vec<Given>, line, text, fate| {
            fates.insert(given.len(), fate);
            given.push(Given { key: None, line, text, words: Vec::new() });
        };
        for (line, words) in source.lines() {
            if words[0] == "GROUP_START{" || in_group {
                in_group = words[0] != "}GROUP_END";
                strange(&mut given, line.number, words.join(" "), Fate::Missing(GROUP.into()));
                continue;
            }
            for (name, values) in statements(&words) {
                let Some(key) = find(name) else {
                    let means = guess::meaning(name, values);
                    strange(&mut given, line.number, shortened(name, values), Fate::Unknown(means));
                    continue;
                };
                let count = check(line, key, values)?;
                // Pairs beyond the announced ones are not read there; here they are, if a link
                // needs them.
                let read = if key.form == Form::Map { values.len() } else { count };
                let words = values[..read].iter().map(|word| word.to_string()).collect();
                let text = shortened(name, &values[..count]);
                given.push(Given { key: Some(key), line: line.number, text, words });
                if values.len() > count {
                    let text = format!("{name} … {}", values[count..].join(" "));
                    let means = guess::surplus(key, count, values);
                    strange(&mut given, line.number, text, Fate::Unknown(means));
                }
            }
        }
        let known = given.iter().enumerate().filter_map(|(at, given)| Some((given.key?, at)));
        let last = known.map(|(key, at)| (key.name(), at)).collect();
        Ok(Config { source, given, last, fates: RefCell::new(fates), instead: BTreeMap::new() })
    }

    /// Takes this file for the one that a key names.
    pub fn instead(&mut self, name: &'static str, source: Option<Source>) {
        self.instead.extend(source.map(|source| (name, source)));
    }

    fn of(&self, name: &str) -> Option<&Given> {
        debug_assert!(find(name).is_some_and(|key| key.name() == name), "{name} is in the table");
        self.last.get(name).map(|at| &self.given[*at])
    }

    /// The line of a key; without it the first one.
    pub fn line(&self, name: &str) -> Place<'_> {
        self.source.at(self.of(name).map_or(1, |given| given.line))
    }

    pub fn word(&self, name: &str) -> Option<&str> {
        self.of(name)?.words.first().map(String::as_str)
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        units::number(self.word(name)?)
    }

    pub fn whole(&self, name: &str) -> Option<u64> {
        whole(self.word(name)?)
    }

    /// The numbers of a map by rate, also those of pairs behind the announced ones.
    pub fn map(&self, name: &str) -> Option<BTreeMap<Rate, f64>> {
        let mut map = BTreeMap::new();
        for pair in self.of(name)?.words[1..].chunks_exact(2) {
            if let (Some(rate), Some(number)) = (units::rate(&pair[0]), units::number(&pair[1])) {
                map.entry(rate).or_insert(number);
            }
        }
        Some(map)
    }

    pub fn numbers(&self, name: &str) -> Option<Vec<u64>> {
        self.of(name)?.words.iter().map(|word| word.parse().ok()).collect()
    }

    /// Reports what became of a key, if it is given.
    pub fn set(&self, name: &str, fate: Fate) {
        if let Some(at) = self.last.get(name) {
            self.fates.borrow_mut().insert(*at, fate);
        }
    }

    pub fn becomes(&self, name: &str, what: impl Into<String>) {
        self.set(name, Fate::Becomes(what.into()));
    }

    pub fn missing(&self, name: &str, means: impl Into<String>) {
        self.set(name, Fate::Missing(means.into()));
    }

    pub fn unused(&self, name: &str, why: impl Into<String>) {
        self.set(name, Fate::Unused(why.into()));
    }

    /// The keys of the transport's part that are given.
    pub fn transport_keys(&self) -> impl Iterator<Item = &'static str> {
        let keys = self.given.iter().filter_map(|given| given.key);
        keys.filter(|key| key.part == Part::Transport).map(Key::name)
    }

    /// The fate of every key, in their order.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let fates = self.fates.borrow();
        let fate = |at: usize, given: &Given| -> Fate {
            let last = given.key.and_then(|key| self.last.get(key.name()));
            if last.is_some_and(|last| *last != at) {
                return Fate::Unused("it is given again below".into());
            }
            // Each without a key has its fate.
            let (Some(key), None) = (given.key, fates.get(&at)) else { return fates[&at].clone() };
            let same = |value: &str| {
                let number = |text: &str| match text {
                    "true" => Some(1.0),
                    "false" => Some(0.0),
                    text => text.parse::<f64>().ok(),
                };
                let own = given.words.first().map_or("", String::as_str);
                own == value || number(own).is_some() && number(own) == number(value)
            };
            match key.part {
                Part::Output => Fate::Output,
                Part::Unused => Fate::Unused(key.means.clone()),
                Part::Unless if !key.value.is_empty() && same(&key.value) => {
                    Fate::Becomes("as here: no other value is modelled".into())
                }
                Part::Unless => Fate::Missing(key.means.clone()),
                // A key that the importer forgot is not reported as honoured.
                Part::Read | Part::Transport => Fate::Missing("nothing here reads it".into()),
            }
        };
        let outcome = |(at, given): (usize, &Given)| Outcome {
            place: format!("{}:{}", self.source.name, given.line),
            text: given.text.clone(),
            fate: fate(at, given),
        };
        self.given.iter().enumerate().map(outcome).collect()
    }

    /// The file that a key names. Such names are relative to the folder in which the simulator was
    /// started, which is often above the configuration's, and may be absolute on another machine:
    /// so they are looked for from here, from the configuration's folder and those above it, and
    /// there by ever shorter ends of the name.
    pub fn file(&self, name: &'static str) -> Result<Source> {
        if let Some(source) = self.instead.get(name) {
            return Ok(source.clone());
        }
        let Some(named) = self.word(name) else {
            let option = match name {
                "TOPOLOGY_FILE" => "; --topology gives one",
                _ => "",
            };
            return self.source.end().fail(format!("there is no {name}{option}"));
        };
        let given = Path::new(&self.source.name);
        let whole = std::path::absolute(given).unwrap_or_else(|_| given.to_path_buf());
        // By the names as they were given, as far as these lead, so that messages have them.
        let above = given.ancestors().skip(1).chain(whole.ancestors().skip(1));
        let bases: Vec<&Path> = std::iter::once(Path::new("")).chain(above).collect();
        let parts: Vec<_> = Path::new(named).components().collect();
        let ends = (0..parts.len()).map(|from| parts[from..].iter().collect::<PathBuf>());
        let found = ends
            .flat_map(|end| bases.iter().map(move |base| base.join(&end)))
            .find(|path| path.is_file());
        match found {
            Some(path) => Source::read(&path),
            None => {
                let (file, line) = (self.source.name.clone(), self.line(name).number);
                Err(Error::Missing { file, line, named: named.to_string() })
            }
        }
    }
}

/// A whole number from 0, also as `1.0`, `1e6`, `true` or `false`.
fn whole(word: &str) -> Option<u64> {
    match word {
        "true" => Some(1),
        "false" => Some(0),
        _ => word.parse().ok().or_else(|| {
            let number = units::number(word)?;
            (number.fract() == 0.0 && number < 9e15).then_some(number as u64)
        }),
    }
}

/// The keys of a line with their values: several may stand on one line.
fn statements<'w, 's>(words: &'w [&'s str]) -> Vec<(&'s str, &'w [&'s str])> {
    let is_next = |at: &usize| *at == 0 || *at > 1 && find(words[*at]).is_some();
    let starts: Vec<usize> = (0..words.len()).filter(is_next).collect();
    let ends = starts.iter().skip(1).copied().chain([words.len()]);
    starts.iter().zip(ends).map(|(start, end)| (words[*start], &words[start + 1..end])).collect()
}

/// A key with its first values.
fn shortened(name: &str, values: &[&str]) -> String {
    match values {
        [] => name.to_string(),
        _ if values.len() > 3 => format!("{name} {} …", values[..3].join(" ")),
        _ => format!("{name} {}", values.join(" ")),
    }
}

/// Whether the values have the key's form. Returns how many of them it takes.
fn check(line: Place<'_>, key: &Key, values: &[&str]) -> Result<usize> {
    let name = key.name();
    // Nobody reads these: any value will do.
    if matches!(key.part, Part::Output | Part::Unused) {
        return Ok(values.len());
    }
    let count = match key.form {
        Form::Map => {
            let pairs = line.whole(values.first().copied().unwrap_or(""), name)?;
            usize::try_from(pairs).unwrap_or(usize::MAX).saturating_mul(2).saturating_add(1)
        }
        Form::Down => 3,
        _ => 1,
    };
    if values.len() < count {
        return line.fail(format!("{name} has {} values, and should have {count}", values.len()));
    }
    for (at, &value) in values[..count].iter().enumerate() {
        let fits = match key.form {
            Form::Whole => whole(value).is_some(),
            Form::Down => value.parse::<u64>().is_ok(),
            Form::Map if at % 2 == 1 => {
                units::rate(value).is_some_and(|_| units::has_no_unit(value))
            }
            Form::Map | Form::Number => units::number(value).is_some(),
            Form::Rate => units::rate_or_zero(value).is_some(),
            Form::Word => true,
        };
        if !fits {
            let what = match key.form {
                Form::Whole => "a whole number, true or false",
                Form::Rate => "a rate such as 5Mb/s",
                Form::Number => "a number from 0",
                Form::Map if at % 2 == 1 => "a rate in bit/s",
                Form::Map => "a number from 0",
                _ => "a whole number",
            };
            return line.fail(format!("{name}: {value:?} is not {what}"));
        }
    }
    Ok(count)
}
