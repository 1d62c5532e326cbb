//! How keys stand in a scenario: which of them share a table, which one makes another ineffective,
//! and what their values look like.

use millpond_core::params::{Form, Key};

/// Keys that begin with one of these and a dash stand in a table of that name.
pub(crate) const GROUPS: &[&str] =
    &["host-link", "fabric-link", "inner-link", "bottleneck", "queues", "connections"];

/// A key that counts only where another one of its table does not: (place, kind, key, the other).
pub(crate) const RIVALS: &[(&str, &str, &str, &str)] = &[
    ("switch.marking", "ecn", "threshold-packets", "threshold-bytes"),
    ("host.jitter", "uniform", "packets", "size"),
    ("traffic", "rpc", "clients", "pairs"),
    ("traffic", "rpc", "servers", "pairs"),
];

/// Words for "no value" where a key may have none.
pub(crate) const OFF_WORDS: &[&str] = &["off", "none", "unlimited", "never"];

/// Places that take such a word for their kind "none".
pub(crate) const MAY_BE_OFF: &[&str] = &["host.jitter"];

/// A key's table and the rest of its name: `host-link-rate` is `rate` in the table `host-link`.
pub(crate) fn grouped(name: &str) -> (Option<&'static str>, &str) {
    for group in GROUPS {
        if let Some(leaf) = name.strip_prefix(group).and_then(|rest| rest.strip_prefix('-')) {
            return (Some(group), leaf);
        }
    }
    (None, name)
}

/// The name of a key as its table has it ("host-link.rate").
pub(crate) fn in_table(key: &Key) -> String {
    let name = key.name();
    match grouped(&name) {
        (Some(group), leaf) => format!("{group}.{leaf}"),
        (None, _) => name,
    }
}

/// The member of a group that a single value in its place means: `queues = "10us"` is `queues = {
/// every = "10us" }`.
pub(crate) const SHORT: &str = "every";

/// Whether a group has such a member.
pub(crate) fn has_short(keys: &[Key], group: &str) -> bool {
    keys.iter().any(|key| grouped(&key.name()) == (Some(group), SHORT))
}

/// The description of a value of this form.
pub(crate) fn form_text(form: Form) -> String {
    match form {
        Form::Bool => "true or false".into(),
        Form::Int => "a whole number".into(),
        Form::Float => "a number".into(),
        Form::Time => "a time such as \"10ms\"".into(),
        Form::Bytes => "a size such as \"300KB\"".into(),
        Form::Rate => "a rate such as \"10Gbps\"".into(),
        Form::Choice(words) => format!("one of {}", words.join(", ")),
        Form::Text => "a text".into(),
        Form::List => "a list of texts".into(),
    }
}

/// The description of a key's value, its range included.
pub(crate) fn key_text(key: &Key) -> String {
    let mut text = form_text(key.form);
    if let Some(range) = key.range_text() {
        text = format!("{text}, {range}");
    }
    if key.auto {
        text += ", or \"auto\"";
    }
    if key.rated {
        text += ", or a table by rate or tier such as { 50Gbps = …, core = …, others = … }";
    } else if key.tiered {
        text += ", or a table by tier such as { leaf = …, spine = …, others = … }";
    }
    text
}
