//! Tests of calls on a host in memory, against ports of this machine.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::TcpListener;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_testkit::FakeHost;

#[test]
fn open_port_is_found_and_a_closed_one_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap().port();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let host = FakeHost::new(tool_ports::__jaato::MODULE);
    let asked = json!({ "machine": "127.0.0.1", "ports": [open, closed] });
    let answer = host.create(None).unwrap().call("open_ports", asked).unwrap();
    assert_eq!(answer.content["open"], json!([open]));
}

#[test]
fn too_many_ports_are_refused() {
    let host = FakeHost::new(tool_ports::__jaato::MODULE);
    let ports: Vec<u16> = (1..=33).collect();
    let asked = json!({ "machine": "127.0.0.1", "ports": ports });
    let error = host.create(None).unwrap().call("open_ports", asked).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}
