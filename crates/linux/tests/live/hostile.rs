//! The actions open to an ordinary user on a bpf file system that is open to everybody (mode 1777,
//! which `mount -t bpf` makes), and root's actions then.

use crate::place::Place;
use millpond_linux::limit::apply::{self, Session};
use millpond_linux::limit::doctor::{self, Finding, State};
use millpond_linux::limit::{Error, show, store};
use millpond_worlds::needs;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NOBODY: u32 = 65534;
const LIMIT: &str = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"10Mbps\"\n";

/// A shell of user nobody, at the bpf file system.
fn nobody(place: &Place, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(&place.bpffs).uid(NOBODY).gid(NOBODY);
    command
}

fn does(mut command: Command) -> bool {
    command.stderr(Stdio::null()).status().unwrap().success()
}

/// A place whose bpf file system is open to everybody, and a file that root holds dear.
fn open_place(name: &str) -> Result<(Place, PathBuf), String> {
    let place = Place::new(name)?;
    fs::set_permissions(&place.bpffs, fs::Permissions::from_mode(0o1777)).unwrap();
    let victim = place.folder.join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("precious"), "dear").unwrap();
    Ok((place, victim))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn file_system(place: &Place) -> Finding {
    doctor::examine(&place.bpffs).into_iter().find(|f| f.what == "bpf file system").unwrap()
}

/// Whatever root asks for is refused, and says whose fault it is.
fn all_is_refused(place: &Place, victim: &Path, why: &str) {
    let file = place.file("a.toml", LIMIT);
    let said = [
        apply::remove_all(&place.bpffs).map(drop),
        place.apply(&file).map(drop),
        show::read(&place.bpffs, None).map(drop),
        Session::existing(&place.bpffs, &|_| {}).map(drop),
    ];
    for said in said {
        let error = said.expect_err("refused");
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    let found = file_system(place);
    assert_eq!(found.state, State::Fatal);
    assert!(found.found.contains(why), "{}", found.found);
    assert_eq!(fs::read_to_string(victim.join("precious")).unwrap(), "dear");
}

#[test]
fn what_another_user_has_made_is_refused_and_nothing_is_removed_for_it() {
    let (place, victim) = needs!(open_place("planted"));
    assert_eq!(file_system(&place).state, State::Lacking, "others can make a folder of our name");
    let plants = [
        (format!("mkdir millpond && ln -s {} millpond/links", victim.display()), "user 65534"),
        ("mkdir -p millpond/links millpond/maps && chmod 755 millpond".to_string(), "user 65534"),
        (format!("ln -s {} millpond", victim.display()), "is no folder"),
    ];
    for (script, why) in plants {
        assert!(does(nobody(&place, &script)), "{script}");
        all_is_refused(&place, &victim, why);
        assert!(does(nobody(&place, "rm -r millpond")), "it is as it was");
    }
    // Made by root, and left open.
    let folder = store::folder(&place.bpffs);
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(does(nobody(&place, &format!("ln -s {} millpond/links", victim.display()))));
    all_is_refused(&place, &victim, "may be written to by other users");
    // A link of root's own making leads out of it just as well.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    all_is_refused(&place, &victim, "is no folder");
    fs::remove_file(folder.join("links")).unwrap();
    // Without the sticky bit anybody could take our folder away.
    fs::set_permissions(&place.bpffs, fs::Permissions::from_mode(0o777)).unwrap();
    all_is_refused(&place, &victim, "may be written to by other users");
    fs::set_permissions(&place.bpffs, fs::Permissions::from_mode(0o1777)).unwrap();
    place.apply(&place.file("a.toml", LIMIT)).unwrap();
    assert!(apply::remove_all(&place.bpffs).unwrap().is_some());
    assert!(!folder.exists());
    fs::remove_dir_all(&victim).unwrap();
}

/// A child that holds a lock on a folder until it is killed.
fn hold(place: &Place, folder: &Path) -> Child {
    let script = format!("exec 9<'{}' && flock 9 && echo held && exec sleep 60", folder.display());
    let mut child = nobody(place, &script).stdout(Stdio::piped()).spawn().unwrap();
    let mut held = [0; 5];
    child.stdout.as_mut().unwrap().read_exact(&mut held).unwrap();
    child
}

#[test]
fn another_users_lock_holds_up_nothing() {
    let (place, victim) = needs!(open_place("locked"));
    fs::remove_dir_all(&victim).unwrap();
    let file = place.file("a.toml", LIMIT);
    let mut child = hold(&place, &place.bpffs);
    let start = Instant::now();
    place.apply(&file).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let folder = store::folder(&place.bpffs);
    assert_eq!(mode(&folder), 0o700);
    assert!(!does(nobody(&place, "exec 9<millpond")), "what can be opened can be locked");
    // An earlier version's folder could be opened by everybody.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    place.apply(&file).unwrap();
    assert_eq!(mode(&folder), 0o700);
    assert!(apply::remove_all(&place.bpffs).unwrap().is_some());
    assert!(!folder.exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A refused apply leaves no folder behind.
#[test]
fn a_refused_apply_leaves_nothing() {
    let place = needs!(Place::new("empty"));
    let file = place.file("a.toml", &LIMIT.replace("CGROUP", "CGROUP/none"));
    assert!(matches!(place.apply(&file), Err(Error::Cgroup { .. })));
    assert!(!store::folder(&place.bpffs).exists());
}
