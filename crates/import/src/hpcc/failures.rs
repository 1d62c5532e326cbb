//! Links that lose packets, and the one that goes down.
//!
//! Parallel links are apart: each has its own error rate, and one of them goes down. The programs
//! have one link for each pair of neighbours, the last of the topology file.

use millpond_core::Time;

use super::config::Config;
use super::fork::Fork;
use super::topology::Topology;
use crate::{Imported, Result, units};

/// The rate that all links are asked to lose packets at, and the tables that follow; `own` links of
/// `links` have a rate of their own.
fn losses(all: f64, own: usize, links: usize) -> String {
    match (all > 0.0, own) {
        (true, 0) => format!("[[failure]] with loss = {all:?} on each of {links} links"),
        (true, own) => format!(
            "[[failure]] with loss = {all:?} on each of {} links; links with rates of their own: \
             {own}",
            links - own
        ),
        (false, 0) => {
            "a rate of 0: no [[failure]], and packets are lost in full buffers alone".into()
        }
        (false, own) => {
            format!("a rate of 0: [[failure]] on links with rates of their own alone: {own}")
        }
    }
}

/// The `[[failure]]` tables.
pub(super) fn tables(
    config: &Config,
    fork: Fork,
    topology: &Topology,
    begin: Time,
    imported: &mut Imported,
) -> Result<String> {
    let network = &topology.network;
    let numbers = network.numbers();
    let given = || network.links.iter().zip(&numbers).filter(|(link, _)| !network.is_inside(link));
    let mut text = String::new();
    let all = config.number("ERROR_RATE_PER_LINK").unwrap_or(0.0);
    if all > 1.0 {
        let line = config.line("ERROR_RATE_PER_LINK");
        return line.fail(format!("{all} is not a share, from 0 to 1"));
    }
    config.becomes(
        "ERROR_RATE_PER_LINK",
        losses(all, network.links.iter().filter(|link| link.loss > 0.0).count(), given().count()),
    );
    for (link, number) in given() {
        let loss = if link.loss > 0.0 { link.loss } else { all };
        if loss > 0.0 {
            text += &format!("\n{}at = \"0us\"\nloss = {loss:?}\n", network.failing(link, *number));
        }
    }
    let down = config.numbers("LINK_DOWN").unwrap_or_default();
    let [us, a, b] = down[..] else { return Ok(text) };
    if us == 0 {
        config.becomes("LINK_DOWN", "no link goes down");
        return Ok(text);
    }
    let [at_a, at_b] = [a, b].map(|node| network.with_links_of(node));
    let between = |at: &usize| {
        let ends = (u64::from(network.links[*at].a), u64::from(network.links[*at].b));
        ends == (at_a, at_b) || ends == (at_b, at_a)
    };
    let line = config.line("LINK_DOWN");
    let last = (0..network.links.len()).rev().find(between);
    let at = last.ok_or_else(|| line.wrong(format!("there is no link between {a} and {b}")))?;
    let clock = units::seconds(&format!("{:.9}", fork.links_begin(config))).unwrap_or_default();
    let when = (clock + Time::from_us(us)).saturating_sub(begin);
    let names = [network.links[at].a, network.links[at].b].map(|node| network.name(node));
    let which = numbers[at].map(|number| format!(", number {number}")).unwrap_or_default();
    config.becomes(
        "LINK_DOWN",
        format!("[[failure]] of {} and {}{which}, at {when}", names[0], names[1]),
    );
    if let Some(number) = numbers[at] {
        imported.facts.push(format!(
            "{line}: {} and {} have {} links between them: the last one goes down, the only \
             one that the program uses",
            names[0],
            names[1],
            number + 1
        ));
    }
    text += &format!(
        "\n{}at = \"{when}\"\nconverge = \"0us\"\n",
        network.failing(&network.links[at], numbers[at])
    );
    Ok(text)
}
