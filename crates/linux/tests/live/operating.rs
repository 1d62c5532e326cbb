//! Situations that operators meet: capabilities that are not enough, other programs at a cgroup,
//! cgroups deep below each other, many names at once, and another version's limits.

use crate::place::Place;
use libbpf_rs::{MapCore, MapFlags, MapHandle, ObjectBuilder};
use millpond_linux::limit::apply::{self, Done};
use millpond_linux::limit::layout::{Head, LAYOUT};
use millpond_linux::limit::{Error, show, store};
use millpond_worlds::needs;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

const LIMIT: &str = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"10Mbps\"\n";

/// The result of an apply by a thread with these capabilities and no others.
fn apply_with(place: &Place, file: &Path, has: CapabilitySet) -> Result<Done, Error> {
    std::thread::scope(|scope| {
        let limited = scope.spawn(|| {
            let sets = CapabilitySets {
                effective: has,
                permitted: has,
                inheritable: CapabilitySet::empty(),
            };
            set_capabilities(None, sets).unwrap();
            place.apply(file)
        });
        limited.join().unwrap()
    })
}

#[test]
fn an_error_names_the_capability_that_is_lacking() {
    let place = needs!(Place::new("capable"));
    let file = place.file("a.toml", LIMIT);
    let enough = CapabilitySet::BPF | CapabilitySet::NET_ADMIN | CapabilitySet::PERFMON;
    for (lacking, name) in [
        (CapabilitySet::PERFMON, "CAP_PERFMON"),
        (CapabilitySet::BPF, "CAP_BPF"),
        (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
    ] {
        let error = apply_with(&place, &file, enough - lacking).unwrap_err();
        assert!(
            matches!(&error, Error::Privilege { capability, .. } if capability == name),
            "{name}: {error}"
        );
    }
    apply_with(&place, &file, enough).unwrap();
}

/// Attaches a program that does nothing, as the only one that may be there.
#[allow(unsafe_code)]
fn attach_alone(cgroup: &Path) -> libbpf_rs::Object {
    static TRIAL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trial.bpf.o"));
    // Where it lies in this program it may not be aligned as libelf wants it.
    let bytes = TRIAL.to_vec();
    let object = ObjectBuilder::default().open_memory(&bytes).unwrap().load().unwrap();
    let program = object.progs_mut().find(|p| p.name() == "nothing").unwrap();
    let (folder, egress) = (File::open(cgroup).unwrap(), libbpf_sys::BPF_CGROUP_INET_EGRESS);
    // SAFETY: numbers of open files, and no pointer.
    let done = unsafe {
        libbpf_sys::bpf_prog_attach(program.as_fd().as_raw_fd(), folder.as_raw_fd(), egress, 0)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    object
}

#[test]
fn a_program_that_allows_no_other_is_told() {
    for at_parent in [false, true] {
        let place = needs!(Place::new("alone"));
        let inner = place.cgroup.join("inner");
        fs::create_dir(&inner).unwrap();
        let alone = if at_parent { &place.cgroup } else { &inner };
        let _object = attach_alone(alone);
        let file = place.file("a.toml", &LIMIT.replace("CGROUP", "CGROUP/inner"));
        let error = place.apply(&file).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, Error::Cgroup { .. }) && !said.contains("root"), "{said}");
        assert!(said.contains("\"nothing\"") && said.contains(alone.to_str().unwrap()), "{said}");
        // It is at egress: ingress is free.
        place
            .apply(
                &place.file(
                    "a.toml",
                    &LIMIT
                        .replace("CGROUP", "CGROUP/inner")
                        .replace("rate", "direction = \"ingress\"\nrate"),
                ),
            )
            .unwrap();
        fs::remove_dir(&inner).unwrap();
    }
}

/// Folders below a cgroup, each in the one before.
struct Deep(PathBuf);

impl Drop for Deep {
    fn drop(&mut self) {
        while self.0.ends_with("d") && fs::remove_dir(&self.0).is_ok() {
            self.0.pop();
        }
    }
}

#[test]
fn a_cgroup_far_below_another_is_charged_once() {
    let place = needs!(Place::with_network("deep"));
    for levels in [17, 64] {
        let deep = Deep(place.cgroup.join("d/".repeat(levels).trim_end_matches('/')));
        fs::create_dir_all(&deep.0).unwrap();
        let inner =
            format!("{LIMIT}[[limit]]\nname = \"inner\"\ncgroup = \"{}\"\n", deep.0.display());
        place.apply(&place.file("a.toml", &inner)).unwrap();
        let args = [deep.0.display().to_string(), place.networks[0].clone()];
        assert!(place.child("udp", &args).wait().unwrap().success());
        let limits = show::read(&place.bpffs, None).unwrap().limits;
        let packets = |name: &str| limits.iter().find(|q| q.name == name).unwrap().packets;
        // Of 3000; what waits for the other's address in vain is none.
        assert!(packets("inner") > 2000, "{}", packets("inner"));
        assert_eq!(packets("t"), packets("inner"), "{levels} levels: each packet once");
        assert!(apply::remove_all(&place.bpffs).unwrap().is_some());
    }
}

#[test]
fn three_hundred_limits_are_renamed_at_once() {
    let place = needs!(Place::with_network("renamed"));
    let text = |prefix: &str| {
        let limit =
            |i: usize| format!("[[limit]]\nname = \"{prefix}{i}\"\ndirection = \"egress\"\n");
        let names: Vec<String> = (0..300).map(|i| format!("\"{prefix}{i}\"")).collect();
        // The last of them charges what is sent.
        format!("{LIMIT}scopes = [{}]\n{}", names[299], (0..300).map(limit).collect::<String>())
    };
    place.apply(&place.file("a.toml", &text("old"))).unwrap();
    assert!(place.sender("udp", &[]).wait().unwrap().success());
    let packets = || {
        let limits = show::read(&place.bpffs, None).unwrap().limits;
        limits.into_iter().map(|q| (q.name, q.packets)).collect::<Vec<_>>()
    };
    assert!(packets().iter().filter(|(_, n)| *n > 0).count() == 2, "{:?}", packets());
    place.apply(&place.file("a.toml", &text("new"))).unwrap();
    let after = packets();
    assert_eq!(after.len(), 301);
    let counted: Vec<&(String, u64)> = after.iter().filter(|(_, n)| *n > 0).collect();
    assert!(
        counted.len() == 1 && counted[0].0 == "t",
        "what has another name begins anew: {counted:?}"
    );
}

/// Makes what is installed look as if a version of another layout had installed it.
fn make_other(place: &Place) {
    let head =
        MapHandle::from_pinned_path(store::map_path(&store::folder(&place.bpffs), "head")).unwrap();
    let now = Head::from_bytes(&head.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap());
    assert_eq!(now.layout, LAYOUT);
    head.update(&[0; 4], &Head { layout: LAYOUT + 41, ..now }.to_bytes(), MapFlags::ANY).unwrap();
}

fn pins(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, |entries| entries.count())
}

/// Limits of another layout hold, are refused to every change, and go by `remove --all`.
#[test]
fn limits_of_another_layout_hold_until_they_are_removed() {
    let place = needs!(Place::new("other-layout"));
    let file = place.file("a.toml", LIMIT);
    let folder = store::folder(&place.bpffs);
    place.apply(&file).unwrap();
    let before = pins(&folder.join("links"));
    make_other(&place);
    for error in [show::read(&place.bpffs, None).unwrap_err(), place.apply(&file).unwrap_err()] {
        assert!(matches!(error, Error::Layout { found, .. } if found == LAYOUT + 41), "{error}");
    }
    assert_eq!(pins(&folder.join("links")), before);
    assert!(apply::remove_all(&place.bpffs).unwrap().is_some());
    assert!(!folder.exists());
}
