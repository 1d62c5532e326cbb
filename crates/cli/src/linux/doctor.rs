//! `millpond lab doctor`: what the worlds `lab` and `virtual` find on this machine.

use crate::failure::Failure;
use crate::print;
use serde::Serialize;

/// One thing that a world needs.
#[derive(Serialize)]
struct Need {
    world: &'static str,
    name: &'static str,
    ok: bool,
    /// The findings, or what it takes.
    detail: String,
}

fn need(world: &'static str, name: &'static str, found: Result<String, String>) -> Need {
    let (ok, detail) = match found {
        Ok(detail) => (true, detail),
        Err(detail) => (false, detail),
    };
    Need { world, name, ok, detail }
}

/// Whether something is there, with a sentence for either.
fn has(is: bool, yes: &str, no: &str) -> Result<String, String> {
    if is { Ok(yes.into()) } else { Err(no.into()) }
}

fn lab() -> Vec<Need> {
    let is_root = rustix::process::geteuid().is_root();
    let tun = std::fs::metadata("/dev/net/tun").is_ok();
    let controls = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    vec![
        need("lab", "root", has(is_root, "yes", "a lab's hosts are namespaces: run as root")),
        need("lab", "/dev/net/tun", has(tun, "yes", "missing: modprobe tun")),
        need(
            "lab",
            "congestion controls",
            controls
                .map(|it| it.trim().to_string())
                .map_err(|e| format!("tcp_available_congestion_control of /proc/sys: {e}")),
        ),
    ]
}

#[cfg(feature = "virtual")]
fn kernels() -> Vec<Need> {
    let kernel = millpond_virtual::kernels::find(None);
    let kernel = kernel.map(|it| format!("Linux {}, {}", it.version, it.program.display()));
    let lacks = millpond_virtual::needs();
    let mut all = vec![need("virtual", "kernel", kernel.map_err(|e| e.to_string()))];
    all.extend(lacks.into_iter().map(|(name, found)| need("virtual", name, found)));
    all
}

#[cfg(not(feature = "virtual"))]
fn kernels() -> Vec<Need> {
    let why = "this build has no world virtual; build with --features virtual";
    vec![need("virtual", "the world", Err(why.into()))]
}

pub fn doctor(json: bool) -> Result<(), Failure> {
    let needs: Vec<Need> = lab().into_iter().chain(kernels()).collect();
    if json {
        print(&serde_json::to_string_pretty(&needs)?);
    } else {
        for Need { world, name, ok, detail } in &needs {
            let mark = if *ok { "ok  " } else { "LACK" };
            print(&format!("{mark} {world:8} {name:20} {detail}"));
        }
    }
    let lacking: Vec<String> = needs
        .iter()
        .filter(|it| !it.ok)
        .map(|Need { world, name, detail, .. }| format!("{name} for world {world} ({detail})"))
        .collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(Failure::Usage(format!("this machine lacks {}", lacking.join("; ")))),
    }
}
