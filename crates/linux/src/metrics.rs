//! A daemon's metrics for Prometheus: one page, `/metrics`, from a thread of its own.
//!
//! A client may be slow, silent or one of many. Each has [`PATIENCE`] for one request and its
//! answer, and [`REQUEST`] for the request alone. [`CLIENTS`] are served at a time. A further one
//! takes the place of the oldest client that has not sent its request, or of the oldest.
//!
//! Invariants: the server accepts each connection at once, so a client that sends its request waits
//! for two pages at most, whatever other clients do. A page that cannot be made is an answer of
//! 500. Where descriptors run out, the server answers again when there are some.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, spawn_blocking, yield_now};
use tokio::time::{sleep, timeout};

const CLIENTS: usize = 64;
/// How long one may take, and how long its request.
const PATIENCE: Duration = Duration::from_secs(10);
const REQUEST: Duration = Duration::from_secs(2);
/// The longest request; one for a page is a few hundred bytes.
const REQUEST_BYTES: usize = 16 << 10;
/// When to try again after no connection could be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// A page, or why there is none.
type Made = Result<Bytes, String>;

/// Makes pages, one at a time.
struct Pages {
    make: Arc<dyn Fn() -> Result<String, String> + Send + Sync>,
    /// When the last page was begun, and what came of it.
    last: Option<(Instant, Made)>,
}

/// A connection that is being served.
struct Client {
    has_asked: Arc<AtomicBool>,
    task: AbortHandle,
}

/// A metric of a thing: its name, what it is, and its value. A name that ends in `_total` is a
/// counter's, any other a gauge's.
pub(crate) type Metric<T> = (&'static str, &'static str, fn(&T) -> f64);

/// A page of metrics, in Prometheus' text format.
pub(crate) struct Page {
    prefix: &'static str,
    pub text: String,
}

impl Page {
    pub fn new(prefix: &'static str) -> Page {
        Page { prefix, text: String::new() }
    }

    /// Writes the lines before a metric's values.
    pub fn head(&mut self, name: &str, help: &str, kind: &str) {
        let name = format!("{}_{name}", self.prefix);
        self.text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Writes a value, with its labels.
    pub fn value(&mut self, name: &str, labels: &str, value: f64) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        self.text += &format!("{}_{name}{labels} {value}\n", self.prefix);
    }

    /// Writes a metric with all of its values.
    pub fn metric(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (String, f64)>,
    ) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        self.head(name, help, kind);
        values.into_iter().for_each(|(labels, value)| self.value(name, &labels, value));
    }

    /// Writes metrics of things, which have labels.
    pub fn all<T>(&mut self, things: &[(String, &T)], metrics: &[Metric<T>]) {
        for (name, help, value) in metrics {
            let values = things.iter().map(|(labels, of)| (labels.clone(), value(of)));
            self.metric(name, help, values);
        }
    }

    /// As [`Page::all`]; nothing without a thing.
    pub fn some<T>(&mut self, things: &[(String, &T)], metrics: &[Metric<T>]) {
        if !things.is_empty() {
            self.all(things, metrics);
        }
    }
}

/// Several counts of each thing, each with a further label.
pub(crate) fn by<T, const N: usize>(
    things: &[(String, &T)],
    label: &str,
    names: [&str; N],
    counts: fn(&T) -> [u64; N],
) -> Vec<(String, f64)> {
    let of = |(labels, it): &(String, &T)| {
        let all = names.into_iter().zip(counts(it));
        let line = |(name, count)| (format!("{labels},{label}=\"{name}\""), count as f64);
        all.map(line).collect::<Vec<_>>()
    };
    things.iter().flat_map(of).collect()
}

/// Answers at `address` from a thread of its own, as long as the process lives. `page` returns the
/// text, or why there is none.
///
/// # Errors
/// The kernel's reason if it cannot listen there.
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
    let page = std::sync::Mutex::new(page);
    let make = move || page.lock().unwrap_or_else(|poisoned| poisoned.into_inner())();
    let pages = Arc::new(Mutex::new(Pages { make: Arc::new(make), last: None }));
    std::thread::Builder::new()
        .name("metrics".into())
        .spawn(move || runtime.block_on(answer(listener, pages)))?;
    Ok(())
}

async fn answer(listener: std::net::TcpListener, pages: Arc<Mutex<Pages>>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut clients = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                make_room(&mut clients);
                let (pages, has_asked) = (pages.clone(), Arc::new(AtomicBool::new(false)));
                let asked = has_asked.clone();
                let task = tokio::spawn(async move {
                    // A client that has gone away is no concern, nor is one that is too slow.
                    let _ = timeout(PATIENCE, converse(stream, pages, asked)).await;
                });
                clients.push_back(Client { has_asked, task: task.abort_handle() });
                // Its request may be there already: others that come do not take its place then.
                yield_now().await;
            }
            // No descriptors are left, for one.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Ends the oldest client that has not sent its request, or the oldest, if there are too many.
fn make_room(clients: &mut VecDeque<Client>) {
    clients.retain(|client| !client.task.is_finished());
    if clients.len() < CLIENTS {
        return;
    }
    let silent = clients.iter().position(|client| !client.has_asked.load(Ordering::Relaxed));
    if let Some(client) = clients.remove(silent.unwrap_or(0)) {
        client.task.abort();
    }
}

async fn converse(
    stream: TcpStream,
    pages: Arc<Mutex<Pages>>,
    has_asked: Arc<AtomicBool>,
) -> Result<(), hyper::Error> {
    let service = service_fn(move |request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let pages = pages.clone();
        async move { Ok::<_, Infallible>(respond(request.uri().path(), pages).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .max_buf_size(REQUEST_BYTES)
        .keep_alive(false);
    http.serve_connection(TokioIo::new(stream), service).await
}

async fn respond(path: &str, pages: Arc<Mutex<Pages>>) -> Response<Full<Bytes>> {
    let failed = |why: String| (Bytes::from(why + "\n"), StatusCode::INTERNAL_SERVER_ERROR);
    let (text, status) = match path {
        // In a task of its own: a page that is begun ends, though its client is gone.
        "/metrics" => match tokio::spawn(page(pages, Instant::now())).await {
            Ok(Ok(text)) => (text, StatusCode::OK),
            Ok(Err(why)) => failed(why),
            Err(panic) => failed(panic.to_string()),
        },
        _ => (Bytes::from("see /metrics\n"), StatusCode::NOT_FOUND),
    };
    let mut response = Response::new(Full::new(text));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Returns a page that was begun after `asked`. Clients that wait for one share it.
async fn page(pages: Arc<Mutex<Pages>>, asked: Instant) -> Made {
    let mut pages = pages.lock().await;
    if let Some((begun, made)) = &pages.last
        && *begun >= asked
    {
        return made.clone();
    }
    let (begun, make) = (Instant::now(), pages.make.clone());
    let made = spawn_blocking(move || make()).await;
    let made = made.unwrap_or_else(|panic| Err(panic.to_string())).map(Bytes::from);
    pages.last = Some((begun, made.clone()));
    made
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

    /// More than are served at a time: half send nothing, and half send a part of a request.
    #[test]
    fn half_open_clients_do_not_delay_others() {
        let address = start();
        let open = |i: usize| {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(&b"GET /metrics HT"[..i % 2 * 15]).unwrap();
            client
        };
        let half_open: Vec<TcpStream> = (0..400).map(open).collect();
        for _ in 0..10 {
            let start = Instant::now();
            assert!(get(address, "/metrics").starts_with("HTTP/1.1 200"));
            assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        }
        drop(half_open);
    }

    /// Clients that send requests and do not read their answers, again and again.
    #[test]
    fn clients_that_read_nothing_share_pages_and_lose_their_places() {
        static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let address = serve_anywhere(|| {
            MADE.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(50));
            Ok("page\n".repeat(8 << 17))
        });
        let ask = |_| {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
            client
        };
        let deaf: Vec<TcpStream> = (0..300).map(ask).collect();
        let start = Instant::now();
        assert!(get(address, "/metrics").starts_with("HTTP/1.1 200"));
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        let made = MADE.load(Ordering::Relaxed);
        assert!(made < 50, "{made} pages for 301 requests");
        drop(deaf);
    }
}
