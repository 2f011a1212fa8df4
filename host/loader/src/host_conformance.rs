//! The loader's contexts under the testkit's checks of a host: the fake host passes the very same.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_plugin_testkit::host_conformance::{TestReply, host_conformance, test_service};
use jaato_types::{Error, ErrorKind, Result};

use crate::testing::LoaderHost;
use crate::{Caller, Served, Services};

/// The services that the checks ask for.
struct TestServices;

impl Services for TestServices {
    fn call(
        &self,
        _caller: Caller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<Served>> {
        let served = match test_service(operation, &frame) {
            TestReply::Frame(frame) => Ok(Served::Frame(frame)),
            TestReply::Never => return Box::pin(std::future::pending()),
            TestReply::Stream { pieces, ends } => {
                let pieces = futures_util::stream::iter(pieces.into_iter().map(Ok));
                let open = futures_util::stream::poll_fn(move |_| match ends {
                    true => std::task::Poll::Ready(None),
                    false => std::task::Poll::Pending,
                });
                let stream = futures_util::StreamExt::chain(pieces, open);
                Ok(Served::Stream(Box::new(stream)))
            }
            TestReply::Head { head, piece } => {
                let pieces = futures_util::stream::iter([Ok(piece)]);
                Ok(Served::StreamWith(head, Box::new(pieces)))
            }
            TestReply::Panic => panic!("the service `{operation}` panics, as the check wants it"),
            TestReply::Unknown => {
                let text = format!("this host has no service `{operation}`");
                Err(Error::new(ErrorKind::UnknownOperation, text))
            }
        };
        Box::pin(std::future::ready(served))
    }
}

#[test]
fn the_real_host_passes_the_checks_that_the_fake_one_passes() {
    host_conformance(&LoaderHost::new(|| Arc::new(TestServices)));
}
