//! Tests of attachments, from the fixture's source, as its author would write them.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/attaches/src/lib.rs"]
mod attaches;

// `tool!` expects it at the crate root, where a plugin has it and this test does not.
use attaches::__jaato;
use jaato_plugin_testkit::FakeHost;
use jaato_types::service::{ATTACH, AttachRequest};
use jaato_types::{DataPart, ErrorKind, Frame, Output, Result};
use serde_json::json;

jaato_plugin_testkit::conformance!(crate::attaches: tool);

fn call_draw(how: &str) -> Result<Output> {
    FakeHost::new(__jaato::MODULE).call("draw", json!({ "how": how }))
}

#[test]
fn attachments_are_returned_next_to_the_answer_in_order() {
    let output = call_draw("image").unwrap();
    assert_eq!(output.content["read"], true);
    let names: Vec<_> = output.attachments.iter().map(|it| it.name.as_deref()).collect();
    assert_eq!(names, [None, Some("moon.txt")]);
    let types: Vec<_> = output.attachments.iter().map(|it| it.mime_type.as_str()).collect();
    assert_eq!(types, ["image/png", "text/plain"]);
    let left = call_draw("left").unwrap();
    assert_eq!(
        left.attachments,
        [DataPart::blob("image/png", output.attachments[0].blob_id().unwrap())]
    );
    assert_eq!(call_draw("large").unwrap().attachments.len(), 1);
}

#[test]
fn fake_host_refuses_invalid_attachments() {
    for (how, kind, text) in [
        ("lie", ErrorKind::InvalidArguments, "its bytes are `application/octet-stream`"),
        ("storm", ErrorKind::LimitReached, "a tool call has at most 20 attachments"),
        ("gone", ErrorKind::NotFound, "the session has no blob `000"),
        ("path", ErrorKind::NotFound, "the session has no blob `../../../../etc/passwd`"),
    ] {
        let error = call_draw(how).unwrap_err();
        assert_eq!(error.kind, kind, "{how}");
        assert!(error.message.contains(text), "{error}");
    }
    assert_eq!(call_draw("abandoned").unwrap().content["begun"], 16);
}

#[test]
fn attaching_outside_a_tool_call_is_refused() {
    let host = FakeHost::new(__jaato::MODULE);
    let blob = "0".repeat(64);
    let request =
        AttachRequest { mime_type: "image/png".to_owned(), blob, ..AttachRequest::default() };
    // The sdk offers attachments only in tool calls, so this test uses a bare context.
    let request = Frame::write(&request).unwrap();
    let call = host.start_body(move |context| context.service(ATTACH.into(), request.into()));
    let error = call.wait().result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(error.message, "only a tool call can attach: there is no result to attach to");
}
