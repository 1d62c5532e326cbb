//! The scenario reference of the book, as Markdown, from the catalogue.

use crate::catalogue::{KeyInfo, PlaceInfo, dependences, page_name, places, tables};
use crate::cdf::{BUILTIN, Cdf};
use crate::keys::key_text;
use millpond_core::params::Form;
use millpond_core::registry::Mechanism;
use millpond_core::switch::site::AUTO;
use std::fmt::Write;

pub fn reference() -> String {
    let mut out = String::from(
        "# Scenario reference\n\nGenerated from the declarations by `millpond`'s own catalogue: \
         what is not here cannot be set.\n\nKeys are kebab-case. Sizes: `KB/MB/GB` are powers of \
         1000, `KiB/MiB/GiB` powers of 1024; a bare number is bytes. Rates are decimal \
         (`\"10Gbps\"`). Times: `ps ns us ms s`. Where a key may be off, `\"off\"`, `\"none\"` \
         and `\"unlimited\"` mean the same. An unknown key, or one that the chosen kind does not \
         use, is an error.\n",
    );
    for table in tables() {
        let heading = match table.path {
            "" => "Keys outside any table".to_string(),
            "traffic" => "`[[traffic]]`: common keys".to_string(),
            "transport" => "`[transport]`: common keys".to_string(),
            "failure" => "`[[failure]]`".to_string(),
            "application" => "`[[application]]`".to_string(),
            "program" => "`[[program]]`".to_string(),
            "limit" => "`[[limit]]`: common keys".to_string(),
            path => format!("`[{path}]`"),
        };
        let _ = writeln!(out, "\n## {heading}\n\n{}\n", table.about);
        key_table(&mut out, &table.keys);
    }
    pages(&mut out);
    rules(&mut out);
    for place in places() {
        place_section(&mut out, &place);
    }
    out.push_str(
        "\n## Built-in flow sizes\n\n| name | mean, bytes | form | source |\n|---|---|---|---|\n",
    );
    for b in BUILTIN.iter() {
        let Some(cdf) = Cdf::builtin(b.name) else { continue };
        let _ = writeln!(
            out,
            "| `{}` | {:.0} | {} | {} |",
            b.name,
            cdf.mean(),
            cdf.shape().name(),
            b.source
        );
    }
    out.push_str(
        "\n## `[[variant]]`\n\n`name`, `about` (a sentence or two for the first lines of \
         outputs), and `set`: a table of dotted keys in quotes and their \
         values, such as `{ \"switch.path.kind\" = \"spray\" }`; a traffic's keys are \
         `traffic.NAME.KEY`. Setting a `kind` resets its table to that kind's defaults; the \
         transport's common keys and a traffic's name, start and stop stay.\n",
    );
    out
}

/// The mechanisms' pages by place. Topologies and traffic are described in the scenario's page.
fn pages(out: &mut String) {
    out.push_str("\n## Mechanisms\n\n| place | question | pages |\n|---|---|---|\n");
    for info in places().iter().filter(|info| !matches!(info.place.path, "topology" | "traffic")) {
        let mechanisms = info
            .kinds
            .iter()
            .map(|kind| &kind.mechanism)
            .filter(|mechanism| mechanism.kind != "none");
        let link = |mechanism: &Mechanism| {
            format!("[{}](mechanisms/{}.md)", mechanism.kind, page_name(mechanism))
        };
        let links: Vec<String> = mechanisms.map(link).collect();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            info.place.path,
            info.place.question,
            links.join(", ")
        );
    }
}

/// The meaning of "auto" for each key that takes it.
fn rules(out: &mut String) {
    out.push_str(
        "\n## Amounts that a rule gives\n\nA key that is `\"auto\"` follows the network: its \
         links' rates and delays, its ports' memory. The empty network's longest round trip is \
         that of a full packet and its answer between the two hosts that are furthest apart, with \
         the hosts' delays and the most that their jitter adds.\n\n| key | kinds | default | rule \
         |\n|---|---|---|---|\n",
    );
    let mut rows: Vec<(String, Vec<&str>, String, String)> = Vec::new();
    let mut add = |info: &KeyInfo, kind: Option<&'static str>| {
        let Some(rule) = rule(info) else { return };
        let same =
            |row: &&mut (String, Vec<&str>, String, String)| row.0 == info.path && row.3 == rule;
        match rows.iter_mut().find(same) {
            Some(row) => row.1.extend(kind),
            None => rows.push((
                info.path.clone(),
                kind.into_iter().collect(),
                info.default.clone(),
                rule,
            )),
        }
    };
    tables().iter().flat_map(|table| &table.keys).for_each(|info| add(info, None));
    for kind in places().iter().flat_map(|place| &place.kinds) {
        kind.keys.iter().for_each(|info| add(info, Some(kind.mechanism.kind)));
    }
    for (path, kinds, default, rule) in rows {
        let _ =
            writeln!(out, "| `{path}` | {} | `{default}` | {} |", kinds.join(", "), cell(&rule));
    }
}

/// The meaning of "auto" for a key, if the key takes it: its text from that word on.
fn rule(info: &KeyInfo) -> Option<String> {
    let is_word = matches!(info.key.form, Form::Choice(words) if words.contains(&AUTO));
    let (meaning, _) = info.meaning();
    let word = format!("\"{AUTO}\"");
    let from = meaning.find(&word).filter(|_| info.key.auto || is_word)?;
    Some(
        meaning[from + word.len()..]
            .trim_start_matches([':', ' '])
            .trim_start_matches("is ")
            .to_string(),
    )
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn key_table(out: &mut String, keys: &[KeyInfo]) {
    out.push_str("| key | form | default | meaning |\n|---|---|---|---|\n");
    for info in keys {
        let (meaning, source) = info.meaning();
        let off = if info.key.optional { ", or off" } else { "" };
        let source = source.map(|s| format!(" *Source: {s}*")).unwrap_or_default();
        let form = cell(&key_text(&info.key));
        let _ = writeln!(
            out,
            "| `{}` | {form}{off} | `{}` | {}{} |",
            info.name,
            info.default,
            cell(&meaning),
            cell(&source)
        );
    }
}

fn place_section(out: &mut String, info: &PlaceInfo) {
    let place = info.place;
    let heading = match place.path {
        "traffic" => "[traffic]",
        "limit" => "[limit]",
        path => path,
    };
    let _ = writeln!(
        out,
        "\n## `{heading}`: kinds\n\n*{}* Default: `{}`.",
        place.question, place.default
    );
    for kind in &info.kinds {
        let about = kind.mechanism.about;
        let _ = write!(out, "\n### `{}`\n\n{}", kind.mechanism.kind, about.summary);
        if !about.source.is_empty() {
            let _ = write!(out, " ({})", about.source);
        }
        out.push_str(".\n");
        for (what, list) in dependences(about).iter().filter(|(_, list)| !list.is_empty()) {
            let what = what[..1].to_uppercase() + &what[1..];
            let _ = writeln!(out, "\n{what} `{}`.", list.join("`, `"));
        }
        if !kind.keys.is_empty() {
            out.push('\n');
            key_table(out, &kind.keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key that takes "auto" says what it means by it, and the reference lists it.
    #[test]
    fn every_rule_is_listed() {
        let text = reference();
        let tables = tables().into_iter().flat_map(|table| table.keys);
        let keys = tables
            .chain(places().into_iter().flat_map(|place| place.kinds).flat_map(|kind| kind.keys));
        let is_word =
            |info: &KeyInfo| matches!(info.key.form, Form::Choice(words) if words.contains(&AUTO));
        let mut count = 0;
        for info in keys.filter(|info| info.key.auto || is_word(info)) {
            let rule = rule(&info)
                .unwrap_or_else(|| panic!("{} does not say what \"auto\" is", info.path));
            let listed = |line: &str| {
                line.starts_with(&format!("| `{}` |", info.path)) && line.contains(&cell(&rule))
            };
            assert!(!rule.is_empty() && text.lines().any(listed), "{}: {rule:?}", info.path);
            count += 1;
        }
        assert!(count > 30, "{count}");
    }

    #[test]
    fn every_key_is_documented() {
        let text = reference();
        let keys = tables().into_iter().flat_map(|t| t.keys);
        for key in keys.chain(places().into_iter().flat_map(|p| p.kinds).flat_map(|k| k.keys)) {
            assert!(text.contains(&format!("| `{}` |", key.name)), "{}", key.path);
            assert!(!key.meaning().0.is_empty(), "{} has no meaning", key.path);
        }
    }
}
