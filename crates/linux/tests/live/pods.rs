//! Limits of a Kubernetes node's pods: from the list of pods to the programs at their cgroups, in
//! the two layouts that the kubelet makes (its drivers systemd and cgroupfs).

use crate::place::Place;
use millpond_linux::limit::apply::Session;
use millpond_linux::limit::{pods, show};
use millpond_worlds::needs;
use std::fs;
use std::path::PathBuf;

/// Folders of cgroups, removed from the innermost out.
struct Tree(Vec<PathBuf>);

impl Tree {
    fn new(place: &Place, paths: &[String]) -> Tree {
        let paths: Vec<PathBuf> = paths.iter().map(|path| place.cgroup.join(path)).collect();
        paths.iter().for_each(|path| fs::create_dir_all(path).unwrap());
        Tree(paths)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for path in &self.0 {
            for folder in path.ancestors().take_while(|folder| !folder.ends_with("cgroup")).take(4)
            {
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

#[test]
fn annotations_of_pods_hold_their_cgroups() {
    let place = needs!(Place::new("pods"));
    let uids = ["1b2c", "3d4e"]
        .map(|end| format!("6f1c7a52-{:04x}-4a1b-9c3d-{end}00000000", std::process::id() % 0xffff));
    let dashed = uids[0].replace('-', "_");
    let container = "fedcba9876543210".repeat(4);
    let _tree = Tree::new(
        &place,
        &[
            format!(
                "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{dashed}.slice/\
                 cri-containerd-{container}.scope"
            ),
            format!("kubepods/besteffort/pod{}/{container}", uids[1]),
        ],
    );
    let pod = |name: &str, uid: &str, egress: &str, ingress: &str| {
        format!(
            "{{\"metadata\": {{\"name\": \"{name}\", \"namespace\": \"shop\", \"uid\": \"{uid}\", \
             \"annotations\": {{\"kubernetes.io/egress-bandwidth\": \"{egress}\", \
             \"kubernetes.io/ingress-bandwidth\": \"{ingress}\"}}}}}}"
        )
    };
    let list = format!(
        "{{\"items\": [{}, {}]}}",
        pod("web", &uids[0], "10M", "20M"),
        pod("db", &uids[1], "1G", "1G")
    );
    let (config, notes) = pods::config("pods.json", &list).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    let mut session = Session::open(&place.bpffs).unwrap();
    let source = session.read(&place.file("a.toml", &config.to_text()), false).unwrap();
    let sources = session.with(source);
    let plan = session.plan(&sources).unwrap();
    let hooks: Vec<(String, [u16; 2])> = plan
        .hooks
        .iter()
        .map(|hook| {
            (
                hook.cgroup.path.file_name().unwrap().to_string_lossy().into(),
                hook.chain.map(|c| c.count),
            )
        })
        .collect();
    let expected = [
        (format!("pod{}", uids[1]), [1, 1]),
        (format!("kubepods-burstable-pod{dashed}.slice"), [2, 1]),
    ];
    assert_eq!(hooks, expected);
    let done = session.install(sources, false).unwrap();
    assert_eq!((done.limits, done.cgroups, done.waiting.len()), (3, 2, 0));
    drop(session);
    let reading = show::read(&place.bpffs, None).unwrap();
    let mut names: Vec<&str> = reading.limits.iter().map(|limit| limit.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["shop:db", "shop:db", "shop:web", "shop:web", "shop:web:egress"]);
}
