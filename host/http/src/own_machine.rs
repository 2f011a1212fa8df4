//! Detects URLs of this machine.

use crate::Url;

/// Returns true if a URL always leads to this machine. Names below `localhost` may lead anywhere,
/// because not every resolver keeps them local.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
