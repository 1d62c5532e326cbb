//! A daemon's numbers for Prometheus: one page, `/metrics`, made anew for each request.
//!
//! Invariant: a page that cannot be made is an answer of 500 and no more; the daemon goes on.

use std::io;
use std::net::SocketAddr;

/// Answers at `address` from a thread of its own, as long as the process lives. `page` gives the text, or why there is none.
pub fn serve(address: SocketAddr, page: impl Fn() -> Result<String, String> + Send + 'static) -> Result<(), io::Error> {
    let server = tiny_http::Server::http(address).map_err(io::Error::other)?;
    std::thread::spawn(move || {
        for request in server.incoming_requests() {
            let (text, status) = match request.url() {
                "/metrics" => page().map_or_else(|why| (format!("{why}\n"), 500), |text| (text, 200)),
                _ => ("see /metrics\n".to_string(), 404),
            };
            // A client that has gone away is no concern.
            let _ = request.respond(tiny_http::Response::from_string(text).with_status_code(status));
        }
    });
    Ok(())
}
