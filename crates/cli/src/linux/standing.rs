//! Labs that stay: `millpond lab up`, and what enters them.
//!
//! A lab that is up has a file in [`FOLDER`] with its process and its hosts' namespaces, and a
//! socket for captures. Both go with the lab; of a lab whose process is gone whoever finds its file
//! removes all that is left.
//!
//! Invariant: `up` ends with its namespaces, also by a signal; after `kill -9` the next lab removes
//! them.

use super::needs_reader;
use crate::args::linux::{UpArgs, WhichLab};
use crate::failure::Failure;
use crate::run::load;
use crate::watch::{catch_interrupts, interrupted};
use crate::{eprint, print};
use millpond::{Lab, World};
use millpond_lab::watching;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Where labs that are up have their files.
const FOLDER: &str = "/run/millpond/labs";
/// Time limit for a lab to come up or to end.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Standing {
    name: String,
    pid: i32,
    /// The world that owns the namespaces; processes with its name end with it.
    world: String,
    /// By how much its network is slowed.
    scale: u32,
    hosts: Vec<Host>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Host {
    namespace: String,
    address: Ipv4Addr,
}

fn failed(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Failure {
    let what = what.to_string();
    move |error| Failure::Runs(format!("{what}: {error}"))
}

fn file(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.json"))
}

/// The socket of a lab at which captures are asked for.
fn socket(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.sock"))
}

/// The log of a lab in the background.
fn log(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.log"))
}

impl Standing {
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }
    /// Whether its process lives; one that nobody has waited for does not.
    fn is_up(&self) -> bool {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_some_and(|state| !"ZX".contains(state))
    }
    /// Removes what a lab has left that died.
    fn bury(&self) {
        let files = [file(&self.name), socket(&self.name), log(&self.name)];
        files.iter().for_each(|file| _ = fs::remove_file(file));
        let _ = millpond_lab::sweep();
        eprint(format_args!("lab {} had died; what was left of it is removed", self.name));
    }

    /// All that are up, by name.
    fn all() -> Vec<Standing> {
        let mut all = Vec::new();
        for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            match serde_json::from_str::<Standing>(&text) {
                Ok(lab) if lab.is_up() => all.push(lab),
                Ok(lab) => lab.bury(),
                Err(_) => {}
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn find(which: &WhichLab) -> Result<Standing, Failure> {
        let mut all = Standing::all();
        let names = || all.iter().map(|lab| lab.name.as_str()).collect::<Vec<_>>().join(", ");
        let none = || Failure::Usage("no lab is up: millpond lab up SCENARIO".into());
        match &which.name {
            Some(name) => {
                let names = names();
                let found = all.into_iter().find(|lab| lab.name == *name);
                found.ok_or_else(|| match names.is_empty() {
                    true => none(),
                    false => Failure::Usage(format!("no lab {name:?} is up; there is {names}")),
                })
            }
            None if all.len() > 1 => {
                Err(Failure::Usage(format!("several labs are up: give --lab NAME ({})", names())))
            }
            None => all.pop().ok_or_else(none),
        }
    }

    /// The host that is meant: `3` or `host3`.
    fn host(&self, text: &str) -> Result<(usize, &Host), Failure> {
        let number = text.strip_prefix("host").unwrap_or(text).parse::<usize>().ok();
        let found = number.and_then(|number| Some((number, self.hosts.get(number)?)));
        found.ok_or_else(|| {
            let last = self.hosts.len().saturating_sub(1);
            Failure::Usage(format!("the lab has no host {text:?}; it has host0 to host{last}"))
        })
    }
}

pub fn up(args: &UpArgs) -> Result<(), Failure> {
    let plan = load(&args.scenario, &args.overrides)?.plan(args.variant.as_deref())?;
    let name = args.name.clone().unwrap_or_else(|| plan.name().to_string());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        let text = format!("{name:?} cannot be a lab's name: use letters, digits, - _ .");
        return Err(Failure::Usage(format!("{text} (--name)")));
    }
    if Standing::all().iter().any(|lab| lab.name == name) {
        let text = format!("a lab {name:?} is up: end it (millpond lab down --lab {name})");
        return Err(Failure::Usage(format!("{text}, or give another --name")));
    }
    if args.detach {
        return detach(args, &name);
    }
    let world = Lab { scale: args.scale.factor };
    let fast = plan.detail().topology.links[0].rate.bps();
    let plan = world.prepare(&plan)?;
    let scale = fast / plan.detail().topology.links[0].rate.bps().max(1);
    catch_interrupts();
    let lab = millpond_lab::Lab::up(plan.detail())
        .map_err(|error| Failure::Runs(format!("lab: {error}")))?;
    let hosts = (0..).zip(lab.namespaces()).map(|(host, namespace)| Host {
        namespace: namespace.name().to_string(),
        address: lab.address(host),
    });
    let standing = Standing {
        pid: rustix::process::getpid().as_raw_nonzero().get(),
        world: lab.world().name().to_string(),
        scale: u32::try_from(scale).unwrap_or(u32::MAX),
        hosts: hosts.collect(),
        name,
    };
    let own = Published::new(&standing)?;
    eprint(format_args!("{}", described(&standing)));
    eprint(format_args!("enter it: millpond lab shell 0; end it: Ctrl-C or millpond lab down"));
    let socket = socket(&standing.name);
    watching::serve(&lab, plan.detail(), &socket, &interrupted)
        .map_err(failed(socket.display()))?;
    // Whoever sees the file gone finds no namespace.
    drop(lab);
    drop(own);
    Ok(())
}

/// The file of a lab, as long as the lab is up.
struct Published(PathBuf);

impl Published {
    fn new(standing: &Standing) -> Result<Published, Failure> {
        fs::create_dir_all(FOLDER).map_err(failed(FOLDER))?;
        let path = file(&standing.name);
        let next = path.with_extension("next");
        fs::write(&next, serde_json::to_string_pretty(standing)?)
            .and_then(|()| fs::rename(&next, &path))
            .map_err(failed(path.display()))?;
        Ok(Published(path))
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Starts the same command in the background, and waits until its lab is up.
fn detach(args: &UpArgs, name: &str) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    fs::create_dir_all(FOLDER).map_err(failed(FOLDER))?;
    let log = log(name);
    let out = fs::File::create(&log).map_err(failed(log.display()))?;
    let own = std::env::current_exe().map_err(failed("finding this program"))?;
    let mut command = Command::new(own);
    command.args(["lab", "up", "--name", name]).arg(&args.scenario);
    for (key, value) in &args.overrides.set {
        command.args(["--set", &format!("{key}={value}")]);
    }
    args.variant.iter().for_each(|variant| _ = command.args(["--variant", variant]));
    let scale = args.scale.factor.map(|scale| scale.to_string());
    scale.iter().for_each(|scale| _ = command.args(["--scale", scale]));
    let errors = out.try_clone().map_err(failed(log.display()))?;
    command.stdin(Stdio::null()).stdout(out).stderr(errors).process_group(0);
    let mut child = command.spawn().map_err(failed("starting the lab"))?;
    let began = Instant::now();
    loop {
        let ended = child.try_wait().map_err(failed("waiting for the lab"))?;
        if let Some(lab) = Standing::all().into_iter().find(|lab| lab.name == name) {
            eprint(format_args!("{}", described(&lab)));
            return Ok(());
        }
        if ended.is_some() || began.elapsed() > PATIENCE {
            let _ = child.kill();
            let text = fs::read_to_string(&log).unwrap_or_default();
            return Err(Failure::Runs(format!("the lab did not come up: {}", text.trim())));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn described(lab: &Standing) -> String {
    let last = lab.hosts.len().saturating_sub(1);
    let address = |host: Option<&Host>| host.map_or(String::new(), |it| it.address.to_string());
    let (first, end) = (address(lab.hosts.first()), address(lab.hosts.last()));
    let Standing { name, scale, .. } = lab;
    format!("lab {name} is up at scale {scale}: host0 ({first}) to host{last} ({end})")
}

pub fn down(which: &WhichLab) -> Result<(), Failure> {
    let lab = Standing::find(which)?;
    if let Some(pid) = lab.pid() {
        kill_process(pid, Signal::TERM).map_err(|e| failed("ending the lab")(e.into()))?;
    }
    let began = Instant::now();
    while lab.is_up() && file(&lab.name).exists() {
        if began.elapsed() > PATIENCE {
            return Err(Failure::Runs(format!("process {} does not end", lab.pid)));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let _ = fs::remove_file(log(&lab.name));
    eprint(format_args!("lab {} is down", lab.name));
    Ok(())
}

pub fn list(json: bool) -> Result<(), Failure> {
    let all = Standing::all();
    if json {
        print(&serde_json::to_string_pretty(&all)?);
    } else if all.is_empty() {
        print("no lab is up");
    } else {
        all.iter().for_each(|lab| print(&described(lab)));
    }
    Ok(())
}

/// Opens a shell on a host.
pub fn shell(host: &str, which: &WhichLab) -> Result<(), Failure> {
    let lab = Standing::find(which)?;
    let (number, _) = lab.host(host)?;
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    eprint(format_args!("host{number} of lab {}; the others are host0, host1, …", lab.name));
    enter(&lab, host, &[shell])
}

/// Runs a command on a host.
pub fn exec(host: &str, which: &WhichLab, command: &[OsString]) -> Result<(), Failure> {
    enter(&Standing::find(which)?, host, command)
}

/// Writes the packets of a place to a file or to standard output.
pub fn capture(
    place: &str,
    which: &WhichLab,
    file: Option<&Path>,
    seconds: Option<u32>,
) -> Result<(), Failure> {
    if file.is_none() {
        needs_reader()?;
    }
    let lab = Standing::find(which)?;
    let what = format!("capturing {} of lab {}", place, lab.name);
    let capture = watching::Capture::of(&socket(&lab.name), place);
    let capture = capture.map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => Failure::Usage(format!("lab {}: {error}", lab.name)),
        _ => failed(&what)(error),
    })?;
    let mut out: Box<dyn Write> = match file {
        Some(path) => Box::new(fs::File::create(path).map_err(failed(path.display()))?),
        None => Box::new(std::io::stdout().lock()),
    };
    catch_interrupts();
    let end = seconds.map(|count| Instant::now() + Duration::from_secs(count.into()));
    let is_over = || interrupted() || end.is_some_and(|end| Instant::now() >= end);
    capture.copy(&mut out, &is_over).map_err(failed(&what))
}

/// Becomes a command on a host of a lab.
fn enter(lab: &Standing, host: &str, command: &[OsString]) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    let (number, host) = lab.host(host)?;
    let addresses: Vec<Ipv4Addr> = lab.hosts.iter().map(|host| host.address).collect();
    millpond_lab::enter::enter(&host.namespace, &addresses)
        .map_err(failed(format!("entering host{number}")))?;
    let program = &command[0];
    let error = Command::new(program)
        .args(&command[1..])
        .env("MILLPOND_WORLD", &lab.world)
        .env("MILLPOND_HOST", format!("host{number}"))
        .exec();
    let text = match error.kind() {
        ErrorKind::NotFound => {
            format!("{}: no such program; install it", program.to_string_lossy())
        }
        _ => format!("{}: {error}", program.to_string_lossy()),
    };
    Err(Failure::Runs(text))
}
