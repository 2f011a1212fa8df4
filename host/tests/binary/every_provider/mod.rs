//! One suite for all providers that ship with jaato, each with a strict fake of its vendor. A new
//! provider is a row of [`PROVIDERS`].

mod clients;
mod conversations;
mod faults;
mod foreign_tools;
mod full_check;
mod images;
mod inference_server;
mod outside_server;
mod overflow;
mod resumed;
mod switched;

use std::sync::Arc;

use jaato_vendors::{
    FakeVendor, VendorAnswer, VendorRequest, anthropic, github, google, ollama, openai,
};
use serde_json::{Value, json};

use crate::support::openai::SECRET;
use crate::support::server::{self, Answer, BodyStep, Server};
use crate::support::{Command, House};

/// A provider, and how its vendor is faked.
pub struct Provider {
    /// The name before the slash.
    name: &'static str,
    library: &'static str,
    /// The section of its settings in a configuration.
    section: &'static str,
    /// A model that thinks, calls tools and sees images.
    model: &'static str,
    /// The variable of the key.
    key: &'static str,
    /// The header of the key and its prefix, empty if a base URL from a variable gets no key.
    key_header: (&'static str, &'static str),
    /// The variable that selects another server.
    variable: &'static str,
    /// The path of a base URL.
    root: &'static str,
    /// The end of a completion's path, without its query.
    path: &'static str,
    /// More settings, for a server that is not the vendor's own.
    settings: &'static str,
    /// Whether the vendor returns data that only goes back to itself.
    gives_signed: bool,
    /// Maximum tokens of a request that are not read from the vendor's cache, if the vendor reports
    /// it.
    uncached_tokens_max: Option<u64>,
    vendor: fn(VendorScript) -> Arc<dyn FakeVendor>,
}

/// Every provider. OpenAI is present with Responses, and with chat completions under another name.
const PROVIDERS: [Provider; 6] = [
    Provider {
        name: "anthropic",
        library: "provider_anthropic",
        section: "plugins.provider-anthropic",
        model: "anthropic/claude-opus-5-5",
        key: "ANTHROPIC_API_KEY",
        key_header: ("x-api-key", ""),
        variable: "ANTHROPIC_BASE_URL",
        root: "",
        path: "/v1/messages",
        settings: "",
        gives_signed: true,
        uncached_tokens_max: Some(0),
        vendor: |script| Arc::new(anthropic_vendor(script)),
    },
    Provider {
        name: "google",
        library: "provider_google_genai",
        section: "plugins.provider-google-genai",
        model: "google/gemini-4-argon",
        key: "GOOGLE_API_KEY",
        key_header: ("x-goog-api-key", ""),
        variable: "GOOGLE_GEMINI_BASE_URL",
        root: "",
        path: ":streamGenerateContent",
        settings: "",
        gives_signed: true,
        uncached_tokens_max: Some(1),
        vendor: |script| Arc::new(google_vendor(script)),
    },
    Provider {
        name: "ollama",
        library: "provider_ollama",
        section: "plugins.provider-ollama",
        model: "ollama/qwen3-vl:8b",
        key: "OLLAMA_API_KEY",
        key_header: ("", ""),
        variable: "OLLAMA_HOST",
        root: "",
        path: "/api/chat",
        settings: "",
        gives_signed: true,
        uncached_tokens_max: None,
        vendor: |script| Arc::new(ollama_vendor(script)),
    },
    Provider {
        name: "openai",
        library: "provider_openai",
        section: "plugins.provider-openai",
        model: "openai/gpt-5.2",
        key: "OPENAI_API_KEY",
        key_header: ("authorization", "Bearer "),
        variable: "OPENAI_BASE_URL",
        root: "/v1",
        path: "/v1/responses",
        settings: "api = \"responses\"\ndialect = \"openai\"\n",
        gives_signed: true,
        uncached_tokens_max: Some(130),
        vendor: |script| Arc::new(openai_vendor(script)),
    },
    Provider {
        name: "openai-chat",
        library: "provider_openai",
        section: "providers.openai-chat",
        model: "openai-chat/gpt-5.2",
        key: "CHAT_API_KEY",
        key_header: ("authorization", "Bearer "),
        variable: "",
        root: "/v1",
        path: "/v1/chat/completions",
        settings: "plugin = \"openai\"\napi_key_env = \"CHAT_API_KEY\"\napi = \"chat\"\n\
                   dialect = \"openai\"\n",
        gives_signed: false,
        uncached_tokens_max: None,
        vendor: |script| Arc::new(openai_vendor(script)),
    },
    Provider {
        name: "github-models",
        library: "provider_github_models",
        section: "plugins.provider-github-models",
        model: "github-models/openai/gpt-5.2",
        key: "GITHUB_TOKEN",
        key_header: ("authorization", "Bearer "),
        variable: "JAATO_GITHUB_ENDPOINT",
        root: "/inference",
        path: "/inference/chat/completions",
        settings: "",
        gives_signed: false,
        uncached_tokens_max: None,
        vendor: |script| Arc::new(github_vendor(script)),
    },
];

/// The behaviour of a vendor.
#[derive(Default)]
pub struct VendorScript {
    turns: Vec<ModelTurn>,
    /// The window of every model in tokens, if it differs from the default.
    window: Option<u64>,
}

/// An answer of a model.
#[derive(Clone)]
pub enum ModelTurn {
    Says(Vec<AnswerPart>),
    /// The vendor reports an error inside the answer, before its first word.
    FailsAtOnce,
    /// The vendor reports an error after this text.
    FailsBehind(&'static str),
}

/// A part of a model's answer.
#[derive(Clone)]
pub enum AnswerPart {
    Thought(&'static str),
    Text(&'static str),
    /// A call to a tool with its arguments.
    Call(&'static str, Value),
}

/// The tool that most scripts call.
const TOOL: &str = "get_environment";

impl AnswerPart {
    fn call(arguments: Value) -> Self {
        Self::Call(TOOL, arguments)
    }
}

fn anthropic_vendor(script: VendorScript) -> anthropic::FakeAnthropic {
    use anthropic::{AnthropicAnswerPiece as Its, AnthropicTurn as ItsTurn};
    let said = |said: AnswerPart| match said {
        AnswerPart::Thought(text) => Its::Thought(text.to_owned()),
        AnswerPart::Text(text) => Its::Text(text.to_owned()),
        AnswerPart::Call(tool, arguments) => Its::Call(tool.to_owned(), arguments),
    };
    let busy = |turn: ItsTurn| turn.with_stream_error("overloaded_error", "Overloaded");
    let turns = script.turns.into_iter().map(|turn| match turn {
        ModelTurn::Says(all) => ItsTurn::with_pieces(all.into_iter().map(said)),
        ModelTurn::FailsAtOnce => busy(ItsTurn::text("never").cut_after(1)),
        ModelTurn::FailsBehind(text) => busy(ItsTurn::text(text)),
    });
    let vendor = anthropic::FakeAnthropic::new(turns);
    script.window.into_iter().fold(vendor, anthropic::FakeAnthropic::with_window)
}

fn google_vendor(script: VendorScript) -> google::FakeGoogle {
    use google::{GoogleAnswerPiece as Its, GoogleTurn as ItsTurn};
    let said = |said: AnswerPart| match said {
        AnswerPart::Thought(text) => Its::Thought(text.to_owned()),
        AnswerPart::Text(text) => Its::Text(text.to_owned()),
        AnswerPart::Call(tool, arguments) => Its::Call(tool.to_owned(), arguments),
    };
    let report = json!({ "error": { "code": 503, "status": "UNAVAILABLE", "message": "busy" } });
    let turns = script.turns.into_iter().map(|turn| match turn {
        ModelTurn::Says(all) => ItsTurn::with_pieces(all.into_iter().map(said)),
        ModelTurn::FailsAtOnce => {
            ItsTurn::text("never").cut_after(0).with_stream_error(report.clone())
        }
        ModelTurn::FailsBehind(text) => {
            ItsTurn::text(text).cut_after(1).with_stream_error(report.clone())
        }
    });
    let vendor = google::FakeGoogle::new(turns);
    script.window.into_iter().fold(vendor, google::FakeGoogle::with_window)
}

fn ollama_vendor(script: VendorScript) -> ollama::FakeOllama {
    use ollama::{OllamaAnswerPiece as Its, OllamaTurn as ItsTurn};
    let said = |said: AnswerPart| match said {
        AnswerPart::Thought(text) => Its::Thought(text.to_owned()),
        AnswerPart::Text(text) => Its::Text(text.to_owned()),
        AnswerPart::Call(tool, arguments) => Its::Call(tool.to_owned(), arguments),
    };
    let turns = script.turns.into_iter().map(|turn| match turn {
        ModelTurn::Says(all) => ItsTurn::with_pieces(all.into_iter().map(said)),
        ModelTurn::FailsAtOnce => {
            ItsTurn::text("never").cut_after(0).with_stream_error("the runner has ended")
        }
        ModelTurn::FailsBehind(text) => {
            ItsTurn::text(text).with_stream_error("the runner has ended")
        }
    });
    let vendor = ollama::FakeOllama::new(turns);
    script.window.into_iter().fold(vendor, ollama::FakeOllama::with_context_max)
}

fn openai_turns(script: Vec<ModelTurn>) -> impl Iterator<Item = openai::OpenAiTurn> {
    use openai::{OpenAiAnswerPiece as Its, OpenAiTurn as ItsTurn, StreamErrorPlacement};
    let said = |said: AnswerPart| match said {
        AnswerPart::Thought(text) => Its::Reasoning(text.to_owned()),
        AnswerPart::Text(text) => Its::Text(text.to_owned()),
        AnswerPart::Call(tool, arguments) => Its::Call(tool.to_owned(), arguments.to_string()),
    };
    let busy = |turn: ItsTurn| {
        turn.with_stream_error("server_error", "The server is busy", StreamErrorPlacement::Nested)
    };
    script.into_iter().map(move |turn| match turn {
        ModelTurn::Says(all) => ItsTurn::with_pieces(all.into_iter().map(said)),
        ModelTurn::FailsAtOnce => busy(ItsTurn::text("never").cut_after(1)),
        ModelTurn::FailsBehind(text) => busy(ItsTurn::text(text)),
    })
}

fn openai_vendor(script: VendorScript) -> openai::FakeOpenAi {
    let vendor = openai::FakeOpenAi::new(openai_turns(script.turns));
    script.window.into_iter().fold(vendor, openai::FakeOpenAi::with_window)
}

fn github_vendor(script: VendorScript) -> github::FakeGitHub {
    let vendor = github::FakeGitHub::new(openai_turns(script.turns));
    script.window.into_iter().fold(vendor, github::FakeGitHub::with_window)
}

impl Provider {
    /// Creates the vendor for these answers.
    fn fake_vendor(&self, turns: impl IntoIterator<Item = ModelTurn>) -> Arc<dyn FakeVendor> {
        (self.vendor)(VendorScript {
            turns: turns.into_iter().collect(),
            ..VendorScript::default()
        })
    }

    /// Returns an installation with the provider.
    fn new_house(&self) -> Option<House> {
        let house = House::new()?;
        crate::support::ship_provider(&house, self.library);
        Some(house)
    }

    /// Starts a vendor's server. `alter` may change each answer to a completion request.
    fn serve(
        &self,
        vendor: &Arc<dyn FakeVendor>,
        alter: impl Fn(VendorAnswer) -> Answer + Send + Sync + 'static,
    ) -> Server {
        let (vendor, path) = (Arc::clone(vendor), self.path);
        Server::start_with(move |asked| {
            let answered = vendor_answer(&*vendor, asked);
            let is_completion = asked.path.split('?').next().unwrap_or_default().ends_with(path);
            if is_completion { alter(answered) } else { unchanged_answer(answered) }
        })
    }

    /// Lists the completion requests that a server received.
    fn completion_requests(&self, server: &Server) -> Vec<server::ReceivedRequest> {
        let all = server.requests().into_iter().chain(server.other_requests());
        let path = |asked: &server::ReceivedRequest| {
            asked.path.split('?').next().unwrap_or_default().to_owned()
        };
        all.filter(|asked| path(asked).ends_with(self.path)).collect()
    }

    /// Makes the provider use a server by the user's own configuration, so that it gets the key.
    fn configure_server(&self, house: &House, server: &Server) {
        house.configure_more(&self.server_config(server));
    }

    /// Returns the configuration lines that make the provider use a server.
    fn server_config(&self, server: &Server) -> String {
        self.url_config(&server.root_url())
    }

    /// Returns the same lines for any URL.
    fn url_config(&self, base: &str) -> String {
        let (section, root, settings) = (self.section, self.root, self.settings);
        format!("[{section}]\nbase_url = \"{base}{root}\"\n{settings}")
    }

    /// Builds a command with a key.
    fn command(&self, house: &House, words: &[&str]) -> Command {
        house.command(words).variable(self.key, SECRET)
    }

    /// Builds a run that says hello.
    fn hello_command(&self, house: &House) -> Command {
        self.command(house, &["run", "--model", self.model, "--tools", "none", "hello"])
    }
}

fn vendor_answer(vendor: &dyn FakeVendor, asked: &server::ReceivedRequest) -> VendorAnswer {
    let server::ReceivedRequest { method, path, headers, body } = asked.clone();
    vendor.answer(&VendorRequest { method, path, headers, body })
}

/// Converts a vendor's answer without changes.
fn unchanged_answer(answered: VendorAnswer) -> Answer {
    let body = answered.body.clone();
    head_of_answer(&answered).then(BodyStep::Bytes(body))
}

/// Creates an answer with the vendor's status and headers, and an empty body.
fn head_of_answer(answered: &VendorAnswer) -> Answer {
    let headers = answered.headers.iter();
    headers
        .fold(Answer::status(answered.status), |answer, (name, value)| answer.header(name, value))
}

/// Returns an answer with one text.
fn text_turn(text: &'static str) -> ModelTurn {
    ModelTurn::Says(vec![AnswerPart::Text(text)])
}
