//! The common parts of tests of ports that somebody attaches to: a switch that is a process
//! (`helpers`), and a folder of theirs.

use millpond_linux::switch::config::Config;
use millpond_linux::switch::reading::{PortReading, Reading};
use millpond_linux::switch::state::State;
use millpond_linux::switch::{apply, show};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Long enough for a machine that does much besides.
pub const LONG: Duration = Duration::from_secs(20);

/// One at a time: the machine is small.
static TURN: Mutex<()> = Mutex::new(());

/// The helper in a role, with the path that it is for.
pub fn role(role: &str, path: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond-linux-helper"));
    command.arg(role).arg(path);
    command
}

/// A process that ends with the test.
pub struct Process(pub Child);

impl Process {
    pub fn start(command: &mut Command) -> Process {
        Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A switch's folder, and the sockets of its ports.
pub struct Place {
    pub folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Place {
    pub fn new(name: &str) -> Place {
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let folder =
            std::env::temp_dir().join(format!("millpond-attached-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Place { folder, _turn: turn }
    }
    pub fn state(&self) -> State {
        State::at(&self.folder.join("state"))
    }
    pub fn socket(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.sock"))
    }
    /// Applies a switch with ports of this kind, each with its keys, and with others.
    pub fn apply_kind(&self, kind: &str, ports: &[(&str, &str)], others: &str) -> Reading {
        let port = |(name, keys): &(&str, &str)| {
            let socket = self.socket(name);
            let socket = socket.display();
            format!(
                "[[port]]\nname = \"{name}\"\nkind = \"{kind}\"\nsocket = \"{socket}\"\n{keys}\n"
            )
        };
        apply(&self.state(), &(ports.iter().map(port).collect::<String>() + others));
        self.reading()
    }
    pub fn reading(&self) -> Reading {
        show::read(&self.state()).unwrap()
    }
    pub fn port(&self, name: &str) -> PortReading {
        port(&self.state(), name)
    }
    pub fn kill(&self) {
        kill(&self.state());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = apply::remove_all(&self.state());
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Applies a switch, which runs if it did not.
pub fn apply(state: &State, text: &str) {
    let config = Config::parse("test.toml", text).unwrap();
    let program = || role("switch", state.folder());
    let done = apply::apply(state, &config, &program).unwrap();
    assert_eq!(done.waiting, [], "all ports open");
}

/// The reading of one of its ports.
pub fn port(state: &State, name: &str) -> PortReading {
    show::read(state).unwrap().ports.into_iter().find(|port| port.name == name).unwrap()
}

/// Kills a switch.
pub fn kill(state: &State) {
    let pid = state.process().expect("it runs");
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    assert!(soon(|| state.process().is_none()));
}

/// Whether `what` comes about in time.
pub fn soon(mut what: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < LONG {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}
