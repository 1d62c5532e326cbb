//! A daemon's numbers for Prometheus: one page, `/metrics`, made anew for each request.
//!
//! Whoever can connect may be slow, silent or many. A connection gets one answer, and has
//! [`PATIENCE`] for all of it; [`CLIENTS`] are served at a time, and others wait in the kernel's
//! queue until one of them ends.
//!
//! Invariant: no client keeps others from an answer for longer than that; a page that cannot be
//! made is an answer of 500 and no more; whatever runs out, the daemon goes on and answers again
//! when there is some.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Connections at a time.
const CLIENTS: usize = 32;
/// How long one may take, and how long its request.
const PATIENCE: Duration = Duration::from_secs(10);
const REQUEST: Duration = Duration::from_secs(3);
/// The longest request; one for a page is a few hundred bytes.
const REQUEST_BYTES: usize = 16 << 10;
/// When to try again after no connection could be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes a page, or says why there is none; one at a time.
type Page = Arc<Mutex<dyn Fn() -> Result<String, String> + Send>>;

/// Answers at `address` from a thread of its own, as long as the process lives. `page` gives the
/// text, or why there is none.
pub fn serve(
    address: SocketAddr,
    page: impl Fn() -> Result<String, String> + Send + 'static,
) -> Result<(), io::Error> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()?;
    std::thread::spawn(move || runtime.block_on(answer(listener, Arc::new(Mutex::new(page)))));
    Ok(())
}

async fn answer(listener: std::net::TcpListener, page: Page) {
    let (Ok(listener), room) = (TcpListener::from_std(listener), Arc::new(Semaphore::new(CLIENTS)))
    else {
        return;
    };
    while let Ok(place) = room.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let page = page.clone();
                tokio::spawn(async move {
                    // A client that has gone away is no concern, nor is one that is too slow.
                    let _ = timeout(PATIENCE, converse(stream, page)).await;
                    drop(place);
                });
            }
            // No descriptors are left, for one: whoever asks waits, and so does this.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// One request, and its answer.
async fn converse(stream: TcpStream, page: Page) -> Result<(), hyper::Error> {
    let service = service_fn(move |request: Request<Incoming>| {
        let page = page.clone();
        async move { Ok::<_, Infallible>(respond(request.uri().path(), page).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .max_buf_size(REQUEST_BYTES)
        .keep_alive(false);
    http.serve_connection(TokioIo::new(stream), service).await
}

async fn respond(path: &str, page: Page) -> Response<Full<Bytes>> {
    let (text, status) = match path {
        "/metrics" => match tokio::task::spawn_blocking(move || make(&page)).await {
            Ok(Ok(text)) => (text, StatusCode::OK),
            Ok(Err(why)) => (format!("{why}\n"), StatusCode::INTERNAL_SERVER_ERROR),
            Err(panic) => (format!("{panic}\n"), StatusCode::INTERNAL_SERVER_ERROR),
        },
        _ => ("see /metrics\n".to_string(), StatusCode::NOT_FOUND),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn make(page: &Page) -> Result<String, String> {
    page.lock().unwrap_or_else(|poisoned| poisoned.into_inner())()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

    /// Serves at an address that nobody else has drawn between its choice and its use.
    fn serve_anywhere(
        page: impl Fn() -> Result<String, String> + Copy + Send + 'static,
    ) -> SocketAddr {
        let draw = |_| {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            serve(free, page).is_ok().then_some(free)
        };
        (0..10).find_map(draw).expect("a free number")
    }

    /// A server with a page of 8 MB, more than buffers hold.
    fn start() -> SocketAddr {
        serve_anywhere(|| Ok("page\n".repeat(8 << 17)))
    }

    fn get(address: SocketAddr, path: &str) -> String {
        let mut to = TcpStream::connect(address).unwrap();
        to.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        to.write_all(format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        to.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn pages_and_their_absence() {
        let address = start();
        let text = get(address, "/metrics");
        assert!(
            text.starts_with("HTTP/1.1 200") && text.ends_with("page\npage\n"),
            "{}",
            &text[..200]
        );
        assert!(get(address, "/").starts_with("HTTP/1.1 404"));
        let address = serve_anywhere(|| Err("no page".into()));
        assert!(get(address, "/metrics").starts_with("HTTP/1.1 500"));
        assert!(serve(address, || Ok(String::new())).is_err(), "it is taken");
    }

    /// One asks again and again and reads nothing, and another gets its page at once.
    #[test]
    fn who_does_not_read_holds_up_nobody() {
        let address = start();
        let mut deaf = TcpStream::connect(address).unwrap();
        deaf.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let requests = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n".repeat(8 << 15);
        let _ = deaf.write_all(requests.as_bytes());
        let start = Instant::now();
        assert!(get(address, "/metrics").starts_with("HTTP/1.1 200"));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }

    /// More than are served at a time, and none of them says anything.
    #[test]
    fn silent_clients_hold_up_others_for_a_while_only() {
        let address = start();
        let silent: Vec<TcpStream> =
            (0..2 * CLIENTS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let start = Instant::now();
        assert!(get(address, "/metrics").starts_with("HTTP/1.1 200"));
        assert!(start.elapsed() < 3 * REQUEST + PATIENCE, "{:?}", start.elapsed());
        drop(silent);
    }
}
