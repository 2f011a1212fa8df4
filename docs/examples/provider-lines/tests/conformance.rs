//! Runs the conformance tests for plugins and providers, with a server in memory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};

const ANSWER: &str = "{\"message\":{\"content\":\"Hello\"},\"done\":false}\n\
    {\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":3,\"eval_count\":1}\n";

fn with_server(host: FakeHost) -> FakeHost {
    host.with_http(|request| {
        let is_list = request.head.url.ends_with("/api/tags");
        let body = if is_list { r#"{"models":[{"name":"qwen3:8b"}]}"# } else { ANSWER };
        Ok(FakeHttpAnswer::status(200).body(body))
    })
}

jaato_plugin_testkit::conformance!(provider_lines: provider; |suite| suite.with_host(with_server));
