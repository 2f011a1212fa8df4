//! Every provider before a server that answers in its vendor's words: what an answer of many pieces
//! costs, how soon a long history is a request, how soon a cancelled answer's connection is closed.

mod server;
mod wire;

use std::fs::{self, File};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::wait::WaitStatus;

use self::server::{Play, Server, waits_behind_calls};
use self::wire::PIECE;
use super::agent::tree::{Ended, Tree};
use super::installed::Installed;
use super::table::{Figure, Target};
use super::{Outcome, ROUNDS};
use xtask::workspace::Workspace;

/// Pieces of a long answer.
const PIECES: usize = 10_000;

/// Long answers of a round: their processor time is compared, and scatters.
const ANSWERS: usize = 4;

/// Processor time of a long answer, against that by chat completions.
const TIMES_MAX: f64 = 1.5;

/// Prompts that make a long history …
const PROMPTS: usize = 33;

/// … and the length of each: the last request has one megabyte.
const PROMPT_BYTES: usize = 32_000;

/// The least that such a request has.
const HISTORY_BYTES_MIN: usize = 1_000_000;

/// From a call until the request with its result is there, behind a megabyte: the tool has run, and
/// the history has become a request.
const REQUEST_MS_MAX: f64 = 10.0;

/// From Ctrl-C until the server sees that the connection is closed.
const CANCELLED_MS_MAX: f64 = 100.0;

/// The exit code after Ctrl-C.
const CANCELLED: i32 = 130;

/// A run that takes longer hangs.
const RUN_S_MAX: Duration = Duration::from_secs(60);

/// Between what the server has sent and the word on the terminal.
const SETTLE: Duration = Duration::from_millis(100);

/// Of a run that failed, so many of its last bytes are shown.
const COMPLAINT_BYTES_MAX: usize = 2_000;

/// A provider, and what leads it to another server.
struct Provider {
    name: &'static str,
    /// Where its settings stand.
    section: &'static str,
    model: &'static str,
    key: &'static str,
    /// The path of a base URL.
    root: &'static str,
    /// More settings.
    settings: &'static str,
}

/// The first is what the others are compared with.
const PROVIDERS: [Provider; 6] = [
    Provider {
        name: "chat completions",
        section: "plugins.provider-openai",
        model: "openai/gpt-5.2",
        key: "OPENAI_API_KEY",
        root: "/v1",
        settings: "api = \"chat\"\ndialect = \"openai\"\n",
    },
    Provider {
        name: "responses",
        section: "providers.responses",
        model: "responses/gpt-5.2",
        key: "RESPONSES_API_KEY",
        root: "/v1",
        settings: "plugin = \"openai\"\napi_key_env = \"RESPONSES_API_KEY\"\napi = \"responses\"\n\
                   dialect = \"openai\"\n",
    },
    Provider {
        name: "anthropic",
        section: "plugins.provider-anthropic",
        model: "anthropic/claude-opus-5-5",
        key: "ANTHROPIC_API_KEY",
        root: "",
        settings: "",
    },
    Provider {
        name: "google",
        section: "plugins.provider-google-genai",
        model: "google/gemini-3.8-flash",
        key: "GOOGLE_API_KEY",
        root: "",
        settings: "",
    },
    Provider {
        name: "github-models",
        section: "plugins.provider-github-models",
        model: "github-models/openai/gpt-5.2",
        key: "GITHUB_TOKEN",
        root: "/inference",
        settings: "",
    },
    Provider {
        name: "ollama",
        section: "plugins.provider-ollama",
        model: "ollama/qwen3:8b",
        key: "OLLAMA_API_KEY",
        root: "",
        settings: "",
    },
];

/// The plugins that are needed: the providers', and those of the tool that is called.
const PLUGINS: [&str; 7] = [
    "provider-openai",
    "provider-anthropic",
    "provider-google-genai",
    "provider-github-models",
    "provider-ollama",
    "environment-local",
    "tool-environment",
];

/// jaato with every provider, and the server.
struct Bench {
    server: Server,
    installed: Installed,
}

/// The best of each provider.
#[derive(Debug, Clone, Copy)]
struct Best {
    /// Processor time of a long answer.
    answer_ms: f64,
    /// From a call to the request with its result: behind two prompts, and behind a megabyte.
    short_ms: f64,
    long_ms: f64,
    /// From Ctrl-C to a closed connection.
    closed_ms: f64,
}

/// Measures them in turns.
pub fn providers(workspace: &Workspace) -> Result<Outcome> {
    let server = Server::start()?;
    let config: String = PROVIDERS.iter().map(|provider| provider.config(&server)).collect();
    let installed = Installed::new(workspace, "providers", &PLUGINS, &[], &config)?;
    let bench = Bench { server, installed };
    let mut best = [Best::UNKNOWN; PROVIDERS.len()];
    for provider in &PROVIDERS {
        // Descriptions are cached then, and files are in memory.
        bench.answer_ms(provider, 1).with_context(|| provider.name)?;
    }
    for _ in 0..ROUNDS {
        for (provider, best) in PROVIDERS.iter().zip(&mut best) {
            bench.measure(provider, best).with_context(|| provider.name)?;
        }
    }
    Ok(Outcome::Figures(figures(&best)))
}

impl Provider {
    /// What leads it to the server, and keeps it from looking for a window.
    fn config(&self, server: &Server) -> String {
        let Self { section, root, settings, model, .. } = self;
        let base = server.root_url();
        format!(
            "[{section}]\nbase_url = \"{base}{root}\"\n{settings}\n\
             [models.\"{model}\"]\ncontext_limit = 2000000\n\n"
        )
    }
}

impl Best {
    const UNKNOWN: Self = Self {
        answer_ms: f64::INFINITY,
        short_ms: f64::INFINITY,
        long_ms: f64::INFINITY,
        closed_ms: f64::INFINITY,
    };
}

impl Bench {
    fn measure(&self, provider: &Provider, best: &mut Best) -> Result<()> {
        for _ in 0..ANSWERS {
            best.answer_ms = best.answer_ms.min(self.answer_ms(provider, PIECES)?);
        }
        let (short_ms, long_ms) = self.request_ms(provider)?;
        (best.short_ms, best.long_ms) = (best.short_ms.min(short_ms), best.long_ms.min(long_ms));
        best.closed_ms = best.closed_ms.min(self.closed_ms(provider)?);
        Ok(())
    }

    /// Starts jaato with what a file holds on standard input.
    fn start(&self, provider: &Provider, words: &[&str], input: Stdio) -> Result<Tree> {
        let mut command = self.installed.command();
        command.args(words).args(["--model", provider.model]).env(provider.key, "for-the-bench");
        let create = |name: &str| {
            let path = self.installed.home.beside(name);
            File::create(&path).with_context(|| format!("making `{}`", path.display()))
        };
        command.stdin(input).stdout(create("stdout")?).stderr(create("stderr")?);
        Tree::start(&mut command)
    }

    /// Reads what a run said, which must have ended with this code.
    fn said(&self, ended: &Ended, code: i32) -> Result<String> {
        let read = |name: &str| {
            let path = self.installed.home.beside(name);
            fs::read_to_string(&path).with_context(|| format!("reading `{}`", path.display()))
        };
        let well = matches!(ended.status, WaitStatus::Exited(_, ended_with) if ended_with == code);
        if !well || ended.killed > 0 {
            let complained = read("stderr")?;
            let from = complained.len().saturating_sub(COMPLAINT_BYTES_MAX);
            bail!("{:?}: {}", ended.status, complained.get(from..).unwrap_or(&complained));
        }
        read("stdout")
    }

    /// The processor time of a run with an answer of so many pieces.
    fn answer_ms(&self, provider: &Provider, pieces: usize) -> Result<f64> {
        self.server.play(Play::Text { pieces });
        let tree = self.start(provider, &["run", "--tools", "none", "Say it."], Stdio::null())?;
        let ended = tree.end(RUN_S_MAX)?;
        let said = self.said(&ended, 0)?;
        if said.matches(PIECE.trim_end()).count() != pieces {
            bail!("of {pieces} pieces {} bytes came out", said.len());
        }
        Ok(ended.cpu.as_secs_f64() * 1e3)
    }

    /// How long it takes from a call to the request with its result, in a chat whose prompts make
    /// a long history: behind the second prompt, as the first call opens the tool's plugin, and
    /// behind the last.
    fn request_ms(&self, provider: &Provider) -> Result<(f64, f64)> {
        let file = self.installed.home.beside("prompts");
        let prompt = format!("{}\n", "why ".repeat(PROMPT_BYTES / 4));
        fs::write(&file, prompt.repeat(PROMPTS))
            .with_context(|| format!("writing `{}`", file.display()))?;
        let prompts = File::open(&file).with_context(|| format!("opening `{}`", file.display()))?;
        self.server.play(Play::CallAndWord);
        let tree = self.start(provider, &["chat", "--yes"], prompts.into())?;
        self.said(&tree.end(RUN_S_MAX)?, 0)?;
        let waits = waits_behind_calls(&self.server.take_seen())?;
        let ms = |wait: &Duration| wait.as_secs_f64() * 1e3;
        match waits.as_slice() {
            [_, (short, _), .., (long, bytes)] if waits.len() == PROMPTS => {
                if *bytes < HISTORY_BYTES_MIN {
                    bail!("the last request has {bytes} bytes only");
                }
                Ok((ms(short), ms(long)))
            }
            _ => bail!("{} calls were answered, not {PROMPTS}", waits.len()),
        }
    }

    /// How long it takes from Ctrl-C until the server sees the connection closed.
    fn closed_ms(&self, provider: &Provider) -> Result<f64> {
        self.server.play(Play::Hang);
        let tree = self.start(provider, &["run", "--tools", "none", "Say it."], Stdio::null())?;
        let begun = self.server.wait_until_begun(RUN_S_MAX);
        std::thread::sleep(SETTLE);
        let interrupted: Result<Instant> = tree.interrupt();
        let gone = self.server.wait_until_gone(RUN_S_MAX);
        // Whatever went wrong before, the processes are waited for.
        let ended = tree.end(RUN_S_MAX)?;
        self.said(&ended, CANCELLED)?;
        begun?;
        Ok((gone? - interrupted?).as_secs_f64() * 1e3)
    }
}

fn figures(best: &[Best; PROVIDERS.len()]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let [yardstick, ..] = best;
    let each = || PROVIDERS.iter().zip(best);
    let named = |what: &str, name: &str| format!("providers: {what}, {name}");
    for (number, (provider, one)) in each().enumerate() {
        let what = named("10,000 pieces", provider.name);
        figures.push(Figure::new(&what, one.answer_ms, "ms", Target::None));
        if number > 0 {
            let what = format!("{what} to {}", PROVIDERS[0].name);
            let times = one.answer_ms / yardstick.answer_ms;
            figures.push(Figure::new(&what, times, "times", Target::AtMost(TIMES_MAX)));
        }
    }
    for (provider, one) in each() {
        let what = named("a call to its result's request", provider.name);
        figures.push(Figure::new(&what, one.short_ms, "ms", Target::None));
        let what = named("the same behind 1 MB", provider.name);
        let limit = Target::AboutAtMost(REQUEST_MS_MAX);
        figures.push(Figure::new(&what, one.long_ms, "ms", limit));
    }
    for (provider, one) in each() {
        let what = named("Ctrl-C to a closed connection", provider.name);
        let limit = Target::AboutAtMost(CANCELLED_MS_MAX);
        figures.push(Figure::new(&what, one.closed_ms, "ms", limit));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::table::Verdict;

    #[test]
    fn each_provider_stands_beside_chat_completions() {
        let mut best =
            [Best { answer_ms: 100.0, short_ms: 2.0, long_ms: 10.0, closed_ms: 100.0 }; 6];
        best[2] = Best { answer_ms: 151.0, short_ms: 2.0, long_ms: 20.1, closed_ms: 200.1 };
        let figures = figures(&best);
        let missed = figures.iter().filter(|figure| figure.verdict() == Verdict::Missed);
        let missed: Vec<&str> = missed.map(|figure| figure.what.as_str()).collect();
        let expected = [
            "providers: 10,000 pieces, anthropic to chat completions",
            "providers: the same behind 1 MB, anthropic",
            "providers: Ctrl-C to a closed connection, anthropic",
        ];
        assert_eq!(missed, expected);
        assert_eq!(figures.len(), 6 + 5 + 2 * 6 + 6);
    }
}
