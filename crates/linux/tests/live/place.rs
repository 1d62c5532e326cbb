//! The place that a live test makes and takes away again: a bpf file system, a cgroup, two
//! namespaces with a veth pair; and the bytes that it sees arrive there.

use millpond_linux::limit::apply::{Done, Session};
use millpond_linux::limit::cgroup::Hierarchy;
use millpond_linux::limit::{Error, apply, serve};
use millpond_worlds::{Namespace, World, namespace};
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One at a time: they measure.
static TURN: Mutex<()> = Mutex::new(());

/// The place that a test makes, and takes away again.
pub struct Place {
    pub folder: PathBuf,
    pub bpffs: PathBuf,
    pub cgroup: PathBuf,
    /// The names of `hosts`.
    pub networks: Vec<String>,
    hosts: Vec<Namespace>,
    world: World,
    _turn: std::sync::MutexGuard<'static, ()>,
}

pub fn ip(args: &[&str]) -> bool {
    millpond_worlds::ip::ip(args).is_ok()
}

impl Place {
    /// Serves beside the test, and waits until that has come about.
    pub fn serve_until(&self, is_done: impl Fn() -> bool) {
        let bpffs = self.bpffs.clone();
        std::thread::spawn(move || serve::serve(&bpffs, None, &|_| {}));
        let start = Instant::now();
        while !is_done() {
            assert!(start.elapsed().as_secs() < 15, "serve did not apply again");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    /// The error is what there is none for.
    pub fn new(name: &str) -> Result<Place, String> {
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let hierarchy = Hierarchy::find().map_err(|e| e.to_string())?;
        let world = World::new(&format!("live-{name}")).map_err(|e| e.to_string())?;
        let bpffs = world.bpffs("bpf").map_err(|e| e.to_string())?;
        let removed = bpffs.clone();
        world.at_end(move || drop(apply::remove_all(&removed)));
        let cgroup = hierarchy.root.join(format!("millpond-live-{name}-{:07}", std::process::id()));
        world.cgroup(&cgroup).map_err(|e| e.to_string())?;
        let (folder, networks) = (world.folder().to_path_buf(), Vec::new());
        Ok(Place { folder, bpffs, cgroup, networks, hosts: Vec::new(), world, _turn: turn })
    }
    /// As `new`, with two namespaces, a and b, at 10.98.7.1 and 10.98.7.2.
    pub fn with_network(name: &str) -> Result<Place, String> {
        let mut place = Place::new(name)?;
        let hosts = place.world.namespaces(&["a", "b"]).map_err(|e| e.to_string())?;
        place.world.veths(&[[(&hosts[0], "va"), (&hosts[1], "vb")]]).map_err(|e| e.to_string())?;
        for (host, device, address) in [(0, "va", "10.98.7.1/24"), (1, "vb", "10.98.7.2/24")] {
            let lines = format!("addr add {address} dev {device}\nlink set {device} up");
            hosts[host].ip(&lines).map_err(|e| e.to_string())?;
        }
        place.networks = hosts.iter().map(|host| host.name().to_string()).collect();
        place.hosts = hosts;
        Ok(place)
    }
    /// A second bpf file system, for what another host has installed.
    pub fn other_host(&self) -> PathBuf {
        let path = self.world.bpffs("other").unwrap();
        let removed = path.clone();
        self.world.at_end(move || drop(apply::remove_all(&removed)));
        path
    }
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text.replace("CGROUP", self.cgroup.to_str().unwrap())).unwrap();
        path
    }
    pub fn secret(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }
    pub fn apply(&self, file: &Path) -> Result<Done, Error> {
        let mut session = Session::open(&self.bpffs)?;
        let source = session.read(file, false)?;
        let sources = session.with(source);
        session.install(sources, false)
    }
    /// The helper in a role, in the cgroup and the first namespace.
    pub fn child(&self, role: &str, args: &[String]) -> Child {
        self.child_at(0, role, args)
    }
    /// As `child`, in one of the namespaces.
    pub fn child_at(&self, host: usize, role: &str, args: &[String]) -> Child {
        let mut command = self.world.command(env!("CARGO_BIN_EXE_millpond-linux-helper"));
        command.arg(role).args(args).stdout(Stdio::null());
        match self.hosts.get(host) {
            // The whole process, not one thread of it: the kick looks for processes.
            Some(host) => host.spawn(&mut command).unwrap(),
            None => command.spawn().unwrap(),
        }
    }
    pub fn sender(&self, role: &str, args: &[&str]) -> Child {
        let mut all = vec![self.cgroup.display().to_string(), self.networks[0].clone()];
        all.extend(args.iter().map(|a| a.to_string()));
        self.child(role, &all)
    }
}

/// A child that ends with the test, however that ends.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn enter(network: &str) {
    namespace::enter(network).unwrap();
}

/// Bytes that are read at the other end, and those that arrive there.
pub struct Sink {
    pub bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    network: String,
}

impl Sink {
    pub fn new(place: &Place) -> Sink {
        let (bytes, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (network, counted, over) = (place.networks[1].clone(), bytes.clone(), stop.clone());
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            enter(&network);
            let listener = TcpListener::bind("10.98.7.2:7007").unwrap();
            listener.set_nonblocking(true).unwrap();
            ready.send(()).unwrap();
            while !over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((mut from, _)) => {
                        let counted = counted.clone();
                        from.set_nonblocking(false).unwrap();
                        std::thread::spawn(move || {
                            let mut piece = vec![0; 1 << 18];
                            while let Ok(n @ 1..) = from.read(&mut piece) {
                                counted.fetch_add(n as u64, Ordering::Relaxed);
                            }
                        });
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            }
        });
        is_ready.recv().unwrap();
        Sink { bytes, stop, network: place.networks[1].clone() }
    }
    /// Megabits that arrive in the busiest second, with the headers that a limit counts, and those
    /// that are read on average, while `child` runs.
    pub fn watch(&self, child: Child) -> (f64, f64) {
        let look = || {
            enter(&self.network);
            self.watch_here(child)
        };
        std::thread::scope(|scope| scope.spawn(look).join().unwrap())
    }
    fn watch_here(&self, mut child: Child) -> (f64, f64) {
        let (mut seen, start) = (vec![], Instant::now());
        let now = || start.elapsed().as_secs_f64();
        while child.try_wait().unwrap().is_none() {
            seen.push((now(), arrived(), now(), self.bytes.load(Ordering::Relaxed)));
            std::thread::sleep(Duration::from_millis(50));
        }
        let first = seen.iter().position(|(.., read)| *read > seen[0].3).unwrap_or(0);
        let seen = &seen[first..];
        let mut most = 0.0f64;
        for (i, (from, bytes, ..)) in seen.iter().enumerate() {
            if let Some((_, more, to, _)) = seen[i..].iter().find(|(to, ..)| to - from >= 1.0) {
                // They came in no longer than from before the one look to behind the other.
                most = most.max((more - bytes) as f64 * 8e-6 / (to - from));
            }
        }
        let (last, all) = (seen.last().unwrap(), seen.first().unwrap());
        (most, (last.3 - all.3) as f64 * 8e-6 / (last.0 - all.0))
    }
}

/// Bytes that this thread's namespace has got by its veth, as the kernel counts them when they
/// come: whoever reads them from a socket may do so any time later. Without the headers of
/// Ethernet.
fn arrived() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line =
        text.lines().find_map(|line| line.trim().strip_prefix("vb")?.split_once(':')).unwrap().1;
    let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap());
    let (bytes, packets) = (numbers.next().unwrap(), numbers.next().unwrap());
    bytes - 14 * packets
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
