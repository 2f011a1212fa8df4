//! Tests the plugin on a fake host, with the tiny model as its default.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use crate::support::{GgufQuirks, completion_request, write_model};
use jaato_plugin_sdk::types::{Delta, ErrorKind};
use jaato_plugin_testkit::FakeHost;
use provider_local::catalog::DEFAULT_MODEL;

/// The time limit of a check. Without optimization, the model needs seconds to read a history
/// larger than a frame, and minutes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

jaato_plugin_testkit::conformance!(provider_local: provider; |suite| suite.with_host(prepare_host));

fn prepare_host(host: FakeHost) -> FakeHost {
    static MODEL: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = MODEL.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = write_model(folder.path(), GgufQuirks::default());
        (folder, path)
    });
    host.with_asset(DEFAULT_MODEL, path).with_patience(PATIENCE)
}

fn fake_host() -> FakeHost {
    prepare_host(FakeHost::new(provider_local::__jaato::MODULE))
}

#[test]
fn user_gets_a_notice_while_the_model_loads() {
    let mut request = completion_request("one", &[], 3);
    request.model = DEFAULT_MODEL.to_owned();
    let finished = fake_host().complete(&request);
    assert_eq!(finished.result.unwrap().usage.output_tokens, 3);
    let loading = format!("loading the local model `{DEFAULT_MODEL}`");
    assert!(finished.deltas.contains(&Delta::notice(loading)), "{:?}", finished.deltas);
}

#[test]
fn request_without_a_model_uses_the_default() {
    let mut request = completion_request("one", &[], 3);
    request.model = String::new();
    assert!(fake_host().complete(&request).result.is_ok());
}

#[test]
fn unknown_model_error_comes_from_the_host() {
    let mut request = completion_request("one", &[], 3);
    request.model = "moon".to_owned();
    let error = fake_host().complete(&request).result.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::NotFound | ErrorKind::Unavailable), "{error:?}");
}

#[test]
fn context_size_can_be_reduced_by_a_setting() {
    let host = fake_host().with_config(serde_json::json!({"context_tokens": 20}));
    let mut request = completion_request("one", &[], 3);
    request.model = DEFAULT_MODEL.to_owned();
    assert_eq!(host.complete(&request).result.unwrap_err().kind, ErrorKind::ContextOverflow);
}
