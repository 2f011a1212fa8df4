//! Output that a tool streams: the file has every byte, the model gets head and tail.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::Cancel;
use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_types::service::OutputWrite;
use jaato_types::{Event, Output, ToolResult};
use serde_json::{Value, json};

/// The streamed keys and pieces.
type OutputPieces = Vec<(&'static str, Vec<u8>)>;

/// Creates a tool that streams these pieces and returns a code.
fn streaming_tool(pieces: OutputPieces) -> ScriptedTool {
    ScriptedTool::new("prints", move |_, scope| {
        let pieces = pieces.clone();
        async move {
            let streamed = scope.streamed.unwrap();
            for (key, piece) in pieces {
                let write = OutputWrite { key: key.to_owned(), live: true };
                streamed.push(&write, &piece).await?;
            }
            Ok(Output::json(json!({ "stdout": "", "stderr": "", "returncode": 0 })))
        }
    })
}

async fn run_to_result(stage: &TestStage) -> ToolResult {
    stage
        .provider
        .add_answer([ScriptedProviderAction::call("0", "prints", json!({}))])
        .add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    session.run_turn("go", &Cancel::new()).await;
    let requests = stage.provider.requests();
    let result = requests[1].messages[2].tool_results().next().unwrap().clone();
    let bytes = Value::Object(result.content.clone()).to_string().len();
    assert!(bytes <= 16 * 1024, "{bytes}");
    result
}

/// Returns the result's content, and the files.
async fn shown_output(pieces: OutputPieces) -> (Value, Vec<(String, Vec<u8>)>) {
    let stage = TestStage::new([streaming_tool(pieces)]);
    let result = run_to_result(&stage).await;
    (Value::Object(result.content), stage.outputs.files())
}

fn bytes_of_frame() -> usize {
    json!({ "stdout": "", "stderr": "", "returncode": 0 }).to_string().len()
}

#[tokio::test(start_paused = true)]
async fn streamed_text_one_byte_over_the_limit_is_truncated() {
    let fits = vec![b'x'; 16 * 1024 - bytes_of_frame()];
    let (content, files) = shown_output(vec![("stdout", fits.clone())]).await;
    assert_eq!(content["stdout"].as_str().unwrap().len(), fits.len());
    assert_eq!((content.get("output_file"), files.len()), (None, 0));
    let long = [&fits[..], b"y"].concat();
    let (content, files) = shown_output(vec![("stdout", fits), ("stdout", b"y".to_vec())]).await;
    assert_eq!(files, [("/outputs/0-output".to_owned(), long.clone())]);
    assert_eq!((&content["output_file"], &content["returncode"]), (&json!(files[0].0), &json!(0)));
    let text = content["stdout"].as_str().unwrap();
    let (head, rest) = text.split_once("\n[… ").unwrap();
    let (note, tail) = rest.split_once(" …]\n").unwrap();
    let left_out = long.len() - head.len() - tail.len();
    assert_eq!(note, format!("{left_out} bytes left out; the whole output: /outputs/0-output"));
    assert!(tail.ends_with("xy"), "{tail}");
}

#[tokio::test(start_paused = true)]
async fn two_streamed_texts_share_the_limit_and_one_file() {
    let long = |text: &str| text.repeat(10_000).into_bytes();
    let pieces = vec![
        ("stdout", long("out\n")),
        ("stderr", b"bad\n".to_vec()),
        ("stdout", b"last\n".to_vec()),
    ];
    let all: Vec<u8> = pieces.iter().flat_map(|(_, piece)| piece.clone()).collect();
    let (content, files) = shown_output(pieces).await;
    assert_eq!((content["stderr"].as_str(), files[0].1 == all), (Some("bad\n"), true));
    let stdout = content["stdout"].as_str().unwrap();
    assert!(stdout.len() > 11_000 && stdout.ends_with("out\nlast\n"), "{stdout}");
    let (content, _) = shown_output(vec![("stdout", long("o")), ("stderr", long("e"))]).await;
    let bytes = ["stdout", "stderr"].map(|key| content[key].as_str().unwrap().len());
    assert!(bytes[0].abs_diff(bytes[1]) < 2 && bytes[0] > 7_500, "{bytes:?}");
}

#[tokio::test(start_paused = true)]
async fn model_sees_output_as_displayed_and_the_file_keeps_all_bytes() {
    let text = |printed: &[u8]| {
        let pieces = printed.chunks(1).map(|byte| ("stdout", byte.to_vec())).collect();
        async move { shown_output(pieces).await.0["stdout"].clone() }
    };
    assert_eq!(text(b"\x1b[31mred\x1b[0m\r\n10 %\r\x1b[K20 %\r").await, "red\n20 %");
    assert_eq!(text(b"red\r\x1b[m\nnext").await, "red\nnext");
    assert_eq!(text(b"\xc3\xb6 \xff").await, "ö \u{fffd}");
    let progress: Vec<u8> = (0..20_000).flat_map(|n| format!("{n}\r").into_bytes()).collect();
    let (content, files) = shown_output(vec![("stdout", progress.clone())]).await;
    assert_eq!((content["stdout"].as_str(), content.get("output_file")), (Some("19999"), None));
    assert!(progress.starts_with(&files[0].1), "more than a result may have was printed");
    let noise = vec![0xff; 300_000];
    let (content, files) = shown_output(vec![("stdout", noise.clone())]).await;
    assert!(content["stdout"].as_str().unwrap().starts_with("\u{fffd}\u{fffd}"));
    assert_eq!(files[0].1, noise);
}

#[tokio::test(start_paused = true)]
async fn full_output_file_is_reported_and_the_call_continues() {
    let pieces = || (0..100).map(|_| ("stdout", vec![b'x'; 10_000])).collect();
    let check = async |bytes_max: u64, expected: &str| {
        let stage = TestStage::new([streaming_tool(pieces())]);
        stage.outputs.limit_file_size(bytes_max);
        let result = run_to_result(&stage).await;
        assert_eq!(result.content["returncode"], 0);
        let stdout = result.content["stdout"].as_str().unwrap();
        assert!(stdout.contains(expected), "{stdout}");
    };
    check(0, "; the whole output is not kept: it is too much …]").await;
    let begun =
        "; only the first 20000 bytes of the output are in /outputs/0-output: it is too much";
    check(50_000, begun).await;
}

#[tokio::test(start_paused = true)]
async fn streamed_output_is_shown_to_the_user_up_to_a_rate_limit() {
    let stage = TestStage::new([streaming_tool(vec![("stdout", b"one\n".to_vec()); 3])]);
    run_to_result(&stage).await;
    let texts = |stage: &TestStage| {
        let events = stage.events.events();
        let texts = events.into_iter().filter_map(|event| match event {
            Event::ToolOutput { text, .. } => Some(text),
            _ => None,
        });
        texts.collect::<Vec<_>>()
    };
    assert_eq!(texts(&stage), ["one\n"; 3]);
    let stage = TestStage::new([streaming_tool(vec![("stdout", vec![b'x'; 60_000]); 100])]);
    run_to_result(&stage).await;
    let bytes: usize = texts(&stage).iter().map(String::len).sum();
    assert!(bytes < 1_000_000, "{bytes}");
    assert!(texts(&stage).last().unwrap().ends_with(" bytes not shown …]\n"));
}

#[tokio::test(start_paused = true)]
async fn call_streams_at_most_16_texts() {
    let stage = TestStage::new([ScriptedTool::new("prints", |_, scope| async move {
        let streamed = scope.streamed.unwrap();
        for number in 0..17 {
            let write = OutputWrite { key: format!("text{number}"), live: false };
            streamed.push(&write, b"x").await?;
        }
        Ok(Output::default())
    })]);
    let result = run_to_result(&stage).await;
    assert_eq!(result.content["error"]["message"], "a call streams at most 16 texts");
}

#[tokio::test(start_paused = true)]
async fn key_of_a_streamed_text_has_a_limit() {
    let pushed = async |bytes: usize| {
        let stage = TestStage::new([ScriptedTool::new("prints", move |_, scope| async move {
            let write = OutputWrite { key: "k".repeat(bytes), live: false };
            scope.streamed.unwrap().push(&write, b"x").await?;
            Ok(Output::default())
        })]);
        Value::Object(run_to_result(&stage).await.content)
    };
    assert_eq!(pushed(64).await, json!({ "k".repeat(64): "x" }));
    assert_eq!(pushed(65).await["error"]["kind"], "invalid_arguments");
}

#[tokio::test(start_paused = true)]
async fn streamed_text_keeps_its_share_next_to_a_long_returned_text() {
    let stage = TestStage::new([ScriptedTool::new("prints", |_, scope| async move {
        let write = OutputWrite { key: "stdout".to_owned(), live: false };
        scope.streamed.unwrap().push(&write, &[b'o'; 100_000]).await?;
        Ok(Output::json(json!({ "log": "l".repeat(100_000) })))
    })]);
    let result = run_to_result(&stage).await;
    let bytes = ["stdout", "log"].map(|key| result.content[key].as_str().unwrap().len());
    assert!(bytes.iter().all(|bytes| (7_500..8_500).contains(bytes)), "{bytes:?}");
    let stdout = result.content["stdout"].as_str().unwrap();
    assert!(stdout.contains("bytes left out; the whole output: /outputs/0-output …]"), "{stdout}");
    let sizes: Vec<_> = stage.outputs.files().iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(sizes, [100_000, 100_000]);
}
