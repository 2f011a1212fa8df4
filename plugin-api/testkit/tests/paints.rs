//! A provider of thoughts and images, from its source: it conforms on hosts with and without a
//! place for images.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/paints/src/lib.rs"]
mod paints;

use jaato_plugin_testkit::{FakeHost, ServiceRequest};
use jaato_types::service::{BLOB_GET, BLOB_PUT};
use jaato_types::{Delta, Error, ErrorKind, Message, Part, Request, RequestOptions};

jaato_plugin_testkit::conformance!(crate::paints: provider);

/// Takes away the services that the provider hopes for.
fn without_blobs(host: FakeHost) -> FakeHost {
    let unknown = |request: &ServiceRequest| {
        let text = format!("this host has no service `{}`", request.operation);
        Err(Error::new(ErrorKind::UnknownOperation, text))
    };
    host.with_service(BLOB_PUT, unknown).with_service(BLOB_GET, unknown)
}

mod without_a_place_for_images {
    jaato_plugin_testkit::conformance!(crate::paints: provider; |suite| {
        suite.with_host(crate::without_blobs)
    });
}

fn request(messages: Vec<Message>) -> Request {
    let options = RequestOptions::default();
    let mut request = Request::new("canvas", messages);
    request.options = options;
    request
}

#[test]
fn images_are_put_beside_the_history_and_read_from_there_again() {
    let host = FakeHost::new(paints::__jaato::MODULE);
    let prompt = Message::user("paint");
    let first = host.complete(&request(vec![prompt.clone()]));
    let thoughts = first.deltas.iter().filter(|delta| matches!(delta, Delta::Thought { .. }));
    assert_eq!(thoughts.count(), 4);
    let parts = first.result.unwrap().parts;
    let images: Vec<&str> = parts[2..].iter().filter_map(blob_of).collect();
    assert_eq!((images.len(), images[0].len(), images[0] == images[1]), (2, 64, false));
    let again = request(vec![prompt.clone(), Message::model(parts), prompt]);
    let second = host.complete(&again).result.unwrap();
    let text = Message::model(second.parts.clone()).text();
    assert_eq!(text, "I saw 240030 bytes of images and paint 2 more.");
    assert!(
        matches!(&second.parts[0], Part::Thought { text, .. } if text == "I remember my thought.")
    );
}

fn blob_of(part: &Part) -> Option<&str> {
    match part {
        Part::Data(data) if data.mime_type == "image/x-portable-pixmap" => data.blob_id(),
        _ => None,
    }
}

#[test]
fn a_host_without_a_place_for_images_is_told_in_words() {
    let host = without_blobs(FakeHost::new(paints::__jaato::MODULE));
    let parts = host.complete(&request(vec![Message::user("paint")])).result.unwrap().parts;
    let text = Message::model(parts).text();
    assert!(text.ends_with("[image 2: this host keeps no images]"), "{text}");
}
