//! The cost of a packet in the limiter, against a program that does nothing: nanoseconds by
//! BPF_PROG_TEST_RUN, which runs a program many times on one packet with the kernel's own clock.
//! Needs root.
//!
//!     make bench-limit-cost
//!
//! Each figure is the least of several rounds: what else the machine does can only add.

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use millpond_core::Rate;
use millpond_core::limit::{Form, LimitParams};
use millpond_linux::limit::layout::{Head, LAYOUT, LOOPBACK, Scope};

const LIMIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/limit.bpf.o"));
const TRIAL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trial.bpf.o"));
const REPEAT: u32 = 200_000;
const ROUNDS: usize = 15;

fn load(object: &[u8], trial: u32) -> Result<Object, libbpf_rs::Error> {
    libbpf_rs::set_print(None);
    let mut open = ObjectBuilder::default().open_memory(object)?;
    for mut map in open.maps_mut().filter(|m| m.name().to_string_lossy().ends_with(".rodata")) {
        map.set_initial_value(&trial.to_ne_bytes())?;
    }
    open.load()
}

/// An IPv4 packet of TCP (6) or UDP (17), and so long.
fn frame(protocol: u8, length: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 2]);
    frame.extend(length.to_be_bytes());
    frame.resize(14 + usize::from(length), 0);
    (frame[14 + 9], frame[14 + 32]) = (protocol, 0x50);
    frame
}

fn limited(scopes: u32, params: &LimitParams) -> Result<Object, libbpf_rs::Error> {
    let object = load(LIMIT, scopes)?;
    let put = |name: &str, key: u32, value: &[u8]| {
        let map = object.maps().find(|m| m.name() == name).expect("a map of ours");
        map.update(&key.to_ne_bytes(), value, MapFlags::ANY)
    };
    put("head", 0, &Head { layout: LAYOUT, bank: 0, flags: [LOOPBACK, 0] }.to_bytes())?;
    for i in 0..scopes {
        let mut both = Scope::new(params).to_bytes();
        both.extend(both.clone());
        put("scopes", i, &both)?;
    }
    Ok(object)
}

fn cost(object: &Object, name: &str, frame: &[u8]) -> Result<f64, libbpf_rs::Error> {
    let program = object.progs_mut().find(|p| p.name() == name).expect("a program of ours");
    let mut least = f64::MAX;
    for _ in 0..ROUNDS {
        let input =
            ProgramInput { data_in: Some(frame), repeat: REPEAT, ..ProgramInput::default() };
        least = least.min(program.test_run(input)?.duration.as_nanos() as f64);
    }
    Ok(least)
}

fn main() -> Result<(), libbpf_rs::Error> {
    for (packet, frame) in [("UDP, 64 bytes", frame(17, 50)), ("TCP, 1500 bytes", frame(6, 1500))] {
        let nothing = cost(&load(TRIAL, 0)?, "nothing", &frame)?;
        println!("{packet}\nempty program              {nothing:>6.0} ns");
        for form in [Form::Credit, Form::LockFree] {
            // Passing: no packet is reported. Behind: every packet is, and most are dropped.
            for (what, rate) in [("passing", 1_000_000_000_000), ("behind", 10_000_000)] {
                let params = LimitParams { rate: Rate(rate), form, ..LimitParams::default() };
                for scopes in [1, 4] {
                    let ns = cost(&limited(scopes, &params)?, "limit_egress", &frame)?;
                    println!(
                        "{form:?}, {what}, {scopes} scopes: {ns:>6.0} ns, {:+.0} ns",
                        ns - nothing
                    );
                }
            }
        }
    }
    Ok(())
}
