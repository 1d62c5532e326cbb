//! Programs of the machine, in a host: the machine's files are read-only, and what programs write
//! goes to file systems of the host's own.
//!
//! Invariant: the agent reports a program's exit after all of its output.

use crate::setup;
use crate::sys::{self, Poller};
use crate::wire::{PATH, Report};
use rustix::event::epoll::EventFlags;
use rustix::process::{WaitOptions, wait};
use std::collections::BTreeMap;
use std::io::Result;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// In this program's own arguments: run the command that follows.
pub const RUN: &str = "--run";
/// The most bytes of output in a report.
const OUTPUT_MAX: usize = 1400;
/// The kind of tokens that are this module's.
const PIPE: u64 = 3 << 32;

struct Program {
    pid: i32,
    pipes: [Option<OwnedFd>; 2],
    status: Option<i32>,
}

#[derive(Default)]
pub struct Programs(BTreeMap<u16, Program>);

/// The program and the stream of a poller's data, if it is of this module.
pub fn token(data: u64) -> Option<(u16, usize)> {
    (data & !0xffff_ffff == PIPE).then_some(((data >> 1) as u16, (data & 1) as usize))
}

/// Becomes the command: this process is a program of its own.
pub fn become_command(command: &str) -> std::io::Error {
    let entered = std::os::unix::fs::chroot(setup::MACHINE);
    if let Err(error) = entered.and_then(|()| std::env::set_current_dir("/run")) {
        return error;
    }
    Command::new("/bin/sh")
        .args(["-c", command])
        .env_clear()
        .envs([("PATH", PATH), ("HOME", "/run"), ("TMPDIR", "/run"), ("LANG", "C.UTF-8")])
        .exec()
}

impl Programs {
    pub fn run(&mut self, poller: &Poller, program: u16, command: &str) -> Result<()> {
        setup::machine()?;
        let mut child = Command::new("/proc/self/exe")
            .args([RUN, command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let out = child.stdout.take().map(OwnedFd::from);
        let err = child.stderr.take().map(OwnedFd::from);
        let pipes = [out, err];
        for (stream, pipe) in pipes.iter().enumerate() {
            if let Some(pipe) = pipe {
                let token = PIPE | u64::from(program) << 1 | stream as u64;
                poller.add(pipe, EventFlags::IN, token)?;
            }
        }
        self.0.insert(program, Program { pid: child.id() as i32, pipes, status: None });
        Ok(())
    }

    /// Sends a program's processes a signal.
    pub fn signal(&self, program: u16, signal: u8) {
        if let Some(program) = self.0.get(&program) {
            sys::kill(program.pid, signal);
        }
    }

    pub fn serve(&mut self, program: u16, stream: usize, report: &mut dyn FnMut(&Report)) {
        let Some(running) = self.0.get_mut(&program) else { return };
        let Some(pipe) = &running.pipes[stream] else { return };
        let mut bytes = [0; OUTPUT_MAX];
        match rustix::io::read(pipe, &mut bytes[..]) {
            Ok(count) if count > 0 => {
                let bytes = bytes[..count].to_vec();
                report(&Report::Output { program, stream: stream as u8 + 1, bytes });
            }
            _ => running.pipes[stream] = None,
        }
        self.end(program, report);
    }

    pub fn reap(&mut self, report: &mut dyn FnMut(&Report)) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get();
            let ended = self.0.iter_mut().find(|(_, it)| it.pid == pid);
            let Some((program, running)) = ended else { continue };
            running.status = Some(status.as_raw());
            let program = *program;
            self.end(program, report);
        }
    }

    fn end(&mut self, program: u16, report: &mut dyn FnMut(&Report)) {
        let Some(running) = self.0.get(&program) else { return };
        if let Some(status) = running.status.filter(|_| running.pipes.iter().all(Option::is_none)) {
            self.0.remove(&program);
            report(&Report::Exited { program, status: status as u32 });
        }
    }
}
