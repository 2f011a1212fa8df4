//! Tests of a provider of thoughts and images, from its source.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/paints/src/lib.rs"]
mod paints;

use jaato_plugin_testkit::FakeHost;
use jaato_types::{CompletionRequest, Delta, Message, Part, RequestOptions};

jaato_plugin_testkit::conformance!(crate::paints: provider);

fn completion_request(messages: Vec<Message>) -> CompletionRequest {
    let options = RequestOptions::default();
    let mut request = CompletionRequest::new("canvas", messages);
    request.options = options;
    request
}

#[test]
fn images_are_stored_as_blobs_and_read_from_history() {
    let host = FakeHost::new(paints::__jaato::MODULE);
    let prompt = Message::user("paint");
    let first = host.complete(&completion_request(vec![prompt.clone()]));
    let thoughts = first.deltas.iter().filter(|delta| matches!(delta, Delta::Thought { .. }));
    assert_eq!(thoughts.count(), 4);
    let parts = first.result.unwrap().parts;
    let images: Vec<&str> = parts[2..].iter().filter_map(blob_id).collect();
    assert_eq!((images.len(), images[0].len(), images[0] == images[1]), (2, 64, false));
    let again = completion_request(vec![prompt.clone(), Message::model(parts), prompt]);
    let second = host.complete(&again).result.unwrap();
    let text = Message::model(second.parts.clone()).text();
    assert_eq!(text, "I saw 240030 bytes of images and paint 2 more.");
    assert!(
        matches!(&second.parts[0], Part::Thought { text, .. } if text == "I remember my thought.")
    );
}

fn blob_id(part: &Part) -> Option<&str> {
    match part {
        Part::Data(data) if data.mime_type == "image/x-portable-pixmap" => data.blob_id(),
        _ => None,
    }
}
