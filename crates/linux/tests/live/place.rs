//! What a live test makes and takes away again: a bpf file system, a cgroup, two namespaces with a
//! veth pair; and what it sees arrive there.

use millpond_linux::limit::apply::{Done, Session};
use millpond_linux::limit::{Error, apply, serve, store};
use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const ROLE: &str = "MILLPOND_LIVE_ROLE";

/// One at a time: they measure.
static TURN: Mutex<()> = Mutex::new(());

/// What a test makes, and takes away again.
pub struct Place {
    pub bpffs: PathBuf,
    pub cgroup: PathBuf,
    pub networks: Vec<String>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

pub fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
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
    /// `None`, with a message, where there can be none.
    pub fn new(name: &str) -> Option<Place> {
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let skip = |why: &str| {
            eprintln!("skipped: {name} needs {why}");
            None
        };
        if !rustix::process::geteuid().is_root() {
            return skip("root");
        }
        let Ok(hierarchy) = millpond_linux::limit::cgroup::Hierarchy::find() else {
            return skip("cgroup v2");
        };
        let bpffs =
            std::env::temp_dir().join(format!("millpond-live-{name}-{}", std::process::id()));
        fs::create_dir_all(&bpffs).unwrap();
        if let Err(error) = store::mount_bpffs(&bpffs) {
            let _ = fs::remove_dir(&bpffs);
            return skip(&format!("a bpf file system ({error})"));
        }
        let cgroup = hierarchy.root.join(format!("millpond-live-{name}-{:07}", std::process::id()));
        let place = Place { bpffs, cgroup, networks: Vec::new(), _turn: turn };
        if fs::create_dir(&place.cgroup).is_err() {
            return skip("a cgroup v2 that can be written to");
        }
        Some(place)
    }
    /// As `new`, with two namespaces, a and b, at 10.98.7.1 and 10.98.7.2.
    pub fn with_network(name: &str) -> Option<Place> {
        let mut place = Place::new(name)?;
        let [a, b] = ["a", "b"].map(|end| format!("mp{end}{}", std::process::id()));
        if !ip(&["netns", "add", &a]) {
            eprintln!("skipped: {name} needs `ip netns`");
            return None;
        }
        place.networks = vec![a.clone(), b.clone()];
        let [va, vb] = [format!("va{}", std::process::id()), format!("vb{}", std::process::id())];
        assert!(ip(&["netns", "add", &b]));
        assert!(ip(&[
            "link", "add", &va, "netns", &a, "type", "veth", "peer", "name", &vb, "netns", &b
        ]));
        for (end, device, address) in [(&a, &va, "10.98.7.1/24"), (&b, &vb, "10.98.7.2/24")] {
            assert!(ip(&["-n", end, "addr", "add", address, "dev", device]));
            assert!(ip(&["-n", end, "link", "set", device, "up"]));
        }
        Some(place)
    }
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("millpond-live-{}-{name}", std::process::id()));
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
    /// This program in another role, in the cgroup and the first namespace.
    pub fn child(&self, role: &str, args: &[String]) -> Child {
        self.child_at(0, role, args)
    }
    /// As `child`, in one of the namespaces.
    pub fn child_at(&self, host: usize, role: &str, args: &[String]) -> Child {
        let own = std::env::current_exe().unwrap();
        let mut command = match self.networks.get(host) {
            // The whole process, not one thread of it: the kick looks for processes.
            Some(network) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{network}")).arg(own);
                command
            }
            None => Command::new(own),
        };
        command.args(["--exact", "a_child_of_these_tests", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).env("MILLPOND_LIVE_ARGS", args.join(" ")).stdout(Stdio::null());
        command.spawn().unwrap()
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

impl Drop for Place {
    fn drop(&mut self) {
        let _ = apply::remove_all(&self.bpffs);
        self.networks.iter().for_each(|n| {
            ip(&["netns", "del", n]);
        });
        for below in fs::read_dir(&self.cgroup).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(below.path());
        }
        // The kernel may need a moment for the processes that have just ended.
        let start = Instant::now();
        while self.cgroup.exists()
            && fs::remove_dir(&self.cgroup).is_err()
            && start.elapsed().as_secs() < 3
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = rustix::mount::unmount(&self.bpffs, rustix::mount::UnmountFlags::empty());
        let _ = fs::remove_dir(&self.bpffs);
        for name in ["a.toml", "b.toml", "c.toml"] {
            let _ = fs::remove_file(
                std::env::temp_dir().join(format!("millpond-live-{}-{name}", std::process::id())),
            );
        }
    }
}

/// A second bpf file system, for what another host has installed.
pub struct OtherHost(pub PathBuf);

impl OtherHost {
    pub fn new() -> OtherHost {
        let path = std::env::temp_dir().join(format!("millpond-live-other-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        store::mount_bpffs(&path).unwrap();
        OtherHost(path)
    }
}

impl Drop for OtherHost {
    fn drop(&mut self) {
        let _ = apply::remove_all(&self.0);
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::empty());
        let _ = fs::remove_dir(&self.0);
    }
}

pub fn enter(network: &str) {
    let file = File::open(format!("/run/netns/{network}")).unwrap();
    let kind = Some(rustix::thread::LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(file.as_fd(), kind).unwrap();
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

/// What this thread's namespace has got by its veth, as the kernel counts it when it comes: whoever
/// reads it from a socket may do so any time later. Without the headers of Ethernet.
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
