//! How the process that moves frames is asked: over a socket in the state folder, by whoever may
//! enter that.
//!
//! A request is a verb, a line end and what belongs to it, up to the end of what the client sends;
//! the answer is JSON.
//!
//! Invariant: whatever is sent there, the process goes on; its frames wait for no client.

use super::config::Config;
use super::error::Error;
use super::order::Order;
use super::reading::{AddressReading, FlowReading, Reading};
use super::state::State;
use crate::dataplane::mirror::{self, Shown};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long either side waits for the other, and for a change, which may make a thousand
/// interfaces.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_FOR_CHANGES: Duration = Duration::from_secs(60);
/// The most bytes of a request.
const REQUEST_MAX: u64 = 1 << 20;

/// A request to the poll loop.
pub enum Request {
    Show(Sender<Reading>),
    /// The stations behind each port or peer.
    Addresses(Sender<Vec<AddressReading>>),
    Flows(Sender<Vec<FlowReading>>),
    /// The frames that cross the port of this name; `None`: there is none.
    Mirror(String, Sender<Option<Receiver<Shown>>>),
    /// To become another switch; `None`: not while it runs.
    Apply(Box<Config>, Sender<Option<Done>>),
    Team(Order),
    /// To end, and leave its interfaces.
    Stop(Sender<()>),
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Done {
    pub open: usize,
    /// Those that are not, and why.
    pub waiting: Vec<(String, String)>,
    /// Ports and settings that work, and not as somebody may think.
    #[serde(default)]
    pub notes: Vec<String>,
}

#[derive(Serialize, serde::Deserialize)]
enum Answer<T> {
    #[serde(rename = "ok")]
    Ok(T),
    #[serde(rename = "error")]
    Error(String),
}

/// Asks the poll loop from other threads.
#[derive(Clone)]
pub struct Asking {
    requests: Sender<Request>,
    wake: Arc<OwnedFd>,
}

impl Asking {
    /// Returns both ends: the one that asks, and the requests that the poll loop takes, with the
    /// event that wakes it.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel has no event left.
    pub fn new() -> Result<(Asking, Receiver<Request>, Arc<OwnedFd>), Error> {
        let (requests, taken) = channel();
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let wake = rustix::event::eventfd(0, flags)
            .map_err(|e| Error::kernel("an event to wake the poll loop", e))?;
        let wake = Arc::new(wake);
        Ok((Asking { requests, wake: wake.clone() }, taken, wake))
    }
    fn ask<T>(
        &self,
        patience: Duration,
        request: impl FnOnce(Sender<T>) -> Request,
    ) -> Result<T, Error> {
        let (answer, answered) = channel();
        let gone = || Error::Refused("the switch has ended".into());
        self.requests.send(request(answer)).map_err(|_| gone())?;
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        answered.recv_timeout(patience).map_err(|_| gone())
    }
    /// Returns the counters of ports and paths.
    ///
    /// # Errors
    /// [`Error::Refused`] if the switch has ended or does not answer in time.
    pub fn show(&self) -> Result<Reading, Error> {
        self.ask(PATIENCE, Request::Show)
    }
    /// Returns the port or peer behind which each address is.
    ///
    /// # Errors
    /// As [`Asking::show`].
    pub fn addresses(&self) -> Result<Vec<AddressReading>, Error> {
        self.ask(PATIENCE, Request::Addresses)
    }
    /// Returns the flows that go to peers.
    ///
    /// # Errors
    /// As [`Asking::show`].
    pub fn flows(&self) -> Result<Vec<FlowReading>, Error> {
        self.ask(PATIENCE, Request::Flows)
    }
    /// Returns the frames that cross a port from now on.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such port, and the errors of [`Asking::show`].
    pub fn mirror(&self, port: &str) -> Result<Receiver<Shown>, Error> {
        let shown = self.ask(PATIENCE, |answer| Request::Mirror(port.into(), answer))?;
        shown.ok_or_else(|| Error::Refused(format!("there is no port \"{port}\"")))
    }
    /// Changes the running switch to `config`.
    ///
    /// # Errors
    /// [`Error::Refused`] if it has another number of workers, and the errors of [`Asking::show`].
    pub fn apply(&self, config: Config) -> Result<Done, Error> {
        let workers = config.switch.workers;
        let done =
            self.ask(PATIENCE_FOR_CHANGES, |answer| Request::Apply(Box::new(config), answer))?;
        let message = format!("{workers} workers (`workers`) take a switch that starts anew");
        done.ok_or(Error::Refused(message))
    }
    pub(super) fn order(&self, order: Order) {
        // One that has ended needs none.
        if self.requests.send(Request::Team(order)).is_ok() {
            let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        }
    }
    /// Ends the switch, and leaves its interfaces.
    ///
    /// # Errors
    /// As [`Asking::show`].
    pub fn stop(&self) -> Result<(), Error> {
        self.ask(PATIENCE, Request::Stop)
    }
}

/// Makes the socket, and answers on a thread of its own.
///
/// # Errors
/// [`Error::File`] if the socket cannot be made.
pub fn listen(state: &State, asking: Asking) -> Result<(), Error> {
    let path = state.file("control.sock");
    // Of a process that was killed: whoever gets here holds the lock.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(|e| Error::file(&path, e))?;
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let asking = asking.clone();
            std::thread::spawn(move || {
                let _ = serve(client, &asking);
            });
        }
    });
    Ok(())
}

fn serve(mut client: UnixStream, asking: &Asking) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    Read::by_ref(&mut client).take(REQUEST_MAX).read_to_string(&mut text)?;
    let (verb, body) = text.split_once('\n').unwrap_or((&text, ""));
    let answer = match verb {
        "show" => written(asking.show()),
        "addresses" => written(asking.addresses()),
        "flows" => written(asking.flows()),
        "mirror" => match asking.mirror(body) {
            Ok(shown) => return mirror::write(body, &shown, &client, || is_there(&client)),
            Err(error) => written::<()>(Err(error)),
        },
        "apply" => written(
            Config::parse("config", body)
                .map_err(Error::from)
                .and_then(|config| asking.apply(config)),
        ),
        "stop" => written(asking.stop()),
        other => written::<()>(Err(Error::Refused(format!("no request \"{other}\"")))),
    };
    client.write_all(answer.as_bytes())
}

/// Whether the other end is still open.
fn is_there(client: &UnixStream) -> bool {
    let mut fds = [PollFd::new(client, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && !fds[0].revents().contains(PollFlags::HUP)
}

fn written<T: Serialize>(answer: Result<T, Error>) -> String {
    let answer = match answer {
        Ok(value) => Answer::Ok(value),
        Err(Error::Config(errors)) => Answer::Error(errors.to_string()),
        Err(error) => Answer::Error(error.to_string()),
    };
    serde_json::to_string(&answer).unwrap_or_else(|e| format!("{{\"error\":\"{e}\"}}"))
}

/// Connects to the process that listens at `path`; `None`: there is none.
fn connect(path: &Path) -> Result<Option<UnixStream>, Error> {
    match UnixStream::connect(path) {
        Ok(stream) => Ok(Some(stream)),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(Error::Forbidden(path.into())),
        Err(_) => Ok(None),
    }
}

/// Asks the process of this state folder. Returns `None` if there is none, or if it ended before it
/// answered.
///
/// # Errors
/// [`Error::Refused`] with its reason if it refuses, [`Error::File`] if it does not answer in time
/// or its answer is of another version.
pub fn ask<T: DeserializeOwned>(state: &State, verb: &str, body: &str) -> Result<Option<T>, Error> {
    let path = state.file("control.sock");
    let Some(mut stream) = connect(&path)? else { return Ok(None) };
    let talk = |stream: &mut UnixStream| -> std::io::Result<String> {
        let patience = if verb == "apply" { PATIENCE_FOR_CHANGES } else { PATIENCE };
        stream.set_read_timeout(Some(patience + Duration::from_secs(1)))?;
        stream.write_all(format!("{verb}\n{body}").as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    // A process that is killed takes its connections with it, and those that it has not looked at.
    let is_end =
        |e: &std::io::Error| matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
    let text = match talk(&mut stream) {
        Ok(text) if text.is_empty() => return Ok(None),
        Ok(text) => text,
        Err(e) if is_end(&e) => return Ok(None),
        Err(e) => return Err(Error::file(&path, e)),
    };
    match serde_json::from_str(&text) {
        Ok(Answer::Ok(value)) => Ok(Some(value)),
        Ok(Answer::Error(error)) => Err(Error::Refused(error)),
        Err(e) => Err(Error::file(
            &path,
            format!("the switch's answer was not understood (another version?): {e}"),
        )),
    }
}

/// Writes what crosses a port of the switch of this state folder, as pcapng, until `out` takes no
/// more or the switch ends.
///
/// # Errors
/// [`Error::NotRunning`] if no switch runs, [`Error::Refused`] if it has no such port,
/// [`Error::File`] if it does not answer, [`Error::Kernel`] if `out` cannot be written.
pub fn mirror(state: &State, port: &str, out: &mut dyn Write) -> Result<(), Error> {
    let path = state.file("control.sock");
    let failed = |e: std::io::Error| Error::file(&path, e);
    let mut stream = connect(&path)?.ok_or_else(|| state.absent())?;
    stream.write_all(format!("mirror\n{port}").as_bytes()).map_err(failed)?;
    stream.shutdown(Shutdown::Write).map_err(failed)?;
    let mut room = vec![0; 1 << 17];
    let mut count = stream.read(&mut room).map_err(failed)?;
    // A refusal is JSON, which no capture begins as.
    if room[..count].starts_with(b"{") {
        let mut text = String::from_utf8_lossy(&room[..count]).into_owned();
        stream.read_to_string(&mut text).map_err(failed)?;
        return match serde_json::from_str::<Answer<()>>(&text) {
            Ok(Answer::Error(error)) => Err(Error::Refused(error)),
            _ => {
                Err(Error::file(&path, "the switch's answer was not understood (another version?)"))
            }
        };
    }
    while count > 0 {
        let written = out.write_all(&room[..count]).and_then(|()| out.flush());
        match written {
            Ok(()) => {}
            // The reader has enough.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(e) => return Err(Error::kernel("writing the capture", e)),
        }
        count = stream.read(&mut room).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is killed while it is asked, before it has looked and after.
    #[test]
    fn who_ends_before_it_answers_is_not_there() {
        let state = State::scratch("control");
        state.create().unwrap();
        for reads in [false, true] {
            let _ = std::fs::remove_file(state.file("control.sock"));
            let socket = UnixListener::bind(state.file("control.sock")).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let (mut client, _) = socket.accept().unwrap();
                    if reads {
                        client.read_to_string(&mut String::new()).unwrap();
                    }
                });
                let asked = ask::<()>(&state, "apply", &"name = 1\n".repeat(100));
                assert!(matches!(asked, Ok(None)), "{reads}: {asked:?}");
            });
        }
        assert!(matches!(ask::<()>(&state, "show", ""), Ok(None)), "nobody listens");
        state.erase().unwrap();
    }

    #[test]
    fn state_of_another_user_is_an_error_of_permission() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let state = State::scratch("forbidden");
        state.create().unwrap();
        let _socket = UnixListener::bind(state.file("control.sock")).unwrap();
        let (show, has, mirrored) = std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                // SAFETY: the user by whom files are opened, of this thread alone.
                #[allow(unsafe_code)]
                unsafe {
                    libc::setfsuid(65_534);
                }
                let shown = ask::<()>(&state, "show", "");
                (shown, state.has("config.toml"), mirror(&state, "a", &mut Vec::new()))
            });
            asked.join().unwrap()
        });
        let all = [show.map(|_| ()), has.map(|_| ()), mirrored];
        assert!(all.iter().all(|it| matches!(it, Err(Error::Forbidden(_)))), "{all:?}");
        assert!(all[0].as_ref().unwrap_err().to_string().contains("sudo"));
        state.erase().unwrap();
    }
}
