//! Both ends over a small pipe.

use super::*;
use millpond_scenario::transport::DctcpParams;

pub(super) fn config_of(kind: TransportKind, change: impl FnOnce(&mut TransportParams)) -> Config {
    let mut params = TransportParams::default();
    change(&mut params);
    Config::new(&params, &kind, 1500)
}

/// DCTCP with these common parameters.
pub(super) fn config<R>(change: impl FnOnce(&mut TransportParams) -> R) -> Config {
    config_of(TransportKind::Dctcp(DctcpParams::default()), |p| {
        change(p);
    })
}
