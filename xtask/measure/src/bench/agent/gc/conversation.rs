//! Conversations with planted constraints and facts. They are the same in each run.

use serde_json::Value;

/// The topics of facts. A fact's topic is a pair of them, so each is unique.
const TOPICS: [&str; 12] = [
    "heron", "otter", "badger", "falcon", "walrus", "lynx", "marten", "osprey", "bison", "gecko",
    "ibis", "jackal",
];

/// The words of the text around facts.
const WORDS: [&str; 24] = [
    "please", "look", "at", "the", "module", "and", "then", "tell", "me", "about", "its", "tests",
    "because", "we", "want", "to", "ship", "soon", "with", "good", "notes", "for", "every",
    "reader",
];

/// The texts that state a constraint. Only some of them have a word such as "never".
const CONSTRAINTS: [&str; 8] = [
    "Never change the folder legacy-{n}.",
    "Keep every function of part {n} below 40 lines.",
    "Part {n} uses tabs, not spaces.",
    "I want all dates of report {n} in UTC.",
    "Only Ana merges into release-{n}.",
    "Nimm für Teil {n} immer deutsche Texte.",
    "The budget for job {n} is 12 euros, no more.",
    "Don't use crate number {n} before the audit.",
];

/// A chat with the embedded model about a folder of pages, as `jaato session export --format json`
/// wrote it.
const EXPORT: &str = include_str!("export.jsonl");

/// What the model does in a turn.
#[derive(Debug, Clone)]
pub enum PlantedStep {
    /// It answers.
    Answer(String),
    /// It runs a command, and answers.
    Run { command: String, answer: String },
    /// It runs the command with this name again if it sees no trace of a run.
    Check { name: String },
    /// It looks for the fact with this index.
    Ask { fact: usize },
}

/// One turn.
#[derive(Debug, Clone)]
pub struct PlantedTurn {
    /// One line.
    pub prompt: String,
    pub step: PlantedStep,
}

/// A text that answers a question.
#[derive(Debug, Clone)]
pub struct PlantedFact {
    /// The question's words.
    pub words: String,
    pub text: String,
}

/// A conversation.
#[derive(Debug, Clone)]
pub struct PlantedConversation {
    pub name: &'static str,
    /// Whether it is long enough for many collections.
    pub is_long: bool,
    pub turns: Vec<PlantedTurn>,
    pub constraints: Vec<String>,
    pub facts: Vec<PlantedFact>,
}

/// The number of each kind of turn.
struct TurnCounts {
    plain: usize,
    run: usize,
    constraints: usize,
    /// Lines that each command prints.
    lines: usize,
    /// Words around each fact.
    words: usize,
}

impl PlantedConversation {
    /// Returns all conversations.
    pub fn all_conversations() -> Vec<Self> {
        let counts = |plain, run, constraints, lines, words| TurnCounts {
            plain,
            run,
            constraints,
            lines,
            words,
        };
        vec![
            Self::new("short", false, &counts(16, 4, 2, 40, 120), &[]),
            Self::new("long", true, &counts(150, 30, 10, 100, 220), &[]),
            Self::new("many tools", false, &counts(10, 60, 4, 700, 40), &[]),
            Self::new("many constraints", false, &counts(60, 10, 40, 40, 220), &[]),
            Self::new(
                "real export",
                false,
                &counts(50, 6, 6, 40, 220),
                &parse_recorded_turns(EXPORT),
            ),
        ]
    }

    fn new(
        name: &'static str,
        is_long: bool,
        counts: &TurnCounts,
        recorded: &[(String, PlantedStep)],
    ) -> Self {
        let empty = Vec::new();
        let (constraints, facts) = (Vec::new(), Vec::new());
        let mut made = Self { name, is_long, turns: empty, constraints, facts };
        let total = counts.plain + counts.run + counts.constraints;
        let mut runs = Vec::new();
        let mut recorded_left = recorded.iter();
        for at in 0..total {
            if is_evenly_spread_index(at, recorded.len(), total)
                && let Some((prompt, step)) = recorded_left.next()
            {
                made.push_turn(prompt, step.clone());
            }
            // Spreads the rarer kinds over the whole conversation.
            if is_evenly_spread_index(at, counts.constraints, total) {
                made.state_constraint(at, counts.words);
            } else if is_evenly_spread_index(at + 1, counts.run, total) {
                runs.push(made.plant_command_fact(at, counts));
            } else {
                made.plant_fact(at, counts.words);
            }
        }
        for name in runs {
            let prompt = format!("Make sure that {name} has run.");
            made.push_turn(&prompt, PlantedStep::Check { name });
        }
        for fact in 0..made.facts.len() {
            let prompt = format!("What is {}?", made.facts[fact].words);
            made.push_turn(&prompt, PlantedStep::Ask { fact });
        }
        made
    }

    /// Returns the prompts, one line each.
    pub fn prompt_lines(&self) -> Vec<String> {
        self.turns.iter().map(|turn| turn.prompt.clone()).collect()
    }

    /// Returns the turn of a prompt, which begins with its number.
    pub fn turn_of_prompt(&self, prompt: &str) -> Option<&PlantedTurn> {
        let (_, rest) = prompt.rsplit_once("[turn ")?;
        let (number, _) = rest.split_once(']')?;
        self.turns.get(number.parse::<usize>().ok()?)
    }

    fn push_turn(&mut self, text: &str, step: PlantedStep) {
        let prompt = format!("[turn {}] {text}", self.turns.len());
        self.turns.push(PlantedTurn { prompt, step });
    }

    fn state_constraint(&mut self, at: usize, words: usize) {
        let text = CONSTRAINTS[at % CONSTRAINTS.len()].replace("{n}", &at.to_string());
        let around = filler_text(at, words / 2);
        self.push_turn(
            &format!("{around}. {text} {around}."),
            PlantedStep::Answer(format!("Understood. {}.", filler_text(at + 1, words / 4))),
        );
        self.constraints.push(text);
    }

    /// Plants a fact in a prompt or in an answer, alternately.
    fn plant_fact(&mut self, at: usize, words: usize) {
        let topic = topic_of_turn(at);
        let value = 1_000 + (at * 7_919) % 9_000;
        let around = filler_text(at, words);
        let (fact, prompt, answer) = if at.is_multiple_of(2) {
            let text = format!("The port of the {topic} service is {value}.");
            let fact = PlantedFact { words: format!("the port of the {topic} service"), text };
            let prompt = format!("{around}. {} {around}.", fact.text);
            (fact, prompt, format!("Noted. {around}."))
        } else {
            let text = format!("I put the schema of {topic} into db/schema-{value}.sql.");
            let fact = PlantedFact { words: format!("the file with the schema of {topic}"), text };
            let answer = format!("{} {around}.", fact.text);
            (fact, format!("{around}, {topic}."), answer)
        };
        self.facts.push(fact);
        self.push_turn(&prompt, PlantedStep::Answer(answer));
    }

    /// Plants a fact in the output of a command. Returns the command's name.
    fn plant_command_fact(&mut self, at: usize, counts: &TurnCounts) -> String {
        let (name, topic) = (format!("job-{at}"), topic_of_turn(at));
        let text = format!("the build id of {topic} is b{:05}", (at * 104_729) % 100_000);
        let command = format!(
            "echo {name}; echo '{text}'; seq -s ' ' 1 {lines}; echo {name} is done",
            lines = counts.lines
        );
        self.facts.push(PlantedFact { words: format!("the build id of {topic}"), text });
        let answer = format!("{name} has run. {}.", filler_text(at, counts.words / 4));
        self.push_turn(&format!("Run {name}, please."), PlantedStep::Run { command, answer });
        name
    }
}

/// Returns the prompts of an export with what the model did: its commands print again what they
/// printed then.
fn parse_recorded_turns(export: &str) -> Vec<(String, PlantedStep)> {
    let mut turns: Vec<(String, String, String)> = Vec::new();
    let messages = export.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for message in messages {
        for part in message["parts"].as_array().into_iter().flatten() {
            let text = part["text"].as_str().unwrap_or_default();
            let printed = part["content"]["stdout"].as_str().unwrap_or_default();
            match (message["role"].as_str(), turns.last_mut()) {
                (Some("user"), _) => {
                    turns.push((text.to_owned(), String::new(), String::new()));
                }
                (Some("model"), Some((_, _, answer))) => answer.push_str(text),
                (Some("tool"), Some((_, output, _))) => output.push_str(printed),
                _ => {}
            }
        }
    }
    let to_turn = |(prompt, output, answer): (String, String, String)| {
        let step = match output.is_empty() {
            true => PlantedStep::Answer(answer),
            false => PlantedStep::Run { command: format!("cat <<'END'\n{output}\nEND"), answer },
        };
        (prompt, step)
    };
    turns.into_iter().map(to_turn).collect()
}

/// Returns true for `count` of `total` indexes, evenly spread.
fn is_evenly_spread_index(at: usize, count: usize, total: usize) -> bool {
    at * count / total != (at + 1) * count / total
}

fn topic_of_turn(at: usize) -> String {
    let count = TOPICS.len();
    format!("{}-{}-{at}", TOPICS[at % count], TOPICS[(at / count + at + 1) % count])
}

fn filler_text(at: usize, words: usize) -> String {
    let word = |index: usize| WORDS[(at * 31 + index * 7 + index * index) % WORDS.len()];
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_is_one_line_and_finds_its_turn() {
        for conversation in PlantedConversation::all_conversations() {
            for turn in &conversation.turns {
                assert!(!turn.prompt.contains('\n'));
                assert_eq!(conversation.turn_of_prompt(&turn.prompt).unwrap().prompt, turn.prompt);
            }
            assert!(conversation.turn_of_prompt("no number").is_none());
        }
    }

    #[test]
    fn export_gives_its_prompts_answers_and_outputs() {
        let turns = parse_recorded_turns(EXPORT);
        assert_eq!(turns.len(), 16);
        assert_eq!(turns[0].0, "How many lines has guide.md?");
        let PlantedStep::Run { command, answer } = &turns[0].1 else { panic!("{:?}", turns[0]) };
        assert!(command.contains("289 guide.md"), "{command}");
        assert_eq!(answer, "The number of lines in guide.md is 289.");
        let all = PlantedConversation::all_conversations();
        let prompts =
            all.iter().find(|it| it.name == "real export").unwrap().prompt_lines().join("\n");
        assert!(turns.iter().all(|(prompt, _)| prompts.contains(prompt)));
    }

    #[test]
    fn facts_and_constraints_are_unique() {
        for conversation in PlantedConversation::all_conversations() {
            let mut texts: Vec<&String> =
                conversation.facts.iter().map(|fact| &fact.text).collect();
            texts.extend(&conversation.constraints);
            let count = texts.len();
            texts.sort();
            texts.dedup();
            assert_eq!(texts.len(), count, "{}", conversation.name);
            assert!(count >= 20);
        }
    }
}
