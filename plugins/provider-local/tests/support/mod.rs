//! A tiny model with random weights, written by the tests, and its helpers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::quantized::gguf_file::{self, Value as Gguf};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use jaato_plugin_sdk::types::{CompletionRequest, Message, ToolCall, ToolSpec};
use provider_local::gguf::GgufFile as Header;
use provider_local::local::{CompletionSink, LocalModel};
use provider_local::tokenizer::ModelTokenizer;
use serde_json::{Value, json};

pub const CONTEXT: u32 = 2048;
const HIDDEN: usize = 64;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const FEED: usize = 96;
const LAYERS: usize = 2;
const CONTROL: [&str; 4] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>"];
const MERGES: [&str; 2] = ["a r", "` `"];

/// The deviations of the written file from a valid one.
#[derive(Clone, Copy, Default)]
pub struct GgufQuirks {
    pub architecture: Option<&'static str>,
    pub without_key: Option<&'static str>,
    pub weights: Option<GgmlDType>,
}

/// Writes the model and returns its path.
pub fn write_model(folder: &Path, quirks: GgufQuirks) -> PathBuf {
    let path = folder.join("tiny.gguf");
    let metadata: Vec<(String, Gguf)> = model_metadata(quirks)
        .into_iter()
        .filter(|(key, _)| quirks.without_key != Some(key.as_str()))
        .collect();
    let metadata: Vec<(&str, &Gguf)> =
        metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let tensors = random_tensors(quirks.weights.unwrap_or(GgmlDType::Q8_0));
    let tensors: Vec<(&str, &QTensor)> =
        tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut file = File::create(&path).unwrap();
    gguf_file::write(&mut file, &metadata, &tensors).unwrap();
    assert!(file.metadata().unwrap().len() < 5_000_000);
    path
}

fn model_metadata(quirks: GgufQuirks) -> Vec<(String, Gguf)> {
    let number = |value: usize| Gguf::U32(value as u32);
    let text = |value: &str| Gguf::String(value.to_owned());
    let texts = |values: &[String]| Gguf::Array(values.iter().map(|value| text(value)).collect());
    let (names, kinds) = vocabulary();
    let merges: Vec<String> = MERGES.iter().map(|merge| (*merge).to_owned()).collect();
    [
        ("general.architecture", text(quirks.architecture.unwrap_or("qwen2"))),
        ("qwen2.block_count", number(LAYERS)),
        ("qwen2.embedding_length", number(HIDDEN)),
        ("qwen2.feed_forward_length", number(FEED)),
        ("qwen2.attention.head_count", number(HEADS)),
        ("qwen2.attention.head_count_kv", number(KV_HEADS)),
        ("qwen2.attention.layer_norm_rms_epsilon", Gguf::F32(1e-6)),
        ("qwen2.rope.freq_base", Gguf::F32(10_000.0)),
        ("qwen2.context_length", Gguf::U32(CONTEXT)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("qwen2")),
        ("tokenizer.ggml.tokens", texts(&names)),
        ("tokenizer.ggml.token_type", Gguf::Array(kinds.into_iter().map(Gguf::I32).collect())),
        ("tokenizer.ggml.merges", texts(&merges)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// Returns every byte in GPT-2's spelling, two longer tokens and the control tokens.
fn vocabulary() -> (Vec<String>, Vec<i32>) {
    let mut spare = 256_u32;
    let mut names: Vec<String> = (0..=255_u8)
        .map(|byte| {
            let printable = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
            let code = if printable { u32::from(byte) } else { spare };
            spare += u32::from(!printable);
            char::from_u32(code).unwrap().to_string()
        })
        .collect();
    names.extend(MERGES.iter().map(|merge| merge.replace(' ', "")));
    let mut kinds = vec![1; names.len()];
    names.extend(CONTROL.iter().map(|name| (*name).to_owned()));
    kinds.extend([3; CONTROL.len()]);
    (names, kinds)
}

fn random_tensors(weights: GgmlDType) -> Vec<(String, QTensor)> {
    let mut random = RandomFloats(42);
    let vocabulary = vocabulary().0.len();
    let kv_width = HIDDEN / HEADS * KV_HEADS;
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: &[usize], kind: GgmlDType, centre: f32, spread: f32| {
        let count = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| centre + random.next() * spread).collect();
        let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
        tensors.push((name, QTensor::quantize(&tensor, kind).unwrap()));
    };
    add("token_embd.weight".to_owned(), &[vocabulary, HIDDEN], weights, 0.0, 1.0);
    add("output_norm.weight".to_owned(), &[HIDDEN], GgmlDType::F32, 1.0, 0.1);
    for layer in 0..LAYERS {
        let name = |part: &str| format!("blk.{layer}.{part}");
        for (part, rows, columns) in [
            ("attn_q", HIDDEN, HIDDEN),
            ("attn_k", kv_width, HIDDEN),
            ("attn_v", kv_width, HIDDEN),
            ("attn_output", HIDDEN, HIDDEN),
            ("ffn_gate", FEED, HIDDEN),
            ("ffn_up", FEED, HIDDEN),
            ("ffn_down", HIDDEN, FEED),
        ] {
            add(name(&format!("{part}.weight")), &[rows, columns], weights, 0.0, 0.3);
        }
        for (part, width) in [("attn_q", HIDDEN), ("attn_k", kv_width), ("attn_v", kv_width)] {
            add(name(&format!("{part}.bias")), &[width], GgmlDType::F32, 0.0, 0.2);
        }
        for part in ["attn_norm", "ffn_norm"] {
            add(name(&format!("{part}.weight")), &[HIDDEN], GgmlDType::F32, 1.0, 0.1);
        }
    }
    tensors
}

/// A small generator of numbers between -1 and 1.
pub struct RandomFloats(pub u64);

impl RandomFloats {
    pub fn next(&mut self) -> f32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 40) as f32 / (1 << 23) as f32) - 1.0
    }
}

pub fn load_model(path: &Path) -> LocalModel {
    LocalModel::load_model(path, CONTEXT as usize).unwrap()
}

pub fn load_tokenizer(path: &Path) -> Arc<ModelTokenizer> {
    Arc::new(ModelTokenizer::from_gguf(&Header::open(path).unwrap()).unwrap())
}

pub fn tool_spec(name: &str, parameters: Value) -> ToolSpec {
    serde_json::from_value(json!({
        "name": name,
        "description": "does it",
        "parameters": parameters,
        "examples": [{"phrase": format!("do {name}"), "arguments": {}}],
    }))
    .unwrap()
}

pub fn completion_request(text: &str, tools: &[ToolSpec], tokens_max: u32) -> CompletionRequest {
    let mut request = CompletionRequest::new("tiny", vec![Message::user(text)]);
    request.system = "Be brief.".to_owned();
    request.tools = tools.to_vec();
    request.options.max_output_tokens = Some(tokens_max);
    request
}

/// A sink that keeps everything it receives.
#[derive(Default)]
pub struct RecordingSink {
    pub text: String,
    pub calls: usize,
    pub notices: Vec<String>,
    pub log: Vec<String>,
}

impl CompletionSink for RecordingSink {
    fn send_text(&mut self, text: &str) -> bool {
        self.text.push_str(text);
        true
    }
    fn send_call(&mut self, _call: &ToolCall) {
        self.calls += 1;
    }
    fn show_notice(&mut self, text: String) {
        self.notices.push(text);
    }
    fn log(&mut self, text: String) {
        self.log.push(text);
    }
}
