//! The tables of a daemon's configuration: checked key by key, and written as text.
//!
//! Invariant: what is written is read back as the same.

use millpond_core::params::{Key, Params};
use millpond_scenario::document::{DocumentReader, Item, value_text};

/// A table whose keys were read, while its values are checked.
pub(crate) struct Checked<'r, 'a> {
    pub reader: &'r mut DocumentReader<'a>,
    pub item: &'r Item<'a>,
}

impl<'r, 'a> Checked<'r, 'a> {
    /// Reads the keys that `params` declare. Reports the others.
    pub fn read(
        reader: &'r mut DocumentReader<'a>,
        item: &'r mut Item<'a>,
        params: &mut [&mut dyn Params],
    ) -> Checked<'r, 'a> {
        params.iter_mut().for_each(|params| reader.params(item, *params));
        reader.finish(item);
        Checked { reader, item }
    }

    pub fn has(&self, key: &str) -> bool {
        self.item.has(key)
    }
    pub fn missing(&mut self, key: &str) {
        self.reader.missing(self.item, key);
    }
    /// Those of some keys that are written.
    pub fn written<'k>(&self, keys: &[&'k str]) -> Vec<&'k str> {
        keys.iter().copied().filter(|key| self.has(key)).collect()
    }
    /// Reports those of some keys that are not written.
    pub fn need(&mut self, keys: &[&str]) {
        keys.iter()
            .filter(|key| !self.item.has(key))
            .for_each(|key| self.reader.missing(self.item, key));
    }
    /// Reports a value, at its place or that of the table.
    pub fn wrong(&mut self, key: &str, message: impl Into<String>) {
        self.reader.wrong(self.item, key, message, None);
    }
    /// As [`Checked::wrong`], with what to do about it.
    pub fn wrong_help(&mut self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        self.reader.wrong(self.item, key, message, Some(help.into()));
    }
}

/// Parameters as the lines of a table, those that are not the default's. A rate has no default.
pub(crate) fn written(params: &dyn Params, default: &dyn Params) -> String {
    let line = |(i, key): (usize, &Key)| {
        let value = params.get(i);
        (value != default.get(i) || key.field == "rate")
            .then(|| format!("{} = {}\n", key.name(), value_text(&value)))
    };
    params.keys().iter().enumerate().filter_map(line).collect()
}
