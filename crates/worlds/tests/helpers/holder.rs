//! Makes a world with one thing of each kind and a process in it, prints its name and the
//! process', and waits.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let world = millpond_worlds::World::new("holder")?;
    let namespace = world.namespace("a")?;
    world.bpffs("bpf")?;
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let is_cgroup = |line: &&str| line.split(' ').nth(2) == Some("cgroup2");
    if let Some(line) = mounts.lines().find(is_cgroup) {
        let root = std::path::Path::new(line.split(' ').nth(1).unwrap_or("/sys/fs/cgroup"));
        world.cgroup(&root.join(world.name()))?;
    }
    let child = namespace.spawn(std::process::Command::new("sleep").arg("1000"))?;
    println!("{} {}", world.name(), child.id());
    if std::env::args().nth(1).as_deref() == Some("panic") {
        panic!("as a test that fails does");
    }
    std::thread::sleep(std::time::Duration::from_secs(1000));
    drop(world);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
