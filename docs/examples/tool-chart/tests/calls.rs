//! Tests of the tool on a host in memory: a picture and the numbers as text.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::prelude::{ErrorKind, Value, json};
use jaato_plugin_testkit::FakeHost;

fn arguments(kind: &str, values: &Value) -> Value {
    json!({ "title": "Rain", "kind": kind, "labels": ["May", "June"], "values": values })
}

#[test]
fn chart_is_attached_as_a_picture_and_described_in_text() {
    let host = FakeHost::new(tool_chart::__jaato::MODULE);
    for kind in ["bar", "line"] {
        let output = host.call("draw_chart", arguments(kind, &json!([2.5, -1]))).unwrap();
        let words = "Rain. From left to right, on an axis from -1 to 2.5: May: 2.5, June: -1";
        assert_eq!(json!(output.content), json!({ "chart": words, "has_picture": true }));
        assert_eq!(output.attachments.len(), 1);
        assert_eq!(output.attachments[0].mime_type, "image/png");
    }
}

#[test]
fn invalid_chart_arguments_are_refused() {
    let host = FakeHost::new(tool_chart::__jaato::MODULE);
    for (kind, values) in
        [("bar", json!([1])), ("line", json!([])), ("pie", json!([1, 2])), ("bar", json!(["x", 2]))]
    {
        let refused = host.call("draw_chart", arguments(kind, &values)).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::InvalidArguments, "{kind} {values}");
    }
}
