//! Numbers in the form of the summary's objects.

use serde::{Deserialize, Serialize};

use super::ordered::Ordered;

/// Numbers in the form of the summary's objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Tree<L> {
    Leaf(L),
    Branch(Ordered<Tree<L>>),
}

impl<L> Tree<L> {
    /// The number at a path such as `["fct_us", "mice", "p99"]`.
    pub fn leaf(&self, path: &[impl AsRef<str>]) -> Option<&L> {
        match (self, path) {
            (Tree::Leaf(leaf), []) => Some(leaf),
            (Tree::Branch(children), [first, rest @ ..]) => {
                children.get(first.as_ref())?.leaf(rest)
            }
            _ => None,
        }
    }

    pub(crate) fn at(&self, path: &[impl AsRef<str>]) -> Option<&Tree<L>> {
        match (self, path) {
            (_, []) => Some(self),
            (Tree::Branch(children), [first, rest @ ..]) => children.get(first.as_ref())?.at(rest),
            (Tree::Leaf(_), _) => None,
        }
    }

    /// The object at a path such as `["fct_us"]`.
    pub fn branch(&self, path: &[impl AsRef<str>]) -> Option<&Ordered<Tree<L>>> {
        match (self, path) {
            (Tree::Branch(children), []) => Some(children),
            (Tree::Branch(children), [first, rest @ ..]) => {
                children.get(first.as_ref())?.branch(rest)
            }
            (Tree::Leaf(_), _) => None,
        }
    }
}
