//! A provider of thoughts and images, from its source: it conforms on hosts with and without a
//! place for images.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/paints/src/lib.rs"]
mod paints;

use std::sync::Arc;

use jaato_plugin_testkit::{FakeHost, FakeStream, Reply};
use jaato_types::{
    Data, DataContent, Delta, Error, ErrorKind, Message, Part, Request, RequestOptions,
};
use parking_lot::Mutex;
use serde_json::json;

jaato_plugin_testkit::conformance!(crate::paints: provider);

/// Adds the services that the provider hopes for.
fn with_blobs(host: FakeHost) -> FakeHost {
    let kept: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let readable = Arc::clone(&kept);
    let host = host.with_service("blob.put", move |request| {
        let mut kept = kept.lock();
        kept.push(request.bytes.clone());
        Ok(Reply::Json(json!({ "blob": format!("b-{}", kept.len() - 1) })))
    });
    host.with_service("blob.get", move |request| {
        let number =
            request.json["blob"].as_str().and_then(|id| id.strip_prefix("b-")?.parse().ok());
        let kept = readable.lock();
        let bytes = number.and_then(|number: usize| kept.get(number));
        let none = || Error::new(ErrorKind::NotFound, "no such blob");
        let pieces = bytes.ok_or_else(none)?.chunks(jaato_plugin_testkit::PIECE_BYTES_MAX);
        Ok(Reply::Stream(FakeStream::of(pieces.map(<[u8]>::to_vec))))
    })
}

mod with_a_place_for_images {
    jaato_plugin_testkit::conformance!(crate::paints: provider; |suite| {
        suite.with_host(crate::with_blobs)
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
    let host = with_blobs(FakeHost::new(paints::__jaato::MODULE));
    let prompt = Message::user("paint");
    let first = host.complete(&request(vec![prompt.clone()]));
    let thoughts = first.deltas.iter().filter(|delta| matches!(delta, Delta::Thought { .. }));
    assert_eq!(thoughts.count(), 4);
    let parts = first.result.unwrap().parts;
    let image = |blob: &str| {
        let content = DataContent::blob(blob.to_owned());
        Part::Data(Data { mime_type: "image/x-portable-pixmap".to_owned(), content, ..Data::default() })
    };
    assert_eq!(parts[2..], [image("b-0"), image("b-1")]);
    let again = request(vec![prompt.clone(), Message::model(parts), prompt]);
    let second = host.complete(&again).result.unwrap();
    let text = Message::model(second.parts.clone()).text();
    assert_eq!(text, "I saw 240030 bytes of images and paint 2 more.");
    assert!(
        matches!(&second.parts[0], Part::Thought { text, .. } if text == "I remember my thought.")
    );
}
