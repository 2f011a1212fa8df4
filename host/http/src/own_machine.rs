//! Which URLs lead to this machine.

use crate::Url;

/// Tells whether a URL leads to this machine, and nowhere else. Names below `localhost` may lead
/// anywhere: not every resolver keeps them here.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
