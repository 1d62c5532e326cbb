//! The quick start of `docs/limit.md`, character by character, as root, in both layouts of cgroups:
//! cgroup v2 alone, and below version 1 at `unified`. Each run has mounts and a cgroup hierarchy of
//! its own (`unshare`), so nothing of the host's is touched.

#![cfg(all(feature = "linux", target_os = "linux"))]

use millpond_linux::limit::cgroup::Hierarchy;
use millpond_worlds::{World, needs};
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::PoisonError;

/// The shell's lines of a section of the guide.
fn quick_start() -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limit.md");
    let guide = fs::read_to_string(guide).unwrap();
    let (_, section) = guide.split_once("## Quick start\n").unwrap();
    let (_, block) = section.split_once("```sh\n").unwrap();
    block.split_once("```").unwrap().0.to_string()
}

/// Mounts of the layouts: what is at `/sys/fs/cgroup`, and where version 2 is.
const LAYOUTS: [(&str, &str); 2] = [
    ("mount -t cgroup2 none /sys/fs/cgroup", "/sys/fs/cgroup"),
    (
        "mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/unified && mount -t cgroup2 \
         none /sys/fs/cgroup/unified",
        "/sys/fs/cgroup/unified",
    ),
];

/// Runs the lines in a layout, and then looks for what they have left. The error is what the
/// machine lacks.
fn run(lines: &str, mounts: &str, root: &str) -> Result<Output, String> {
    let hierarchy = Hierarchy::find().map_err(|e| e.to_string())?;
    let world = World::new("guide").map_err(|e| e.to_string())?;
    let outer = hierarchy.root.join(world.name());
    world.cgroup(&outer).map_err(|e| e.to_string())?;
    let folder = world.folder();
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_millpond"), bin.join("millpond")).unwrap();
    fs::write(folder.join("lines"), lines).unwrap();
    let outer = outer.join("cgroup.procs");
    let script = format!(
        "set -eu\ncd {}\necho $$ >{}\nexec unshare --cgroup --mount --propagation private sh -euc '
         umount -lR /sys/fs/cgroup
         {mounts}
         mount -t tmpfs none /sys/fs/bpf
         PATH={}:$PATH sh -eu lines
         ! grep \"^millpond /sys/fs/bpf \" /proc/self/mounts
         ! ls -d {root}/*.slice 2>/dev/null
         echo nothing is left'",
        folder.display(),
        outer.display(),
        bin.display()
    );
    let _alone = crate::CGROUPS.write().unwrap_or_else(PoisonError::into_inner);
    let output = world.command("sh").args(["-c", &script]).output();
    output.map_err(|e| format!("sh: {e}"))
}

#[test]
fn the_quick_start_runs_in_both_layouts_and_leaves_nothing() {
    let lines = quick_start();
    for command in ["apply", "run", "show", "set", "remove"] {
        assert!(lines.contains(&format!("millpond limit {command}")), "{command} is not in it");
    }
    for (mounts, root) in LAYOUTS {
        let out = needs!(run(&lines, mounts, root));
        let [said, errors] =
            [&out.stdout, &out.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(out.status.success(), "{root}: {said}\n{errors}");
        assert!(said.contains("2 limits in force, 1 cgroup with programs"), "{root}: {said}");
        assert!(said.ends_with("nothing is left\n"), "{root}: {said}");
        let made = format!("made the cgroup {root}/batch.slice");
        assert!(errors.contains(&made), "{root}: {errors}");
    }
}
