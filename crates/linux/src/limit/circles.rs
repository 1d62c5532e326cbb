//! Scopes that go in circles.
//!
//! Invariant: all limits are judged in a time that is proportional to their number and that of
//! their scopes.

use super::config::Limit;
use std::collections::HashMap;

/// Limits as a graph: by limit, the numbers of its scopes. Names that no limit has are left out.
fn scopes(limits: &[&Limit]) -> Vec<Vec<usize>> {
    let mut numbers = HashMap::new();
    for (number, limit) in limits.iter().enumerate() {
        numbers.entry(limit.name()).or_insert(number);
    }
    let of = |limit: &&Limit| {
        let names = limit.target.scopes.iter();
        names.filter_map(|name| numbers.get(name.as_str()).copied()).collect()
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
pub fn on_circles(limits: &[&Limit]) -> Vec<bool> {
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
pub fn circle<'a>(limits: &[&'a Limit]) -> Option<Vec<&'a str>> {
    let start = on_circles(limits).iter().position(|is| *is)?;
    let edges = scopes(limits);
    // Each limit is looked at once: from which other one, so that the way can be told.
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
    Some(way.into_iter().map(|number| limits[number].name()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::config::TargetParams;

    /// Limits 0, 1, … with these scopes.
    fn limits(scopes: &[&[usize]]) -> Vec<Limit> {
        let limit = |(number, scopes): (usize, &&[usize])| Limit {
            target: TargetParams {
                name: number.to_string(),
                scopes: scopes.iter().map(usize::to_string).collect(),
                ..TargetParams::default()
            },
            ..Limit::default()
        };
        scopes.iter().enumerate().map(limit).collect()
    }

    #[test]
    fn those_on_circles_are_found_and_no_others() {
        let cases: [(&[&[usize]], &[bool], &[&str]); 5] = [
            (&[], &[], &[]),
            (&[&[1], &[2], &[]], &[false; 3], &[]),
            (&[&[0]], &[true], &["0", "0"]),
            // Two circles, a way between them, and one that leads to a circle.
            (
                &[&[1], &[0, 2], &[3], &[4], &[3], &[0]],
                &[true, true, false, true, true, false],
                &["0", "1", "0"],
            ),
            // A name that no limit has.
            (&[&[7]], &[false], &[]),
        ];
        for (scopes, expected, way) in cases {
            let all = limits(scopes);
            let all: Vec<&Limit> = all.iter().collect();
            assert_eq!(on_circles(&all), expected, "{scopes:?}");
            assert_eq!(circle(&all).unwrap_or_default(), way, "{scopes:?}");
        }
    }

    #[test]
    fn a_chain_of_many_takes_no_time() {
        let chain: Vec<Vec<usize>> = (0..100_000).map(|i| vec![(i + 1) % 100_000]).collect();
        let chain: Vec<&[usize]> = chain.iter().map(Vec::as_slice).collect();
        let all = limits(&chain);
        let all: Vec<&Limit> = all.iter().collect();
        assert_eq!(circle(&all).unwrap().len(), 100_001);
    }
}
