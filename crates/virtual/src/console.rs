//! A console into a world that stands still: commands of the user's at hosts, between two windows.
//!
//! At its time the world stops, and lines are read: a host and a shell command, which runs there as
//! a program does, or how to go on. The world goes on for as long as a command takes virtual time:
//! `ss -ti` takes none to speak of, `sleep 1` a second.
//!
//! Invariant: without a console a run never calls this module.

use crate::calendar::Orders;
use crate::programs::{COMMAND_MAX, with_own_path};
use millpond_agent::wire::{self, Order};
use millpond_core::Time;
use std::io::{BufRead, Write};

/// The number of its commands, beside those of the plan's programs.
const COMMAND: u16 = u16::MAX - 2;

const HELP: &str = "\
HOST COMMAND  run a shell command at a host, such as: host0 ss -ti
go [TIME]     go on, for so long, such as: go 2ms; without a time, to the end
quit          end the run here";

#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Run(u32, &'a str),
    Go(Option<Time>),
    Quit,
    Nothing,
}

/// Reads a line; the error describes the fault.
fn read<'a>(line: &'a str, hosts: &[bool]) -> Result<Line<'a>, String> {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match first {
        "" => Ok(Line::Nothing),
        "go" if rest.is_empty() => Ok(Line::Go(None)),
        "go" => rest.parse().map(|time| Line::Go(Some(time))).map_err(|e| e.to_string()),
        "quit" | "exit" => Ok(Line::Quit),
        "help" | "?" => Err(HELP.to_string()),
        host => {
            let number = host.strip_prefix("host").unwrap_or(host).parse::<u32>();
            let host = number.ok().filter(|number| (*number as usize) < hosts.len());
            let host = host.ok_or_else(|| {
                format!("{first:?} is no host (host0 to host{}), go, quit or help", hosts.len() - 1)
            })?;
            if !hosts[host as usize] {
                return Err(format!("host{host} is modelled, and has no kernel"));
            }
            match rest.len() {
                0 => Err(format!("a command for host{host}? such as: host{host} ss -ti")),
                length if length > COMMAND_MAX => {
                    Err(format!("the command is longer than {COMMAND_MAX} bytes"))
                }
                _ => Ok(Line::Run(host, rest)),
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    On,
    End,
}

pub struct Console<'a> {
    /// By host: whether it is a kernel.
    hosts: Vec<bool>,
    at: Option<Time>,
    runs: bool,
    pub commands: u64,
    input: Box<dyn BufRead + 'a>,
    output: Box<dyn Write + 'a>,
}

impl<'a> Console<'a> {
    /// Of a world that stands first at a time.
    pub fn new(
        hosts: Vec<bool>,
        at: Time,
        input: Box<dyn BufRead + 'a>,
        output: Box<dyn Write + 'a>,
    ) -> Console<'a> {
        Console { hosts, at: Some(at), runs: false, commands: 0, input, output }
    }

    pub fn next(&self) -> Option<Time> {
        self.at.filter(|_| !self.runs)
    }

    /// Reads lines if the world stands at `now`.
    pub fn stand(&mut self, now: Time, orders: &mut Orders) -> Next {
        while self.next().is_some_and(|at| at <= now) {
            self.print(format_args!("{:.6} ms > ", now.as_us_f64() / 1000.0));
            let mut line = String::new();
            // With no more to read the world goes on.
            let length = self.input.read_line(&mut line);
            if length.as_ref().is_ok_and(|length| *length == 0) {
                line = "go".into();
                self.print(format_args!("\n"));
            } else if let Err(error) = length {
                line = "go".into();
                self.print(format_args!("the console cannot be read: {error}\n"));
            }
            match read(&line, &self.hosts) {
                Ok(Line::Nothing) => {}
                Ok(Line::Go(time)) => self.at = time.map(|time| now.saturating_add(time)),
                Ok(Line::Quit) => {
                    self.at = None;
                    return Next::End;
                }
                Ok(Line::Run(host, command)) => {
                    self.runs = true;
                    self.commands += 1;
                    let command = with_own_path(command.to_string());
                    let order = Order::Run { program: COMMAND, command };
                    orders.push((now, host, wire::bytes(&order)));
                }
                Err(reason) => self.print(format_args!("{reason}\n")),
            }
        }
        Next::On
    }

    /// A program has written something; whether it was of this console.
    pub fn wrote(&mut self, program: u16, bytes: &[u8]) -> bool {
        if program == COMMAND {
            // A user who closes the console's output reads no more of it.
            let _ = self.output.write_all(bytes).and_then(|()| self.output.flush());
        }
        program == COMMAND
    }

    /// A program has ended; whether it was of this console, which then reads on.
    pub fn exited(&mut self, program: u16, status: u32) -> bool {
        if program != COMMAND {
            return false;
        }
        if status != 0 {
            self.print(format_args!("(exit status {})\n", status >> 8 & 0xff));
        }
        self.runs = false;
        true
    }

    fn print(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.output.write_fmt(text).and_then(|()| self.output.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_at_a_host_or_how_to_go_on() {
        assert_eq!(read(" host2  ss -ti \n", &[true, true, true]), Ok(Line::Run(2, "ss -ti")));
        assert_eq!(read("0 ls", &[true, true, true]), Ok(Line::Run(0, "ls")));
        assert_eq!(read("go 2ms", &[true, true, true]), Ok(Line::Go(Some(Time::from_ms(2)))));
        assert_eq!(read("go", &[true, true, true]), Ok(Line::Go(None)));
        assert_eq!(read("quit", &[true, true, true]), Ok(Line::Quit));
        assert_eq!(read("\n", &[true, true, true]), Ok(Line::Nothing));
        assert!(read("host3 ls", &[true, true, true]).unwrap_err().contains("host0 to host2"));
        assert!(read("go fast", &[true, true, true]).unwrap_err().contains("number"));
        assert!(read("host1", &[true, true, true]).unwrap_err().contains("such as"));
        assert!(read("help", &[true, true, true]).unwrap_err().contains("HOST COMMAND"));
    }

    #[test]
    fn a_world_stands_until_its_command_has_ended_and_goes_on_as_asked() {
        let (input, mut output) = (&b"host1 ss\nno\ngo 1ms\n"[..], Vec::new());
        let files = (Box::new(input), Box::new(&mut output));
        let mut console = Console::new(vec![true; 2], Time::from_ms(5), files.0, files.1);
        let (mut orders, at) = (Orders::new(), Time::from_ms(5));
        assert_eq!(console.stand(Time::from_ms(4), &mut orders), Next::On);
        assert!(orders.is_empty());
        assert_eq!(console.stand(at, &mut orders), Next::On);
        assert_eq!((orders.len(), orders[0].1, console.next()), (1, 1, None));
        assert!(console.wrote(COMMAND, b"State\n") && !console.wrote(0, b"no"));
        assert!(console.exited(COMMAND, 256));
        assert_eq!(console.stand(at, &mut orders), Next::On);
        assert_eq!((orders.len(), console.next()), (1, Some(Time::from_ms(6))));
        // The end of its input lets the world go on.
        assert_eq!(console.stand(Time::from_ms(6), &mut orders), Next::On);
        assert_eq!(console.next(), None);
        drop(console);
        let text = String::from_utf8(output).unwrap();
        let first = "5.000000 ms > State\n(exit status 1)\n5.000000 ms > \"no\" is no host";
        assert!(text.starts_with(first), "{text}");
    }
}
