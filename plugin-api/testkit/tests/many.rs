//! Tests of a plugin with a hundred tools, from its source: it conforms, and streams.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/many/src/lib.rs"]
mod many;

use std::collections::BTreeSet;

use jaato_plugin_testkit::FakeHost;
use jaato_types::Availability;
use many::__jaato;
use serde_json::json;

jaato_plugin_testkit::conformance!(crate::many: tool; |suite| suite.with_all_examples());

#[test]
fn plugin_describes_a_hundred_tools_and_one_core_tool() {
    let host = FakeHost::new(__jaato::MODULE);
    let tools = &host.description().unwrap().tools;
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((tools.len(), names.len()), (100, 100));
    let core = tools.iter().filter(|tool| tool.availability == Availability::Core);
    assert_eq!(core.map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["stream_lines"]);
}

#[test]
fn each_tool_answers_by_name_and_shares_one_counter() {
    let host = FakeHost::new(__jaato::MODULE);
    for number in 0..99_u64 {
        let output = host.call(&format!("say{number:02}"), json!({ "text": "moon" })).unwrap();
        let expected =
            json!({ "name": format!("Say{number:02}"), "text": "moon", "calls": number + 1 });
        assert_eq!(json!(output.content), expected);
    }
}

#[test]
fn streamed_output_is_emitted_line_by_line_and_kept_whole() {
    let host = FakeHost::new(__jaato::MODULE);
    let instance = host.instance().unwrap();
    let finished = instance.run("stream_lines", json!({ "lines": 5000 }));
    assert_eq!(finished.deltas.len(), 5000);
    let content = finished.result.unwrap().content;
    let whole = content["lines"].as_str().unwrap();
    assert_eq!((content["shown"].as_u64(), whole.lines().count()), (Some(5000), 5000));
    assert_eq!(finished.output, whole.as_bytes());
}
