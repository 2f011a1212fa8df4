//! Measures a decision with 500 rules in files and a command line of 4 KiB, and counts the prompts
//! for everyday commands and for lines that try to bypass rules. `cargo xtask bench policy` runs
//! it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code)]
#[path = "../tests/corpus.rs"]
mod corpus;
#[allow(dead_code)]
#[path = "../tests/everyday.rs"]
mod everyday;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use jaato_policy::{
    CommandPattern, Glob, PathPattern, PluginSource, PolicyCall, RestOfCommand, Rule,
    RuleConditions, RuleFile, RuleLayer, RuleOutcome, Rules, WorkspaceTrust, decide,
};
use jaato_types::{PluginName, ToolName};
use serde_json::{Value, json};

const RULES: usize = 500;
const LINE_BYTES: usize = 4096;
const TIMES: u32 = 30;

fn main() {
    let rules = Rules::from_files(vec![bench_rules()]);
    // A line that a rule allows part by part, and one that only denials look at.
    let plain = repeated_line("ls -la src/a | ls -l 'b c' && ls ");
    let tangled = repeated_line(
        "x=$(find . -exec sh -c 'ls \"$1\"' \\;) && for i in a b; do env A=1 cat \"$x\" | sort > o; done; ls ",
    );
    let long = format!("ls {}", "a".repeat(LINE_BYTES - 3));
    let [plain, tangled, long] = [plain, tangled, long].map(|line| mean_time(&rules, &line));
    let mut figures = json!({ "plain_us": plain, "tangled_us": tangled, "long_us": long });
    for (kind, (asked, all)) in everyday::asked_by_kind() {
        figures[format!("{kind}_asked_percent")] = json!(100.0 * asked as f64 / all as f64);
    }
    let cases = corpus::corpus_cases();
    let bypasses = cases.iter().filter(|case| case.is_bypass());
    figures["bypasses"] = json!(bypasses.clone().count());
    figures["bypasses_that_pass"] = json!(bypasses.filter(|case| case.passes()).count());
    println!("{figures}");
}

fn repeated_line(piece: &str) -> String {
    let times = LINE_BYTES / (piece.len() + 2);
    vec![piece.trim(); times.max(1)].join("; ")
}

fn bench_rules() -> RuleFile {
    let rules = (0..RULES).map(|at| {
        let mut when = RuleConditions::default();
        match at % 5 {
            0 => {
                when.command =
                    CommandPattern::parse(&format!("prog{at} sub"), RestOfCommand::SafeOptions)
            }
            1 => {
                let path = Path::new("/home/ann").join(format!("dir{at}/*.key"));
                when.path = Some(PathPattern { written: path.display().to_string(), path });
            }
            2 => when.host = Some(Glob::new(format!("*.host{at}.example.com"))),
            3 => when.arguments = vec![("command".to_owned(), Glob::new(format!("*x{at}*y{at}*")))],
            _ => when.tool = Some(Glob::new(format!("tool*{at}"))),
        }
        let outcome = if at % 2 == 0 { RuleOutcome::Deny } else { RuleOutcome::Ask };
        Rule { outcome, when, line: at, why: None }
    });
    let allow = Rule {
        outcome: RuleOutcome::Allow,
        when: RuleConditions {
            command: CommandPattern::parse("ls", RestOfCommand::SafeOptions),
            ..RuleConditions::default()
        },
        line: RULES,
        why: None,
    };
    let rules = rules.chain([allow]).collect();
    RuleFile { layer: RuleLayer::User, path: "rules".into(), default: None, rules, broken: None }
}

/// Returns the median time of a decision, in microseconds.
fn mean_time(rules: &Rules, line: &str) -> f64 {
    let arguments = json!({ "command": line });
    let mut times: Vec<f64> = (0..TIMES).map(|_| time_once(rules, &arguments)).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn time_once(rules: &Rules, arguments: &Value) -> f64 {
    let (tool, plugin) = (ToolName::from("cli_based_tool"), PluginName::from("tool-cli"));
    let schema =
        json!({ "properties": { "command": { "type": "string", "x-jaato-touches": "command" } } });
    let call = PolicyCall {
        schema: &schema,
        source: PluginSource::Shipped,
        directory: Some(Path::new("/srv")),
        home: Some(Path::new("/home/ann")),
        workspace: WorkspaceTrust::Trusted,
        ..PolicyCall::new(&tool, &plugin, arguments)
    };
    let begun = Instant::now();
    black_box(decide(rules, &call));
    begun.elapsed().as_secs_f64() * 1e6
}
