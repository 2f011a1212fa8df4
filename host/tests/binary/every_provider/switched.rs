//! Tests switching a conversation between all providers and back: each strict fake accepts what the
//! others produced.
//!
//! All pairs run in this process, on the binary's runtime. A chat of the binary switches through
//! all of them in a ring. The plugins are the real ones.

use std::fs;
use std::sync::Arc;

use jaato_runtime::config::{EnvironmentVariables, Overrides, UserFolders};
use jaato_runtime::session_loop::{Cancel, EventSink, History, UserPrompt};
use jaato_runtime::types::{EventEnvelope, ModelId, Outcome};
use jaato_runtime::{Runtime, SessionOptions, Setup, SetupArguments};
use serde_json::{Value, json};

use super::{AnswerPart, FakeVendor, ModelTurn, PROVIDERS, Provider, unchanged_answer};
use crate::support::House;
use crate::support::openai::SECRET;
use crate::support::server::Server;
use crate::vendors::PNG;

/// Google's placeholder for a signature, for calls that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Discards all events.
struct DiscardingEventSink;

impl EventSink for DiscardingEventSink {
    fn receive_event(&self, _envelope: EventEnvelope) {}
}

/// A provider with its vendor on loopback.
struct ProviderWithVendor {
    provider: &'static Provider,
    vendor: Arc<dyn FakeVendor>,
    server: Server,
}

impl ProviderWithVendor {
    fn new(provider: &'static Provider, turns: Vec<ModelTurn>) -> Self {
        let vendor = provider.fake_vendor(turns);
        let server = provider.serve(&vendor, unchanged_answer);
        Self { provider, vendor, server }
    }

    /// Returns the configuration lines that select the vendor.
    fn config_lines(&self) -> String {
        self.provider.server_config(&self.server)
    }

    /// Continues a conversation with this provider, and returns its history.
    async fn continue_conversation(
        &self,
        house: &House,
        history: History,
        prompt: &str,
    ) -> History {
        let variables = [
            ("HOME", house.home().display().to_string()),
            ("PATH", "/usr/bin:/bin".to_owned()),
            (self.provider.key, SECRET.to_owned()),
        ];
        let variables: EnvironmentVariables =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let model = Some(ModelId::new(self.provider.model));
        let overrides = Overrides { model, ..Overrides::default() };
        let arguments = SetupArguments { overrides, ..SetupArguments::default() };
        let folders = UserFolders::under_root(&house.home());
        let workspace = house.workspace();
        let setup =
            Setup::from_arguments(arguments, house.binary(), folders, variables, &workspace)
                .unwrap();
        let runtime = Runtime::start(setup).await;
        let mut options = SessionOptions::unattended(Arc::new(DiscardingEventSink));
        options.allow_all = true;
        let mut session = runtime.open_session_from(history, options).unwrap();
        // The session's store identifies the image by its bytes, regardless of who stored it.
        let files = [house.workspace().join("moon.png")];
        let prompt = UserPrompt::from(prompt.to_owned());
        let prompt = runtime.attach_files(session.id(), prompt, &files).await.unwrap();
        let report = session.run_turn(prompt, &Cancel::new()).await;
        let name = self.provider.name;
        assert_eq!(report.outcome, Outcome::Done, "{name}: {:?}", report.error);
        let history = session.history().clone();
        runtime.close_session(session.id()).await;
        runtime.close().await;
        history
    }
}

/// Returns thoughts, a text, parallel calls of which one fails, and an answer after them.
pub fn first_turns() -> Vec<ModelTurn> {
    let look = |aspect: &str| AnswerPart::call(json!({ "aspect": aspect }));
    vec![
        ModelTurn::Says(vec![
            AnswerPart::Thought("I should look."),
            AnswerPart::Text("I look."),
            look("os"),
            look("moon"),
        ]),
        ModelTurn::Says(vec![AnswerPart::Thought("again"), look("cwd")]),
        ModelTurn::Says(vec![AnswerPart::Thought("so"), AnswerPart::Text("It is Linux.")]),
        ModelTurn::Says(vec![AnswerPart::Thought("and back"), AnswerPart::Text("We met before.")]),
    ]
}

fn continued_turns() -> Vec<ModelTurn> {
    let look = AnswerPart::call(json!({ "aspect": "shell" }));
    vec![
        ModelTurn::Says(vec![AnswerPart::Thought("what was that?"), look]),
        ModelTurn::Says(vec![AnswerPart::Text("I will continue.")]),
    ]
}

/// Lists the parts of a request that only their maker understands: thoughts, and signatures of
/// vendors.
pub fn opaque_parts(request: &Value) -> Vec<String> {
    match request {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| match (key.as_str(), value) {
                (
                    "signature" | "thoughtSignature" | "thinking" | "encrypted_content",
                    Value::String(text),
                ) => {
                    vec![text.clone()]
                }
                _ => opaque_parts(value),
            })
            .collect(),
        Value::Array(all) => all.iter().flat_map(opaque_parts).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn conversation_of_one_provider_continues_with_every_other_and_back() {
    let house = crate::house!();
    for provider in &PROVIDERS {
        crate::support::ship_provider(&house, provider.library);
    }
    let folders = UserFolders::under_root(&house.home());
    let config = folders.config_folder().unwrap();
    fs::create_dir_all(config).unwrap();
    fs::write(house.workspace().join("moon.png"), PNG).unwrap();
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for maker in &PROVIDERS {
        for other in PROVIDERS.iter().filter(|other| other.name != maker.name) {
            let (maker, other) = (
                ProviderWithVendor::new(maker, first_turns()),
                ProviderWithVendor::new(other, continued_turns()),
            );
            fs::write(config.join("config.toml"), maker.config_lines() + &other.config_lines())
                .unwrap();
            executor.block_on(async {
                let history =
                    maker.continue_conversation(&house, History::new(), "what is this?").await;
                let history = other.continue_conversation(&house, history, "and you?").await;
                maker.continue_conversation(&house, history, "and you again?").await;
            });
            let pair = format!("{} and {}", maker.provider.name, other.provider.name);
            let (began, went_on) =
                (maker.vendor.accepted_requests(), other.vendor.accepted_requests());
            assert_eq!((began.len(), went_on.len()), (4, 2), "{pair}");
            // The other provider receives the visible conversation, but no data that only the maker
            // understands.
            let own = opaque_parts(&began[2]);
            assert_eq!(own.len() >= 2, maker.provider.gives_signed, "{pair}: {own:?}");
            let seen = went_on[0].to_string();
            for said in ["I look.", "It is Linux.", "iVBORw0KGgo"] {
                assert!(seen.contains(said), "{pair}: {said}: {seen}");
            }
            for text in own.iter().map(String::as_str).chain(["I should look."]) {
                assert!(!seen.contains(text), "{pair}: {text}: {seen}");
            }
            // When switched back, the maker gets all its own data, and none of the other's
            // thoughts.
            let seen = began[3].to_string();
            for text in own.iter().map(String::as_str).chain(["I will continue."]) {
                assert!(seen.contains(text), "{pair}: {text}: {seen}");
            }
            assert!(!seen.contains("what was that?"), "{pair}: {seen}");
        }
    }
}

#[test]
fn user_can_switch_a_chat_to_another_provider_and_back() {
    let next = PROVIDERS.iter().cycle().skip(1);
    for (maker, other) in PROVIDERS.iter().zip(next) {
        let Some(house) = maker.new_house() else { return };
        if other.library != maker.library {
            crate::support::ship_provider(&house, other.library);
        }
        let pair = format!("{} and {}", maker.name, other.name);
        let (maker, other) = (
            ProviderWithVendor::new(maker, first_turns()),
            ProviderWithVendor::new(other, continued_turns()),
        );
        house.configure_more(&(maker.config_lines() + &other.config_lines()));
        let (first, second) = (maker.provider, other.provider);
        let input = format!(
            "what is this?\n/model {}\nand you?\n/model {}\nand you again?\n",
            second.model, first.model
        );
        let command = first.command(&house, &["chat", "--yes", "--model", first.model]);
        let output = command.variable(second.key, SECRET).input(&*input).run().code(0);
        for said in ["It is Linux.", "I will continue.", "We met before."] {
            assert!(output.stdout.contains(said), "{pair}: {output}");
        }
        for party in [&maker, &other] {
            let notice = format!("the model is now {}", party.provider.model);
            assert!(output.stderr.contains(&notice), "{pair}: {output}");
        }
        let (began, went_on) = (maker.vendor.accepted_requests(), other.vendor.accepted_requests());
        assert_eq!((began.len(), went_on.len()), (4, 2), "{pair}: {output}");
        let seen = [&went_on[0], &began[3]].map(Value::to_string);
        for (seen, said) in seen.iter().zip(["It is Linux.", "I will continue."]) {
            assert!(seen.contains(said), "{pair}: {said}: {seen}");
            // Both switches are cuts, because a signature covers a beginning that has changed.
            let all = [opaque_parts(&began[2]), opaque_parts(&went_on[1])].concat();
            for text in all.iter().filter(|text| *text != NO_SIGNATURE) {
                assert!(!seen.contains(&json!(text).to_string()), "{pair}: {text}: {seen}");
            }
        }
    }
}
