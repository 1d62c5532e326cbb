//! The engine that runs containers, asked which one a name means.
//!
//! Docker and Podman answer `GET /containers/NAME/json` at a UNIX socket (Docker Engine API,
//! "Inspect a container"); of the answer the id and whether it runs are read. `DOCKER_HOST` names
//! the socket as it does for `docker`; without it those are tried where the two have theirs.
//!
//! Invariant: an engine that is silent, slow or talks nonsense costs its timeout and gives an
//! error.

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;

const SOCKETS: [&str; 2] = ["/run/docker.sock", "/run/podman/podman.sock"];
/// The time that an engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The bytes that an answer may have: some ten times of what is usual.
const LONGEST: usize = 1 << 20;

/// The part of an answer that is read.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Container {
    id: String,
    state: State,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    running: bool,
}

/// Whether it can be a container's name (the engine's own rule).
fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(inner)
}

/// The sockets to ask at, by `DOCKER_HOST`.
fn sockets(host: Option<&str>) -> Result<Vec<PathBuf>, String> {
    match host.filter(|host| !host.is_empty()) {
        None => Ok(SOCKETS.map(PathBuf::from).to_vec()),
        Some(host) => match host.strip_prefix("unix://") {
            Some(path) => Ok(vec![PathBuf::from(path)]),
            None => Err(format!("DOCKER_HOST is {host:?}: only unix:// is of this host")),
        },
    }
}

/// The id of the running container that is called `name`.
pub fn id_of(name: &str) -> Result<String, String> {
    let host = std::env::var("DOCKER_HOST").ok();
    id_at(name, &sockets(host.as_deref())?)
}

/// The same, of the first engine that answers.
fn id_at(name: &str, sockets: &[PathBuf]) -> Result<String, String> {
    if !is_name(name) {
        return Err(format!("container {name:?}: neither an id of 12 digits or more nor a name"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("container {name:?}: {e}"))?;
    let mut silent = Vec::new();
    for socket in sockets {
        let at = socket.display();
        let asked =
            runtime.block_on(async { tokio::time::timeout(PATIENCE, ask(socket, name)).await });
        match asked {
            Ok(Ok(Some(container))) if container.state.running => return Ok(container.id),
            Ok(Ok(Some(_))) => {
                return Err(format!("container {name:?} does not run, says the engine at {at}"));
            }
            Ok(Ok(None)) => return Err(format!("the engine at {at} knows no container {name:?}")),
            Ok(Err(why)) => silent.push(format!("{at}: {why}")),
            Err(_) => silent.push(format!("{at}: no answer in {} s", PATIENCE.as_secs())),
        }
    }
    let silent = silent.join("; ");
    Err(format!(
        "container {name:?} is no id of 12 digits or more, and no engine can be asked for a name: \
         {silent}"
    ))
}

/// One question; `None`: there is no such container.
async fn ask(socket: &Path, name: &str) -> Result<Option<Container>, String> {
    let stream = UnixStream::connect(socket).await.map_err(|e| e.to_string())?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
    let request = Request::get(format!("/containers/{name}/json")).header("host", "localhost");
    let request = request.body(Empty::<Bytes>::new()).map_err(|e| e.to_string())?;
    // It ends with the sender, or with the runtime; why it failed, the sender is notified.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|e| e.to_string())?;
    match response.status() {
        StatusCode::NOT_FOUND => return Ok(None),
        StatusCode::OK => {}
        status => return Err(format!("it answers {status}")),
    }
    let body =
        Limited::new(response.into_body(), LONGEST).collect().await.map_err(|e| e.to_string())?;
    serde_json::from_slice(&body.to_bytes()).map(Some).map_err(|e| format!("its answer: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    /// An engine that gives every question this answer; what it was asked.
    fn engine(socket: &Path, answer: &'static str) -> std::thread::JoinHandle<String> {
        let listener = UnixListener::bind(socket).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut asked, mut piece) = (Vec::new(), [0; 1024]);
            while !asked.ends_with(b"\r\n\r\n") {
                let n = stream.read(&mut piece).unwrap();
                asked.extend_from_slice(&piece[..n]);
            }
            let _ = stream.write_all(answer.as_bytes());
            String::from_utf8(asked).unwrap()
        })
    }

    #[test]
    fn a_name_is_asked_for() {
        let folder = std::env::temp_dir().join(format!("millpond-engine-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let ask = |case: &str, answer: &'static str| {
            let socket = folder.join(case);
            let asked = engine(&socket, answer);
            let said = id_at("web-1", &[folder.join("absent"), socket]);
            (said, asked.join().unwrap())
        };
        let running = "HTTP/1.1 200 OK\r\nConnection: \
                       close\r\n\r\n{\"Id\":\"0123456789abcdef\",\"Name\":\"/web-1\",\"State\":{\"\
                       Running\":true}}";
        let (said, asked) = ask("running", running);
        assert_eq!(said.as_deref(), Ok("0123456789abcdef"));
        assert!(asked.starts_with("GET /containers/web-1/json HTTP/1.1\r\n"), "{asked}");
        let stopped = "HTTP/1.1 200 OK\r\nConnection: \
                       close\r\n\r\n{\"Id\":\"0123456789abcdef\",\"State\":{\"Running\":false}}";
        let refused = [
            ("stopped", stopped, "does not run"),
            (
                "unknown",
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                "knows no container \"web-1\"",
            ),
            ("broken", "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "it answers 500"),
            ("nonsense", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "its answer: "),
            ("other", "SSH-2.0-OpenSSH_9.2\r\n\r\n", "no engine can be asked"),
            ("silent", "", "no engine can be asked"),
        ];
        for (case, answer, why) in refused {
            let said = ask(case, answer).0.unwrap_err();
            assert!(said.contains(why), "{case}: {said}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_name_is_not_asked_for() {
        for text in ["", "../info", "a b", "-x", "a/json?size=1", "ü"] {
            assert!(id_at(text, &[]).unwrap_err().contains("nor a name"), "{text}");
        }
        assert_eq!(sockets(None).unwrap().len(), 2);
        assert_eq!(
            sockets(Some("unix:///run/user/1000/docker.sock")).unwrap(),
            [PathBuf::from("/run/user/1000/docker.sock")]
        );
        assert!(sockets(Some("tcp://10.0.0.1:2375")).unwrap_err().contains("only unix://"));
    }
}
