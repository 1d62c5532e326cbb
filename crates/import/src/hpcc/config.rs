//! The configuration: a line a key, by name and value. What became of each is kept beside it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use millpond_core::Rate;

use super::keys::{Form, KEYS, Key, Part, find};
use crate::source::Source;
use crate::told::{Fate, Told};
use crate::{Error, Result, units};

/// A line of a group: SimAI's settings of some nodes alone.
static GROUP: Key = Key {
    names: &["GROUP_START{"],
    form: Form::Word,
    part: Part::Unless("", "settings of some nodes alone are not modelled: all nodes have the same"),
};

/// A key as it is given.
struct Given {
    key: &'static Key,
    line: usize,
    /// As it is written, shortened.
    text: String,
    words: Vec<String>,
}

/// The configuration.
pub(super) struct Config {
    pub source: Source,
    given: Vec<Given>,
    /// By a key's first name: the last line that gives it.
    last: BTreeMap<&'static str, usize>,
    fates: RefCell<BTreeMap<usize, Fate>>,
}

impl Config {
    pub fn read(source: Source) -> Result<Config> {
        let mut given: Vec<Given> = Vec::new();
        let mut in_group = false;
        for (line, words) in source.lines() {
            if words[0] == GROUP.names[0] || in_group {
                in_group = words[0] != "}GROUP_END";
                given.push(Given { key: &GROUP, line, text: words.join(" "), words: Vec::new() });
                continue;
            }
            let key = find(words[0]).ok_or_else(|| unknown(&source, line, words[0]))?;
            let values = &words[1..];
            check(&source, line, key, values)?;
            let text =
                if values.len() > 3 { format!("{} {} …", words[0], values[..3].join(" ")) } else { words.join(" ") };
            given.push(Given { key, line, text, words: values.iter().map(|word| word.to_string()).collect() });
        }
        let last = given.iter().enumerate().map(|(at, given)| (given.key.names[0], at)).collect();
        Ok(Config { source, given, last, fates: RefCell::default() })
    }

    fn of(&self, name: &str) -> Option<&Given> {
        debug_assert!(find(name).is_some_and(|key| key.names[0] == name), "{name} is in the table");
        self.last.get(name).map(|at| &self.given[*at])
    }

    /// The line of a key; without it the first one.
    pub fn line(&self, name: &str) -> usize {
        self.of(name).map_or(1, |given| given.line)
    }

    pub fn word(&self, name: &str) -> Option<&str> {
        self.of(name)?.words.first().map(String::as_str)
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.word(name)?.parse().ok()
    }

    pub fn whole(&self, name: &str) -> Option<u64> {
        match self.word(name)? {
            "true" => Some(1),
            "false" => Some(0),
            word => word.parse().ok(),
        }
    }

    /// The numbers of a map by rate.
    pub fn map(&self, name: &str) -> Option<BTreeMap<Rate, f64>> {
        let pairs = self.of(name)?.words[1..].chunks(2);
        Some(pairs.filter_map(|pair| Some((Rate(pair[0].parse().ok()?), pair[1].parse().ok()?))).collect())
    }

    /// The whole numbers of LINK_DOWN.
    pub fn numbers(&self, name: &str) -> Option<Vec<u64>> {
        self.of(name)?.words.iter().map(|word| word.parse().ok()).collect()
    }

    /// Tells what became of a key, if it is given.
    pub fn tell(&self, name: &str, fate: Fate) {
        if let Some(at) = self.last.get(name) {
            self.fates.borrow_mut().insert(*at, fate);
        }
    }

    pub fn becomes(&self, name: &str, what: impl Into<String>) {
        self.tell(name, Fate::Becomes(what.into()));
    }

    pub fn missing(&self, name: &str, means: impl Into<String>) {
        self.tell(name, Fate::Missing(means.into()));
    }

    pub fn unused(&self, name: &str, why: impl Into<String>) {
        self.tell(name, Fate::Unused(why.into()));
    }

    /// The keys of the transport's part that are given.
    pub fn transport_keys(&self) -> impl Iterator<Item = &'static str> {
        let is_transport = |given: &&Given| given.key.part == Part::Transport;
        self.given.iter().filter(is_transport).map(|given| given.key.names[0])
    }

    /// What became of every key, in their order.
    pub fn told(&self) -> Vec<Told> {
        let fates = self.fates.borrow();
        let fate = |at: usize, given: &Given| -> Fate {
            let is_group = std::ptr::eq(given.key, &GROUP);
            if !is_group && self.last.get(given.key.names[0]) != Some(&at) {
                return Fate::Unused("it is given again below".into());
            }
            if let Some(fate) = fates.get(&at) {
                return fate.clone();
            }
            let same = |value: &str| {
                let number = |text: &str| match text {
                    "true" => Some(1.0),
                    "false" => Some(0.0),
                    text => text.parse::<f64>().ok(),
                };
                let own = given.words.first().map_or("", String::as_str);
                own == value || number(own).is_some() && number(own) == number(value)
            };
            match given.key.part {
                Part::Output => Fate::Output,
                Part::Unused(why) => Fate::Unused(why.into()),
                Part::Unless(value, _) if !value.is_empty() && same(value) => Fate::Becomes("what is modelled".into()),
                Part::Unless(_, means) => Fate::Missing(means.into()),
                // A key that the importer forgot is not told as honoured.
                Part::Read | Part::Transport => Fate::Missing("nothing here reads it".into()),
            }
        };
        let told = |(at, given): (usize, &Given)| Told {
            place: format!("{}:{}", self.source.name, given.line),
            text: given.text.clone(),
            fate: fate(at, given),
        };
        self.given.iter().enumerate().map(told).collect()
    }

    /// The file that a key names. Such names are relative to the folder in which the simulator was
    /// started, which is often above the configuration's, and may be absolute on another machine:
    /// so they are looked for from here, from the configuration's folder and those above it, and
    /// there by ever shorter ends of the name.
    pub fn file(&self, name: &'static str) -> Result<Source> {
        let Some(named) = self.word(name) else {
            return Err(self.source.wrong(self.source.end(), format!("there is no {name}")));
        };
        let given = Path::new(&self.source.name);
        let whole = std::path::absolute(given).unwrap_or_else(|_| given.to_path_buf());
        // By the names as they were given, as far as these lead, so that messages have them.
        let above = given.ancestors().skip(1).chain(whole.ancestors().skip(1));
        let bases: Vec<&Path> = std::iter::once(Path::new("")).chain(above).collect();
        let parts: Vec<_> = Path::new(named).components().collect();
        let ends = (0..parts.len()).map(|from| parts[from..].iter().collect::<PathBuf>());
        let found = ends.flat_map(|end| bases.iter().map(move |base| base.join(&end))).find(|path| path.is_file());
        match found {
            Some(path) => Source::read(&path),
            None => {
                let (file, line) = (self.source.name.clone(), self.line(name));
                Err(Error::Missing { file, line, named: named.to_string() })
            }
        }
    }
}

fn unknown(source: &Source, line: usize, name: &str) -> Error {
    let near = millpond_scenario::nearest(name, KEYS.iter().flat_map(|key| key.names).copied());
    // Names are told apart by their letters, whose case the comparison does not see.
    let upper = KEYS.iter().flat_map(|key| key.names).find(|known| known.eq_ignore_ascii_case(name));
    let by_upper = KEYS.iter().flat_map(|key| key.names).copied();
    let closest = || by_upper.min_by_key(|known| distance(known, name)).filter(|known| distance(known, name) <= 3);
    let help =
        upper.copied().or(near).or_else(closest).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    source.wrong(line, format!("no simulator of the family has a key {name:?}{help}"))
}

/// How many letters differ, place by place, at the better of both ends.
fn distance(a: &str, b: &str) -> usize {
    let of =
        |a: &mut dyn Iterator<Item = u8>, b: &mut dyn Iterator<Item = u8>| a.zip(b).take_while(|(a, b)| a == b).count();
    let same = of(&mut a.bytes(), &mut b.bytes()) + of(&mut a.bytes().rev(), &mut b.bytes().rev());
    a.len().max(b.len()).saturating_sub(same)
}

/// Whether the values have the key's form.
fn check(source: &Source, line: usize, key: &Key, values: &[&str]) -> Result<()> {
    let name = key.names[0];
    let count = match key.form {
        Form::Map => {
            let pairs = source.whole((line, values.first().copied().unwrap_or("")), name)?;
            1 + 2 * pairs as usize
        }
        Form::Down => 3,
        _ => 1,
    };
    if values.len() != count {
        return Err(source.wrong(line, format!("{name} has {} values, and should have {count}", values.len())));
    }
    for (at, &value) in values.iter().enumerate() {
        let is_number = value.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0);
        let fits = match key.form {
            Form::Whole => value.parse::<u64>().is_ok() || value == "true" || value == "false",
            Form::Down => value.parse::<u64>().is_ok(),
            Form::Map if at == 0 || at % 2 == 1 => value.parse::<u64>().is_ok(),
            Form::Map | Form::Number => is_number,
            Form::Rate => units::rate(value).is_some(),
            Form::Word => true,
        };
        if !fits {
            let what = match key.form {
                Form::Whole => "a whole number, true or false",
                Form::Rate => "a rate such as 5Mb/s",
                Form::Number => "a number from 0",
                _ => "a whole number",
            };
            return Err(source.wrong(line, format!("{name}: {value:?} is not {what}")));
        }
    }
    Ok(())
}
