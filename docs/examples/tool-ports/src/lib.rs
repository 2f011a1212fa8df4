//! `tool-ports`: which TCP ports of a machine accept a connection.
//!
//! Shows how a plugin uses a library that needs tokio.
#![forbid(unsafe_code)]

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The most ports of one call. More would look like an attack.
pub const PORTS_MAX: usize = 32;

/// How long a port may take to answer.
const PORT_MS_MAX: u64 = 2_000;

/// Checks which TCP ports of a machine accept a connection. Sends nothing. Returns the open ports.
#[tool_fn(read_only, idempotent, example("is a web server running here?", ports = [1], machine = "127.0.0.1"))]
async fn open_ports(
    _cx: &Cx,
    /// The machine: a name or an address.
    machine: String,
    /// The ports, at most 32.
    ports: Vec<u16>,
) -> Result<Output> {
    if ports.len() > PORTS_MAX {
        let text = format!("{} ports are too many: at most {PORTS_MAX}", ports.len());
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    // Without this, `TcpStream` and `timeout` panic: the host's executor is not tokio.
    let open =
        jaato_plugin_sdk::tokio::run(async move { Ok(find_open_ports(machine, ports).await) });
    Ok(Output::json(json!({ "open": open.await? })))
}

/// Tries all ports at once. Ends with all of its connections when it is dropped.
async fn find_open_ports(machine: String, ports: Vec<u16>) -> Vec<u16> {
    let mut tries = JoinSet::new();
    for port in ports {
        let machine = machine.clone();
        tries.spawn(async move {
            let connected = TcpStream::connect((machine.as_str(), port));
            let answer = timeout(Duration::from_millis(PORT_MS_MAX), connected).await;
            matches!(answer, Ok(Ok(_))).then_some(port)
        });
    }
    let mut open: Vec<u16> = tries.join_all().await.into_iter().flatten().collect();
    open.sort_unstable();
    open
}

export_plugin! { state: (), tools }
