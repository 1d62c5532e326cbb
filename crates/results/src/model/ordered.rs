//! A JSON object whose keys keep their order.
//!
//! Invariant: what is read and written again has its keys in the order in which they were read.

use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};
use std::hash::Hash;

/// A JSON object whose keys keep the order in which they were put in. A value is found at once,
/// however many there are: a summary may have tens of thousands of classes, and a page asks for
/// each of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ordered<V>(pub(crate) IndexMap<String, V>);

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Ordered(IndexMap::new())
    }
}

impl<V> FromIterator<(String, V)> for Ordered<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(pairs: I) -> Self {
        Ordered(pairs.into_iter().collect())
    }
}

impl<V> From<Vec<(String, V)>> for Ordered<V> {
    fn from(pairs: Vec<(String, V)>) -> Self {
        pairs.into_iter().collect()
    }
}

/// Equal objects have their keys in the same order.
impl<V: PartialEq> PartialEq for Ordered<V> {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().eq(other.0.iter())
    }
}

impl<V> Ordered<V> {
    pub fn get(&self, key: &str) -> Option<&V> {
        self.0.get(key)
    }
    /// Puts a value behind the others, or in the place of the one that the key has.
    pub fn insert(&mut self, key: String, value: V) {
        self.0.insert(key, value);
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Names and values, in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }
}

/// Values in their order, without repetition.
pub(crate) fn each_once<T: Hash + Eq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    all.into_iter().collect::<IndexSet<T>>().into_iter().collect()
}
