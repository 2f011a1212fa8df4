//! Example exchanges that show a small model when to make a call, how to use a result, and when to
//! answer.
//!
//! The exchanges in this file show several calls, a failed one and an answer. They appear if the
//! request has their tools. Other tools are shown with the examples of their plugins.

use jaato_plugin_sdk::types::ToolSpec;
use serde_json::{Map, Value, json};

/// The maximum number of calls to show. Each takes about 30 tokens of every prompt.
const CALLS_MAX: usize = 10;

/// The minimum number of calls to show, if the tools have enough examples. After a single one, the
/// model answers without a call.
const CALLS_MIN: usize = 4;

/// The tool that can replace any other.
pub const SHELL: &str = "cli_based_tool";

/// One exchange: a user message and the following steps.
struct ExampleExchange {
    phrase: &'static str,
    steps: &'static [KnownExamples],
}

enum KnownExamples {
    Shell(&'static str),
    Call(&'static str, &'static [(&'static str, &'static str)]),
    Worked(&'static str),
    Failed(&'static str),
    Answer(&'static str),
}

/// The exchanges. One of them keeps the model from calling a tool for something that it knows.
const EXCHANGES: [ExampleExchange; 8] = [
    ExampleExchange {
        phrase: "Which file has the word cat?",
        steps: &[KnownExamples::Shell("grep -rl cat .")],
    },
    ExampleExchange {
        phrase: "How many days has a week?",
        steps: &[KnownExamples::Answer("A week has seven days.")],
    },
    ExampleExchange {
        phrase: "Append tea to list.txt and commit it.",
        steps: &[KnownExamples::Shell(
            "echo tea >> list.txt && git add -A && git commit -m 'Add tea'",
        )],
    },
    ExampleExchange {
        phrase: "Make a folder img, move a.png into it and delete old.log",
        steps: &[KnownExamples::Shell("mkdir -p img && mv a.png img/ && rm old.log")],
    },
    ExampleExchange {
        phrase: "Which system runs here?",
        steps: &[KnownExamples::Shell("uname -a")],
    },
    ExampleExchange {
        phrase: "Show the end of app.log",
        steps: &[
            KnownExamples::Shell("tail app.log"),
            KnownExamples::Failed("tail: cannot open 'app.log'"),
            KnownExamples::Shell("find . -name app.log -exec tail {} +"),
            KnownExamples::Worked("bye"),
            KnownExamples::Answer("The end of app.log is: bye"),
        ],
    },
    ExampleExchange {
        phrase: "Write up.sh that says yes.",
        steps: &[
            KnownExamples::Call("writeNewFile", &[("path", "up.sh"), ("content", "echo yes\n")]),
            KnownExamples::Worked("success: true"),
            KnownExamples::Answer("I wrote up.sh. It says yes."),
        ],
    },
    ExampleExchange {
        phrase: "add in calc.py is wrong. Correct it and run calc.py.",
        steps: &[
            KnownExamples::Call("readFile", &[("path", "calc.py")]),
            KnownExamples::Worked("def add(a, b):\n    return a - b"),
            KnownExamples::Call(
                "updateFile",
                &[("path", "calc.py"), ("old", "a - b"), ("new", "a + b")],
            ),
            KnownExamples::Worked("success: true"),
            KnownExamples::Shell("python3 calc.py"),
            KnownExamples::Worked("3"),
            KnownExamples::Answer("I corrected add in calc.py and ran it. It prints: 3"),
        ],
    },
];

/// A step of an exchange.
#[derive(Debug, PartialEq)]
pub(super) enum ExampleStep<'a> {
    /// A tool call.
    Call(&'a str, Value),
    /// A result, as the model reads it.
    Result { text: &'a str, failed: bool },
    /// Text.
    Answer(&'a str),
}

/// Returns user messages with the steps that follow them.
pub(super) fn example_exchanges<'a>(
    tools: &[&'a ToolSpec],
) -> Vec<(&'a str, Vec<ExampleStep<'a>>)> {
    if tools.is_empty() {
        return Vec::new();
    }
    let is_offered = |name: &'static str| tools.iter().any(|tool| tool.name.as_str() == name);
    let fits = |exchange: &&ExampleExchange| {
        exchange.steps.iter().filter_map(KnownExamples::tool_name).all(is_offered)
    };
    let known: Vec<&ExampleExchange> = EXCHANGES.iter().filter(fits).collect();
    let shows =
        |tool: &&ToolSpec| known.iter().any(|exchange| exchange.has_call_of(tool.name.as_str()));
    let mut exchanges: Vec<_> = known
        .iter()
        .map(|it| (it.phrase, it.steps.iter().map(KnownExamples::first_step).collect()))
        .collect();
    let others: Vec<&ToolSpec> = tools.iter().copied().filter(|tool| !shows(tool)).collect();
    let calls =
        known.iter().flat_map(|exchange| exchange.steps).filter_map(KnownExamples::tool_name);
    // These come last, because after an answer at the end, the model would answer instead of making
    // a call.
    exchanges.extend(examples_of_specs(&others, calls.count()));
    exchanges
}

/// Returns the answers of the examples with their user messages. The user must never get one of
/// them as an answer.
pub fn example_answers() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXCHANGES.iter().flat_map(|exchange| {
        exchange.steps.iter().filter_map(|step| match step {
            KnownExamples::Answer(text) => Some((exchange.phrase, *text)),
            KnownExamples::Shell(_)
            | KnownExamples::Call(..)
            | KnownExamples::Worked(_)
            | KnownExamples::Failed(_) => None,
        })
    })
}

impl ExampleExchange {
    fn has_call_of(&self, tool: &str) -> bool {
        self.steps.iter().any(|step| step.tool_name() == Some(tool))
    }
}

impl KnownExamples {
    fn tool_name(&self) -> Option<&'static str> {
        match self {
            Self::Shell(_) => Some(SHELL),
            Self::Call(name, _) => Some(name),
            Self::Worked(_) | Self::Failed(_) | Self::Answer(_) => None,
        }
    }

    fn first_step(&self) -> ExampleStep<'static> {
        match self {
            Self::Shell(command) => ExampleStep::Call(SHELL, json!({ "command": command })),
            Self::Call(name, arguments) => {
                let arguments: Map<String, Value> = arguments
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), Value::from(*value)))
                    .collect();
                ExampleStep::Call(name, Value::Object(arguments))
            }
            Self::Worked(text) => ExampleStep::Result { text, failed: false },
            Self::Failed(text) => ExampleStep::Result { text, failed: true },
            Self::Answer(text) => ExampleStep::Answer(text),
        }
    }
}

/// Takes the first example of each tool, and then the second of each if there are few.
fn examples_of_specs<'a>(
    tools: &[&'a ToolSpec],
    shown: usize,
) -> Vec<(&'a str, Vec<ExampleStep<'a>>)> {
    let rounds = tools.iter().map(|tool| tool.examples.len()).max().unwrap_or(0);
    let mut exchanges = Vec::new();
    for round in 0..rounds {
        let most = if round == 0 { CALLS_MAX } else { CALLS_MIN };
        for (tool, example) in
            tools.iter().filter_map(|tool| Some((tool, tool.examples.get(round)?)))
        {
            if shown + exchanges.len() < most {
                let call =
                    ExampleStep::Call(tool.name.as_str(), Value::Object(example.arguments.clone()));
                exchanges.push((example.phrase.as_str(), vec![call]));
            }
        }
    }
    exchanges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool_spec(name: &str, phrases: &[&str]) -> ToolSpec {
        let examples: Vec<Value> =
            phrases.iter().map(|phrase| json!({"phrase": phrase, "arguments": {}})).collect();
        serde_json::from_value(
            json!({"name": name, "description": "", "parameters": {}, "examples": examples}),
        )
        .unwrap()
    }

    fn example_phrases(tools: &[ToolSpec]) -> Vec<String> {
        let tools: Vec<&ToolSpec> = tools.iter().collect();
        example_exchanges(&tools).iter().map(|(phrase, _)| (*phrase).to_owned()).collect()
    }

    #[test]
    fn example_exchanges_are_shown_only_if_all_their_tools_exist() {
        let names = [SHELL, "readFile", "updateFile", "writeNewFile"];
        let tools = names.map(|name| tool_spec(name, &["its own"]));
        assert_eq!(example_phrases(&tools), EXCHANGES.map(|exchange| exchange.phrase));
        // Reading is shown together with changing.
        let expected = ["How many days has a week?", "Write up.sh that says yes.", "its own"];
        assert_eq!(example_phrases(&[tools[1].clone(), tools[3].clone()]), expected);
        assert!(example_phrases(&[]).is_empty());
    }

    #[test]
    fn other_tools_show_more_of_their_examples_if_they_are_few() {
        let tools = [tool_spec("a", &["a1", "a2", "a3"]), tool_spec("b", &["b1", "b2", "b3"])];
        assert_eq!(example_phrases(&tools), ["How many days has a week?", "a1", "b1", "a2", "b2"]);
        let names: Vec<String> = (0..12).map(|index| format!("t{index}")).collect();
        let tools: Vec<ToolSpec> =
            names.iter().map(|name| tool_spec(name, &[name, "more"])).collect();
        assert_eq!(example_phrases(&tools).len(), 1 + CALLS_MAX);
    }
}
