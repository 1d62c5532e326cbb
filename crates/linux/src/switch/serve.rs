//! `millpond switch serve`: the process that moves frames, in the foreground.
//!
//! It runs what was applied last. If another process does, that one is told to end and this one takes its place; interfaces stay, and what was on its
//! way is sent again by its senders. So it fits a service of systemd, whose restarts and upgrades lose no connection.
//!
//! Invariant: one process a state folder; its end, however it comes, leaves interfaces and connections.

use super::apply;
use super::config::Config;
use super::control::{self, Asking};
use super::error::Error;
use super::run::Switch;
use super::state::State;
use std::net::SocketAddr;

/// Serves until it is told to stop, or killed. `config`: in the place of what was applied last. `say` is told what happens.
pub fn serve(
    state: &State,
    config: Option<Config>,
    metrics: Option<SocketAddr>,
    say: &dyn Fn(&str),
) -> Result<(), Error> {
    let applied = match config {
        Some(config) => {
            state.write("config.toml", &config.to_text())?;
            config
        }
        None => apply::installed(state)?.unwrap_or_default(),
    };
    let _lock = loop {
        match state.lock_frames()? {
            Some(lock) => break lock,
            None => {
                let pid = state.process();
                // Else somebody just looked whether there is one.
                if apply::stop(state)?
                    && let Some(pid) = pid
                {
                    say(&format!("took over from process {pid}"));
                }
            }
        }
    };
    let (asking, requests, wake) = Asking::new()?;
    if let Some(address) = metrics {
        let server =
            tiny_http::Server::http(address).map_err(|e| Error::kernel(format!("listening on {address}"), e))?;
        let asking = asking.clone();
        std::thread::spawn(move || answer(&server, &asking));
        say(&format!("metrics at http://{address}/metrics"));
    }
    let mut switch = Switch::new(state.clone(), applied, requests, wake);
    control::listen(state, asking)?;
    switch.run()
}

fn answer(server: &tiny_http::Server, asking: &Asking) {
    for request in server.incoming_requests() {
        let plain = |text: String, status: u16| tiny_http::Response::from_string(text).with_status_code(status);
        let response = match request.url() {
            "/metrics" => match asking.show() {
                Ok(reading) => plain(reading.prometheus(), 200),
                Err(error) => plain(format!("{error}\n"), 500),
            },
            _ => plain("see /metrics\n".into(), 404),
        };
        // A client that has gone away is no concern.
        let _ = request.respond(response);
    }
}
