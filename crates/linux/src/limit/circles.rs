//! Scopes that go in circles.
//!
//! Invariant: all limits are judged in a time that is proportional to their number and that of
//! their scopes.

use std::collections::HashMap;

/// A limit's name, and those of its scopes.
pub type Named<'a> = (&'a str, &'a [String]);

/// Limits as a graph: by limit, the numbers of its scopes. Names that no limit has are left out.
fn scopes(limits: &[Named<'_>]) -> Vec<Vec<usize>> {
    let mut numbers = HashMap::new();
    for (number, (name, _)) in limits.iter().enumerate() {
        numbers.entry(*name).or_insert(number);
    }
    let of = |(_, scopes): &Named<'_>| {
        scopes.iter().filter_map(|name| numbers.get(name.as_str()).copied()).collect()
    };
    limits.iter().map(of).collect()
}

/// The nodes of a graph in the order in which a search from each in turn leaves them.
fn left_in_order(edges: &[Vec<usize>]) -> Vec<usize> {
    let (mut order, mut seen) = (Vec::new(), vec![false; edges.len()]);
    for start in 0..edges.len() {
        let mut open = vec![(start, 0)];
        while let Some((node, next)) = open.last_mut() {
            if *next == 0 && std::mem::replace(&mut seen[*node], true) {
                open.pop();
                continue;
            }
            match edges[*node].get(*next) {
                Some(to) => {
                    *next += 1;
                    let to = *to;
                    if !seen[to] {
                        open.push((to, 0));
                    }
                }
                None => {
                    order.push(*node);
                    open.pop();
                }
            }
        }
    }
    order
}

/// By limit: whether it is a scope of itself, over others or at once. Kosaraju's algorithm: limits
/// that reach each other are found by a search against the scopes' direction.
pub fn on_circles(limits: &[Named<'_>]) -> Vec<bool> {
    let edges = scopes(limits);
    let mut back = vec![Vec::new(); edges.len()];
    for (from, to) in
        edges.iter().enumerate().flat_map(|(i, all)| all.iter().map(move |to| (i, *to)))
    {
        back[to].push(from);
    }
    let mut is_placed = vec![false; edges.len()];
    let mut found = vec![false; edges.len()];
    for start in left_in_order(&edges).into_iter().rev() {
        let (mut group, mut open) = (Vec::new(), vec![start]);
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut is_placed[node], true) {
                group.push(node);
                open.extend(&back[node]);
            }
        }
        let is_circle = group.len() > 1 || edges[start].contains(&start);
        group.into_iter().for_each(|node| found[node] |= is_circle);
    }
    found
}

/// The way on which the first limit that is a scope of itself is so, from it and back to it;
/// `None`: no limit is.
pub fn circle<'a>(limits: &[Named<'a>]) -> Option<Vec<&'a str>> {
    let start = on_circles(limits).iter().position(|is| *is)?;
    let edges = scopes(limits);
    // Each limit is looked at once: from which other one, so that the way can be named.
    let (mut from, mut open) = (vec![None; limits.len()], vec![start]);
    while let Some(at) = open.pop() {
        for scope in &edges[at] {
            if from[*scope].is_none() {
                from[*scope] = Some(at);
                open.push(*scope);
            }
        }
    }
    let mut way = vec![start];
    let mut at = from[start]?;
    while at != start {
        way.push(at);
        at = from[at]?;
    }
    way.push(start);
    way.reverse();
    Some(way.into_iter().map(|number| limits[number].0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits 0, 1, … with these scopes.
    fn limits(scopes: &[Vec<usize>]) -> Vec<(String, Vec<String>)> {
        let names = |scopes: &Vec<usize>| scopes.iter().map(usize::to_string).collect();
        scopes.iter().enumerate().map(|(i, scopes)| (i.to_string(), names(scopes))).collect()
    }

    fn named(limits: &[(String, Vec<String>)]) -> Vec<Named<'_>> {
        limits.iter().map(|(name, scopes)| (name.as_str(), scopes.as_slice())).collect()
    }

    #[test]
    fn those_on_circles_are_found_and_no_others() {
        let judged = |scopes: &[Vec<usize>]| {
            let all = limits(scopes);
            let found = on_circles(&named(&all));
            let found: Vec<usize> = (0..all.len()).filter(|i| found[*i]).collect();
            (found, circle(&named(&all)).unwrap_or_default().join(" "))
        };
        assert_eq!(judged(&[]), (vec![], String::new()));
        assert_eq!(judged(&[vec![1], vec![2], vec![]]), (vec![], String::new()));
        assert_eq!(judged(&[vec![0]]), (vec![0], "0 0".into()));
        // Two circles, a way between them, and one that leads to a circle.
        let two = [vec![1], vec![0, 2], vec![3], vec![4], vec![3], vec![0]];
        assert_eq!(judged(&two), (vec![0, 1, 3, 4], "0 1 0".into()));
        assert_eq!(judged(&[vec![7]]), (vec![], String::new()), "a name that no limit has");
    }

    #[test]
    fn a_chain_of_many_takes_no_time() {
        let chain: Vec<Vec<usize>> = (0..100_000).map(|i| vec![(i + 1) % 100_000]).collect();
        assert_eq!(circle(&named(&limits(&chain))).unwrap().len(), 100_001);
    }
}
