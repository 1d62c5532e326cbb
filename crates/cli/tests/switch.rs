//! `millpond switch` as a user meets it, as far as that needs no root;
//! `crates/linux/tests/switch.rs` has the rest.

#![cfg(all(feature = "linux", target_os = "linux"))]

use crate::common::{Dir, MILLPOND};
use millpond_worlds::{Namespace, World, namespace, needs};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

fn millpond(args: &[&str]) -> Output {
    Command::new(MILLPOND).args(args).output().unwrap()
}

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// Writes a file of a test's own, and gives its path as an argument.
fn file(dir: &Dir, name: &str, text: &str) -> String {
    dir.write(name, text).to_string_lossy().into_owned()
}

#[test]
fn a_wrong_file_is_told_with_its_place() {
    let scratch = Dir::new("wrong");
    let file = file(
        &scratch,
        "a.toml",
        "[[port]]\nname = \"a\"\nmtu = 1500\nadresses = [\"10.0.0.1/24\"]\n",
    );
    let state = scratch.at("state");
    let output = millpond(&["switch", "--state", state.to_str().unwrap(), "apply", &file]);
    assert_eq!(output.status.code(), Some(2));
    let text = said(&output.stderr);
    assert!(
        text.contains("adresses") && text.contains("a.toml:4:1") && text.contains("addresses"),
        "{text}"
    );
    assert!(!state.exists(), "nothing was touched");
    let missing = millpond(&["switch", "apply", "no-such-file.toml"]);
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn checking_a_file_prints_the_paths_to_each_peer() {
    let scratch = Dir::new("paths");
    let path = |end: u8| {
        format!(
            "[[path]]\npeer = \"b\"\nlocal = \"192.0.2.{end}:4000\"\nremote = \
             \"198.51.100.{end}:4000\"\n"
        )
    };
    let port = "[[port]]\nname = \"a\"\naddresses = [\"10.0.0.1/24\"]\n";
    let file = file(&scratch, "a.toml", &[port, &path(1), &path(2)].concat());
    let output = millpond(&["switch", "apply", "--dry-run", &file]);
    let text = said(&output.stdout);
    assert!(output.status.success() && text.contains("1 ports, no errors"), "{text}");
    let ends = "192.0.2.1:4000 to 198.51.100.1:4000, 192.0.2.2:4000 to 198.51.100.2:4000";
    assert!(text.contains(&format!("2 paths to b: {ends}")), "{text}");
}

#[test]
fn without_a_switch_there_is_nothing_to_show_or_remove() {
    let scratch = Dir::new("none");
    let state = scratch.at("state");
    let state = state.to_str().unwrap();
    let output = millpond(&["switch", "--state", state, "show"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output.stderr).contains("no switch is running"), "{}", said(&output.stderr));
    let output = millpond(&["switch", "--state", state, "remove", "--all"]);
    assert!(output.status.success() && said(&output.stdout).contains("no switch is here"));
    assert_eq!(millpond(&["switch", "remove"]).status.code(), Some(2));
}

/// Network namespaces in the place of containers, with a switch; gone with the test.
struct Containers {
    namespaces: Vec<Namespace>,
    // Ends before the folder of its switch goes.
    _world: World,
    scratch: Dir,
}

impl Containers {
    fn new(name: &str, count: usize) -> Result<Containers, millpond_worlds::Error> {
        let world = World::new(name)?;
        let labels: Vec<String> = (0..count).map(|i| i.to_string()).collect();
        let namespaces = world.namespaces(&labels)?;
        let scratch = Dir::new(name);
        let state = scratch.at("state");
        world.at_end(move || {
            millpond(&["switch", "--state", state.to_str().unwrap(), "remove", "--all"]);
        });
        Ok(Containers { namespaces, _world: world, scratch })
    }
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.at(name)
    }
    fn switch(&self, args: &[&str]) -> Output {
        millpond(&[&["switch", "--state", self.path("state").to_str().unwrap()], args].concat())
    }
    /// The ports' names.
    fn ports(&self) -> Vec<String> {
        let shown: serde_json::Value =
            serde_json::from_slice(&self.switch(&["show", "--json"]).stdout).unwrap_or_default();
        let ports = shown["ports"].as_array().into_iter().flatten();
        ports.map(|port| port["name"].as_str().unwrap().to_string()).collect()
    }
    /// The number of the interface in a namespace.
    fn interface(&self, which: usize) -> Option<String> {
        let args = ["-n", self.namespaces[which].name(), "-o", "link", "show", "eth0"];
        let said = Command::new("ip").args(args).output().unwrap();
        Some(String::from_utf8(said.stdout).unwrap().split_once(':')?.0.to_string())
    }
}

fn soon(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn namespaces_are_connected_with_one_command_and_no_file() {
    let containers = needs!(Containers::new("connect", 3));
    let name = |which: usize| containers.namespaces[which].name();
    let connect = |which: &[usize]| {
        let names: Vec<&str> = which.iter().map(|which| name(*which)).collect();
        containers.switch(&[&["connect"], &names[..]].concat())
    };
    let reaches = |from: usize, to: usize, address: &str| {
        let bind = || TcpListener::bind((address, 7001));
        let listener = namespace::within(Some(name(to)), bind).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        let patience = Duration::from_secs(10);
        let connect = || TcpStream::connect_timeout(&address, patience);
        namespace::within(Some(name(from)), connect).unwrap().is_ok()
    };
    let output = connect(&[0, 1]);
    assert!(output.status.success(), "{}", said(&output.stderr));
    let told = said(&output.stdout);
    assert!(told.contains(&format!("{} mp0 10.88.0.2", name(1))), "{told}");
    assert!(reaches(0, 1, "10.88.0.2") && reaches(1, 0, "10.88.0.1"));
    // One more, beside the two.
    assert!(connect(&[2]).status.success());
    assert!(reaches(2, 0, "10.88.0.1") && reaches(0, 2, "10.88.0.3"));
    assert_eq!(containers.ports().len(), 3);
    // Again, and one that is not there.
    let again = connect(&[0]);
    assert!(!again.status.success() && said(&again.stderr).contains("another port"));
    let wrong = format!("{}x", name(2));
    let missing = containers.switch(&["connect", &wrong]);
    let told = said(&missing.stderr);
    assert!(!missing.status.success() && told.contains("did you mean"), "{told}");
    assert_eq!(containers.ports().len(), 3);
    // The switch leads a session of its own, so its group of the scheduler is its own, too.
    let doctor = said(&containers.switch(&["doctor"]).stdout);
    assert!(doctor.contains("nice -5"), "{doctor}");
}

/// Docker, as far as the recipe asks it: what runs, where a container's namespace is, and what
/// happens.
const DOCKER: &str = r#"#!/bin/sh
case $1 in
ps) cat "$FAKE/running" ;;
inspect) for id; do :; done; cat "$FAKE/place-$id" ;;
events) echo "$*" >"$FAKE/asked"; exec cat "$FAKE/events" ;;
esac
"#;

/// The recipe as it runs, and the end of its list of events.
struct Recipe(Child, fs::File);

impl Recipe {
    fn start(containers: &Containers) -> Recipe {
        let events = containers.path("events");
        let _ = fs::remove_file(&events);
        assert!(Command::new("mkfifo").arg(&events).status().unwrap().success());
        let recipe =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/docker/containers.sh");
        let path =
            format!("{}:{}", containers.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.arg(recipe).env("PATH", path).env("FAKE", containers.scratch.path());
        command.env("NETWORK", containers.path("network")).env("STATE", containers.path("state"));
        let child = command.env("RECORD", containers.path("record")).spawn().unwrap();
        // Opens when Docker is asked for events, which is after all else.
        Recipe(child, fs::OpenOptions::new().write(true).open(events).unwrap())
    }
    fn happens(&mut self, what: &str) {
        use std::io::Write;
        writeln!(self.1, "{what}").unwrap();
    }
    fn end(mut self) {
        drop(self.1);
        assert!(self.0.wait().unwrap().success(), "Docker has ended, and so does it");
    }
}

#[test]
fn the_recipe_for_docker_follows_its_containers() {
    use std::os::unix::fs::PermissionsExt;
    let containers = needs!(Containers::new("docker", 3));
    let bin = containers.path("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(MILLPOND, bin.join("millpond")).unwrap();
    fs::write(bin.join("docker"), DOCKER).unwrap();
    fs::set_permissions(bin.join("docker"), fs::Permissions::from_mode(0o755)).unwrap();
    let network = "{\"cniVersion\": \"1.0.0\", \"name\": \"n\", \"type\": \"millpond\"}";
    file(&containers.scratch, "network", network);
    let [one, two] = ["1", "2"].map(|digit| digit.repeat(64));
    let runs = |id: &str, which: usize| {
        let place = format!("/run/netns/{}", containers.namespaces[which].name());
        file(&containers.scratch, &format!("place-{id}"), &place);
    };
    let port = |id: &str| format!("{}-eth0", &id[..40]);
    let ports = |wanted: &[&String]| {
        soon("the ports", || {
            containers.ports() == wanted.iter().map(|id| port(id)).collect::<Vec<_>>()
        });
    };
    // One runs already, another starts.
    file(&containers.scratch, "running", &format!("{one}\n"));
    runs(&one, 0);
    let mut recipe = Recipe::start(&containers);
    ports(&[&one]);
    let first = containers.interface(0).expect("it has its interface");
    runs(&two, 1);
    recipe.happens(&format!("start {two}"));
    ports(&[&one, &two]);
    // An event that is heard twice changes nothing.
    recipe.happens(&format!("start {one}"));
    // It ends and starts again, in a namespace of its own.
    recipe.happens(&format!("die {two}"));
    ports(&[&one]);
    assert_eq!(containers.interface(1), None);
    runs(&two, 2);
    recipe.happens(&format!("start {two}"));
    ports(&[&one, &two]);
    soon("its interface", || containers.interface(2).is_some());
    assert_eq!(containers.interface(0).as_ref(), Some(&first), "the same as before");
    recipe.end();
    // While nobody followed, one has ended and the other stayed.
    let recipe = Recipe::start(&containers);
    ports(&[&one]);
    assert_eq!((containers.interface(0), containers.interface(2)), (Some(first), None));
    recipe.end();
    let asked = fs::read_to_string(containers.path("asked")).unwrap();
    assert!(
        asked.contains("--filter label=millpond") && asked.contains("{{.Action}} {{.Actor.ID}}"),
        "{asked}"
    );
    assert_eq!(fs::read_dir(containers.path("record")).unwrap().count(), 1);
}

/// Every file that the book shows has no errors.
#[test]
fn the_books_examples_are_right() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = ["switch.md", "switch-ports.md", "switch-pauses.md"];
    let page: String = pages.map(|name| fs::read_to_string(docs.join(name)).unwrap()).concat();
    let scratch = Dir::new("book");
    let here = page
        .split("<<'END_OF_FILE'\n")
        .skip(1)
        .filter_map(|rest| rest.split("END_OF_FILE\n").next());
    let fenced = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    for text in here.chain(fenced) {
        let file = file(&scratch, "book.toml", text);
        let output = millpond(&["switch", "apply", "--dry-run", &file]);
        assert!(output.status.success(), "{text}\n{}", said(&output.stderr));
        count += 1;
    }
    assert_eq!(count, 7);
}
