//! Shared by tests with strict fakes of vendors: a server on loopback that answers like the vendor,
//! and the plugin that uses it.

use jaato_vendors as vendors;

use crate::support::server::{self, Answer, BodyStep, Server};

/// One red pixel.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\
    \xc4\x89\0\0\0\rIDATx\xdac\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x56\xc7\x2f\r\0\0\0\0IEND\xae\
    \x42\x60\x82";

/// Starts a server that answers like a vendor.
pub fn start_vendor_server(
    vendor: impl Fn(&vendors::VendorRequest) -> vendors::VendorAnswer + Send + Sync + 'static,
) -> Server {
    Server::start_with(move |asked| {
        let server::ReceivedRequest { method, path, headers, body } = asked.clone();
        let answered = vendor(&vendors::VendorRequest { method, path, headers, body });
        let empty = Answer::status(answered.status).then(BodyStep::Bytes(answered.body));
        answered.headers.iter().fold(empty, |answer, (name, value)| answer.header(name, value))
    })
}
