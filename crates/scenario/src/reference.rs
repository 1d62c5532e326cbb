//! The scenario reference of the book, as Markdown, from the catalogue.

use crate::catalogue::{KeyInfo, PlaceInfo, page_name, places, tables};
use crate::cdf::{BUILTIN, Cdf};
use crate::read::key_text;
use millpond_core::registry::Mechanism;
use std::fmt::Write;

/// The whole reference.
pub fn reference() -> String {
    let mut out = String::from(
        "# Scenario reference\n\nGenerated from the declarations by `millpond`'s own catalogue: what is not here cannot be set.\n\n\
         Keys are kebab-case. Sizes: `KB/MB/GB` are powers of 1000, `KiB/MiB/GiB` powers of 1024; a bare number is bytes. \
         Rates are decimal (`\"10Gbps\"`). Times: `ps ns us ms s`. Where a key may be off, `\"off\"`, `\"none\"` and \
         `\"unlimited\"` mean the same. An unknown key, or one that the chosen kind does not use, is an error.\n",
    );
    for table in tables() {
        let heading = match table.path {
            "" => "Keys outside any table".to_string(),
            "traffic" => "`[[traffic]]`: common keys".to_string(),
            "transport" => "`[transport]`: common keys".to_string(),
            "failure" => "`[[failure]]`".to_string(),
            "application" => "`[[application]]`".to_string(),
            "limit" => "`[[limit]]`: common keys".to_string(),
            path => format!("`[{path}]`"),
        };
        let _ = writeln!(out, "\n## {heading}\n\n{}\n", table.about);
        key_table(&mut out, &table.keys);
    }
    pages(&mut out);
    for place in places() {
        place_section(&mut out, &place);
    }
    out.push_str("\n## Built-in flow sizes\n\n| name | mean, bytes | form | source |\n|---|---|---|---|\n");
    for b in BUILTIN {
        let Some(cdf) = Cdf::builtin(b.name) else { continue };
        let _ = writeln!(out, "| `{}` | {:.0} | {} | {} |", b.name, cdf.mean(), cdf.shape().name(), b.source);
    }
    out.push_str(
        "\n## `[[variant]]`\n\n`name`, and `set`: a table of dotted keys in quotes and their values, such as \
         `{ \"switch.path.kind\" = \"spray\" }`; a traffic's keys are `traffic.NAME.KEY`. Setting a `kind` resets its table \
         to that kind's defaults; the transport's common keys and a traffic's name, start and stop stay.\n",
    );
    out
}

/// The mechanisms' pages by place. Topologies and traffic are told of in the scenario's page.
fn pages(out: &mut String) {
    out.push_str("\n## Mechanisms\n\n| place | question | pages |\n|---|---|---|\n");
    for info in places().iter().filter(|info| !matches!(info.place.path, "topology" | "traffic")) {
        let mechanisms = info.kinds.iter().map(|kind| &kind.mechanism).filter(|mechanism| mechanism.kind != "none");
        let link = |mechanism: &Mechanism| format!("[{}](mechanisms/{}.md)", mechanism.kind, page_name(mechanism));
        let links: Vec<String> = mechanisms.map(link).collect();
        let _ = writeln!(out, "| `{}` | {} | {} |", info.place.path, info.place.question, links.join(", "));
    }
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
    let _ = writeln!(out, "\n## `{heading}`: kinds\n\n*{}* Default: `{}`.", place.question, place.default);
    for kind in &info.kinds {
        let about = kind.mechanism.about;
        let _ = write!(out, "\n### `{}`\n\n{}", kind.mechanism.kind, about.summary);
        if !about.source.is_empty() {
            let _ = write!(out, " ({})", about.source);
        }
        out.push_str(".\n");
        for (what, list) in [("Needs", about.needs), ("Breaks", about.breaks), ("Restores", about.restores)] {
            if !list.is_empty() {
                let list: Vec<String> = list.iter().map(|p| format!("`{}`", p.name())).collect();
                let _ = writeln!(out, "\n{what} {}.", list.join(", "));
            }
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
