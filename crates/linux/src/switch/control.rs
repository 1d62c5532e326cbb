//! How the process that moves frames is asked: over a socket in the state folder, by whoever may enter that.
//!
//! A request is a verb, a line end and what belongs to it, up to the end of what the client sends; the answer is JSON.
//!
//! Invariant: whatever is sent there, the process goes on; its frames wait for no client.

use super::config::Config;
use super::error::Error;
use super::run::Done;
use super::show::Reading;
use super::state::State;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of a request.
const REQUEST_MAX: u64 = 1 << 20;

/// What the poll loop can be asked.
pub enum Request {
    /// What it has done.
    Show(Sender<Reading>),
    /// To become another switch.
    Apply(Box<Config>, Sender<Done>),
    /// To end, and leave its interfaces.
    Stop(Sender<()>),
}

/// What is sent back.
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
    /// Both ends: what asks, and what the loop takes.
    pub fn new() -> Result<(Asking, Receiver<Request>, Arc<OwnedFd>), Error> {
        let (requests, taken) = channel();
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let wake = rustix::event::eventfd(0, flags).map_err(|e| Error::kernel("an event to wake the poll loop", e))?;
        let wake = Arc::new(wake);
        Ok((Asking { requests, wake: wake.clone() }, taken, wake))
    }
    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Error> {
        let (answer, answered) = channel();
        let gone = || Error::Refused("the switch has ended".into());
        self.requests.send(request(answer)).map_err(|_| gone())?;
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        answered.recv_timeout(PATIENCE).map_err(|_| gone())
    }
    /// What it has done.
    pub fn show(&self) -> Result<Reading, Error> {
        self.ask(Request::Show)
    }
    /// Becomes another switch.
    pub fn apply(&self, config: Config) -> Result<Done, Error> {
        self.ask(|answer| Request::Apply(Box::new(config), answer))
    }
    /// Ends, and leaves its interfaces.
    pub fn stop(&self) -> Result<(), Error> {
        self.ask(Request::Stop)
    }
}

/// Makes the socket, and answers on a thread of its own.
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
        "apply" => written(Config::parse("config", body).map_err(Error::from).and_then(|config| asking.apply(config))),
        "stop" => written(asking.stop()),
        other => written::<()>(Err(Error::Refused(format!("no request \"{other}\"")))),
    };
    client.write_all(answer.as_bytes())
}

fn written<T: Serialize>(answer: Result<T, Error>) -> String {
    let answer = match answer {
        Ok(value) => Answer::Ok(value),
        Err(Error::Config(errors)) => Answer::Error(errors.to_string()),
        Err(error) => Answer::Error(error.to_string()),
    };
    serde_json::to_string(&answer).unwrap_or_else(|e| format!("{{\"error\":\"{e}\"}}"))
}

/// Asks the process of this state folder; `None`: there is none.
pub fn ask<T: DeserializeOwned>(state: &State, verb: &str, body: &str) -> Result<Option<T>, Error> {
    let path = state.file("control.sock");
    let Ok(mut stream) = UnixStream::connect(&path) else { return Ok(None) };
    let talk = |stream: &mut UnixStream| -> std::io::Result<String> {
        stream.set_read_timeout(Some(PATIENCE + Duration::from_secs(1)))?;
        stream.write_all(format!("{verb}\n{body}").as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = talk(&mut stream).map_err(|e| Error::file(&path, e))?;
    match serde_json::from_str(&text) {
        Ok(Answer::Ok(value)) => Ok(Some(value)),
        Ok(Answer::Error(error)) => Err(Error::Refused(error)),
        Err(e) => Err(Error::file(&path, format!("the switch's answer was not understood (another version?): {e}"))),
    }
}
