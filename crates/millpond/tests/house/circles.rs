//! Circles of imports among the modules of a crate.
//!
//! At each level of folders the siblings, files and subfolders, must import from one another
//! without a circle. A parent module and its children may import from each other. Test modules do
//! not count.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Module = Vec<String>;

/// A token of a file, with groups as their ends.
#[derive(Debug, PartialEq)]
enum Token {
    Ident(String),
    Punct(char),
    Open(Delimiter),
    Close(Delimiter),
    Literal,
}

fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Ident(ident) => into.push(Token::Ident(ident.to_string())),
            TokenTree::Punct(punct) => into.push(Token::Punct(punct.as_char())),
            TokenTree::Literal(_) => into.push(Token::Literal),
            TokenTree::Group(group) => {
                into.push(Token::Open(group.delimiter()));
                flatten(group.stream(), into);
                into.push(Token::Close(group.delimiter()));
            }
        }
    }
}

/// The index behind the group that opens at `at`.
fn behind_group(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

fn ident(tokens: &[Token], at: usize) -> Option<&str> {
    match tokens.get(at)? {
        Token::Ident(name) => Some(name),
        _ => None,
    }
}

fn is_colons(tokens: &[Token], at: usize) -> bool {
    tokens.get(at) == Some(&Token::Punct(':')) && tokens.get(at + 1) == Some(&Token::Punct(':'))
}

/// A path that a module names, and whether it re-exports it.
struct Named {
    path: Vec<String>,
    is_public: bool,
}

/// Puts the paths of a `use` tree, which begins at `at` behind `prefix`; returns the index behind.
fn use_tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    named: &mut Vec<Named>,
    is_public: bool,
) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match tokens.get(at) {
            Some(Token::Ident(name)) if name == "as" => at += 2,
            Some(Token::Ident(name)) => {
                path.push(name.clone());
                at += 1;
            }
            Some(Token::Punct(':')) | Some(Token::Punct('*')) => at += 1,
            Some(Token::Open(Delimiter::Brace)) => {
                let end = behind_group(tokens, at);
                at += 1;
                while at < end - 1 {
                    at = use_tree(tokens, at, &path, named, is_public);
                    at += usize::from(tokens.get(at) == Some(&Token::Punct(',')));
                }
                return end;
            }
            _ => break,
        }
    }
    named.push(Named { path, is_public });
    at
}

/// The paths that a file names outside its test modules.
fn names(text: &str, file: &Path) -> Vec<Named> {
    let stream: TokenStream =
        text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    let (mut named, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let is_attribute = tokens[at] == Token::Punct('#')
            && tokens.get(at + 1) == Some(&Token::Open(Delimiter::Bracket));
        if is_attribute {
            let end = behind_group(&tokens, at + 1);
            let has = |word: &str| (at..end).any(|i| ident(&tokens, i) == Some(word));
            let is_test = has("cfg") && has("test") && !has("not");
            at = end;
            if is_test && let Some(open) = module_opens(&tokens, at) {
                at = behind_group(&tokens, open);
            }
            continue;
        }
        match ident(&tokens, at) {
            Some("use") => {
                let is_public = at > 0
                    && (ident(&tokens, at - 1) == Some("pub")
                        || tokens[at - 1] == Token::Close(Delimiter::Parenthesis));
                at = use_tree(&tokens, at + 1, &[], &mut named, is_public);
            }
            Some(_) if is_colons(&tokens, at + 1) => {
                let mut path = Vec::new();
                while let Some(name) = ident(&tokens, at) {
                    path.push(name.to_string());
                    if !is_colons(&tokens, at + 1) {
                        break;
                    }
                    at += 3;
                }
                at += 1;
                named.push(Named { path, is_public: false });
            }
            _ => at += 1,
        }
    }
    named
}

/// Where the braces of a `mod` item open that begins at `at`, behind further attributes.
fn module_opens(tokens: &[Token], mut at: usize) -> Option<usize> {
    while tokens.get(at) == Some(&Token::Punct('#')) {
        at = behind_group(tokens, at + 1);
    }
    if ident(tokens, at) == Some("pub") {
        at += 1;
        if tokens.get(at) == Some(&Token::Open(Delimiter::Parenthesis)) {
            at = behind_group(tokens, at);
        }
    }
    let is_open = ident(tokens, at) == Some("mod")
        && tokens.get(at + 2) == Some(&Token::Open(Delimiter::Brace));
    is_open.then_some(at + 2)
}

/// The modules of a crate and what each names, by absolute path.
struct Crate {
    modules: BTreeMap<Module, Vec<Named>>,
}

impl Crate {
    fn read(source: &Path) -> Crate {
        let mut modules = BTreeMap::new();
        for file in super::sources(source) {
            let inside = file.strip_prefix(source).unwrap().with_extension("");
            let mut module: Module =
                inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
                module.pop();
            }
            if module.iter().any(|part| part.starts_with("tests")) {
                continue;
            }
            modules.insert(module, names(&fs::read_to_string(&file).unwrap(), &file));
        }
        let mut all = Crate { modules };
        all.make_absolute();
        all
    }

    fn make_absolute(&mut self) {
        let children: BTreeSet<Module> = self.modules.keys().cloned().collect();
        for (module, named) in &mut self.modules {
            let is_child = |name: &String| {
                let mut child = module.clone();
                child.push(name.clone());
                children.contains(&child)
            };
            named.retain_mut(|it| {
                let (mut base, mut rest) = (module.clone(), it.path.as_slice());
                match rest.first().map(String::as_str) {
                    Some("crate") => (base, rest) = (Vec::new(), &rest[1..]),
                    Some("self") => rest = &rest[1..],
                    Some("super") => {
                        while rest.first().is_some_and(|part| part == "super") {
                            base.pop();
                            rest = &rest[1..];
                        }
                    }
                    Some(_) if is_child(&rest[0]) => (),
                    _ => return false,
                }
                it.path = [base.as_slice(), rest].concat();
                true
            });
        }
    }

    /// The module that has what a path names: re-exports are followed.
    fn owner(&self, path: &[String], depth: u32) -> Module {
        let mut module = path.to_vec();
        while !module.is_empty() && !self.modules.contains_key(&module) {
            module.pop();
        }
        let rest = &path[module.len()..];
        if let (Some(name), true) = (rest.first(), depth < 5) {
            let re_exports = self.modules.get(&module).into_iter().flatten();
            let mut of_name = re_exports.filter(|it| it.is_public && it.path.last() == Some(name));
            if let Some(it) = of_name.next() {
                let next = [it.path.as_slice(), &rest[1..]].concat();
                if next != path {
                    return self.owner(&next, depth + 1);
                }
            }
        }
        module
    }

    /// Which modules each imports from. Re-exporting a child is no import.
    fn imports(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        self.modules
            .iter()
            .map(|(module, named)| {
                let from = named.iter().filter_map(|it| {
                    let owner = self.owner(&it.path, 0);
                    let is_child = owner.starts_with(module);
                    (owner != *module && !(it.is_public && is_child)).then_some(owner)
                });
                (module, from.collect())
            })
            .collect()
    }
}

/// The circles of a crate: for each the folder, and the siblings of it that import in a circle.
pub fn circles(source: &Path) -> Vec<String> {
    let of_crate = Crate::read(source);
    let imports = of_crate.imports();
    let folders: BTreeSet<&[String]> =
        imports.keys().flat_map(|module| (0..module.len()).map(|n| &module[..n])).collect();
    let mut found = Vec::new();
    for folder in folders {
        let n = folder.len();
        let mut siblings: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (module, from) in imports.iter().filter(|it| it.0.len() > n && it.0.starts_with(folder))
        {
            let of = siblings.entry(module[n].as_str()).or_default();
            let others = from.iter().filter(|it| it.len() > n && it.starts_with(folder));
            of.extend(others.map(|it| it[n].as_str()).filter(|it| *it != module[n]));
        }
        found.extend(cycle(&siblings).map(|names| {
            let place = [&["crate".to_string()], folder].concat().join("::");
            format!("{}: {place}: {}", source.display(), names.join(" → "))
        }));
    }
    found
}

/// A circle of a graph, if it has one: removes what has nothing before it until nothing changes.
fn cycle<'a>(graph: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    let mut left = graph.clone();
    loop {
        let ends: Vec<&str> = left
            .iter()
            .filter(|(_, to)| to.iter().all(|it| !left.contains_key(it)))
            .map(|it| *it.0)
            .collect();
        if ends.is_empty() {
            break;
        }
        ends.iter().for_each(|it| drop(left.remove(it)));
    }
    let mut path = vec![*left.keys().next()?];
    loop {
        let next = *left[path.last()?].iter().find(|it| left.contains_key(*it))?;
        if let Some(from) = path.iter().position(|it| *it == next) {
            let mut names = path.split_off(from);
            names.push(next);
            return Some(names);
        }
        path.push(next);
    }
}

#[test]
fn a_circle_is_found_and_a_parent_is_none() {
    let graph = |edges: &[(&'static str, &'static str)]| {
        let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in edges {
            graph.entry(from).or_default().insert(to);
            graph.entry(to).or_default();
        }
        graph
    };
    assert_eq!(cycle(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let found = cycle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")]));
    assert_eq!(found, Some(vec!["b", "c", "b"]));
    let text = "use super::one::{Two, three::Four as Five}; pub use six::Seven;\n\
                #[cfg(test)] mod tests { use crate::eight; } fn f() { crate::nine::ten(); }";
    let paths: Vec<String> =
        names(text, Path::new("x.rs")).iter().map(|it| it.path.join("::")).collect();
    let expected = ["super::one::Two", "super::one::three::Four", "six::Seven", "crate::nine::ten"];
    assert_eq!(paths, expected);
}
