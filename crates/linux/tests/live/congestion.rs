//! The congestion control of a cgroup's new connections: the nearest cgroup's choice, before the
//! handshake where ECN hangs on it, and the host's own again afterwards.

use crate::place::{Place, ip};
use millpond_linux::limit::apply::{Done, Session};
use millpond_worlds::needs;
use std::fs;
use std::path::Path;

/// The congestion controls of connections of a cgroup that are made now.
fn made(place: &Place, cgroup: &Path) -> String {
    let file = place.folder.join("chosen");
    let args =
        [cgroup.to_str().unwrap(), &place.networks[0], file.to_str().unwrap()].map(String::from);
    assert!(place.child("congestion", &args).wait().unwrap().success());
    let said = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    said
}

/// Applies a text; unlike [`Place::apply`] it says what could not be had.
fn apply(place: &Place, text: &str) -> Done {
    let mut session = Session::open(&place.bpffs).unwrap();
    let source = session.read(&place.file("a.toml", text), false).unwrap();
    let sources = session.with(source);
    session.install(sources, false).unwrap()
}

#[test]
fn a_cgroups_connections_have_its_congestion_control() {
    let place = needs!(Place::with_network("congestion"));
    assert!(ip(&["-n", &place.networks[0], "link", "set", "lo", "up"]));
    let inner = place.cgroup.join("inner");
    fs::create_dir(&inner).unwrap();
    let own = made(&place, &inner);
    let text = "[[limit]]\nname = \"o\"\ncgroup = \"CGROUP\"\ncongestion = \"reno\"\n";
    assert_eq!(apply(&place, text).notes, Vec::<String>::new());
    assert_eq!(made(&place, &place.cgroup), "reno reno false");
    assert_eq!(made(&place, &inner), "reno reno false", "the cgroup above chooses");

    let both = format!(
        "{text}[[limit]]\nname = \"i\"\ncgroup = \"CGROUP/inner\"\ncongestion = \"mp_dctcp\"\n"
    );
    apply(&place, &both);
    let seen = made(&place, &inner);
    let is_registered = !seen.starts_with("reno");
    if is_registered {
        assert_eq!(seen, "mp_dctcp mp_dctcp true", "the nearest chooses, and its SYN asks for ECN");
    }
    assert_eq!(made(&place, &place.cgroup), "reno reno false");

    apply(&place, &text.replace("congestion = \"reno\"\n", ""));
    assert_eq!(made(&place, &inner), own, "a choice that is no longer made is gone");
    needs!(is_registered, "a kernel that registers mp_dctcp");
}

#[test]
fn an_unknown_congestion_control_is_told_and_limits_hold() {
    let place = needs!(Place::new("no-congestion"));
    let done =
        apply(&place, "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\ncongestion = \"no_such\"\n");
    assert_eq!(done.cgroups, 1);
    assert!(
        done.notes.iter().any(|note| note.contains("no_such") && note.contains("cubic")),
        "{:?}",
        done.notes
    );
}
