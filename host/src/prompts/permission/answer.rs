//! Parses the user's input at a permission prompt.

use jaato_runtime::types::permission_prompt::{
    AllowedAnswer, PermissionAnswer, PermissionDecision, PermissionPrompt,
};

use super::dialog::{AnswerChoices, all_answers};
use crate::chat::slash;

/// Words that allow the call once.
const YES: [&str; 13] = [
    "y",
    "yes",
    "yes please",
    "yep",
    "yeah",
    "ok",
    "okay",
    "sure",
    "fine",
    "go",
    "go ahead",
    "do it",
    "allow",
];

/// Words that deny the call without any comment.
const NO: [&str; 6] = ["n", "no", "nope", "no thanks", "deny", "don't"];

/// A word with at most this many characters tells the model nothing.
const SHORT_WORD_CHARS_MAX: usize = 2;

/// The message if there is no room to show what an answer would allow.
const NO_ROOM: &str = "no room to show what that allows: make the terminal larger, or type y or n";

/// The meaning of a line at the prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum TypedAnswer {
    /// An answer.
    Answer(PermissionAnswer),
    /// The user wants to change the arguments.
    Edit,
}

/// Parses an answer. An empty line decides nothing, because silence is not consent.
///
/// # Errors
/// Describes the expected input.
pub fn read_answer(
    line: &str,
    prompt: &PermissionPrompt,
    form: AnswerChoices,
) -> Result<TypedAnswer, String> {
    let answers = all_answers(prompt);
    let lower = line.to_lowercase();
    let word = lower.trim_end_matches(['.', '!', ',']).trim();
    if let Some(command) = conversation_command(word) {
        return Err(format!("answer the question first, then use `/{command}`"));
    }
    if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = word.parse::<usize>().ok();
        let answer = number.and_then(|number| number.checked_sub(1)).and_then(|at| answers.get(at));
        let answer = answer.ok_or_else(|| expected_input(answers.len(), form))?;
        return match is_shown(answer, form) {
            true => Ok(to_typed_answer(answer)),
            false => Err(NO_ROOM.to_owned()),
        };
    }
    let once = |decision| Ok(TypedAnswer::Answer(PermissionAnswer::once(decision)));
    match word {
        _ if line.is_empty() => Err(String::new()),
        "?" | "h" | "help" | "/help" => Err(answer_help(prompt, form)),
        "e" | "edit" => Ok(TypedAnswer::Edit),
        word if YES.contains(&word) => match answers.first() {
            // The first answer of a plan also sets a mode.
            Some(first) if first.decision == PermissionDecision::AllowOnce => {
                Ok(to_typed_answer(first))
            }
            _ => once(PermissionDecision::AllowOnce),
        },
        word if NO.contains(&word) => once(PermissionDecision::Deny),
        "always" => answer_for_later_calls(prompt, form),
        word if word.chars().count() <= SHORT_WORD_CHARS_MAX => {
            Err(expected_input(answers.len(), form))
        }
        _ => {
            let answer = PermissionAnswer::once(PermissionDecision::Deny);
            Ok(TypedAnswer::Answer(PermissionAnswer { comment: Some(line.to_owned()), ..answer }))
        }
    }
}

fn to_typed_answer(answer: &AllowedAnswer) -> TypedAnswer {
    match answer.decision {
        PermissionDecision::Edit => TypedAnswer::Edit,
        _ => TypedAnswer::Answer(answer.to_answer()),
    }
}

/// Returns true if the user can see what an answer does.
fn is_shown(answer: &AllowedAnswer, form: AnswerChoices) -> bool {
    form == AnswerChoices::Full || (answer.pattern.is_none() && answer.mode.is_none())
}

/// Returns the answer that allows later calls, if there is only one.
fn answer_for_later_calls(
    prompt: &PermissionPrompt,
    form: AnswerChoices,
) -> Result<TypedAnswer, String> {
    if form == AnswerChoices::Short {
        return Err(NO_ROOM.to_owned());
    }
    let is_meant = |it: &&AllowedAnswer| !it.decision.is_for_one_call() && it.decision.can_run();
    let mut meant = prompt.answers.iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(answer), None) => Ok(to_typed_answer(answer)),
        _ => Err(expected_input(all_answers(prompt).len(), form)),
    }
}

/// Describes the expected input.
fn expected_input(answers: usize, form: AnswerChoices) -> String {
    let numbers = match form {
        AnswerChoices::Full => format!("a number from 1 to {answers}, "),
        AnswerChoices::Short => String::new(),
    };
    format!("type y, n, {numbers}or what to do instead; ? explains the answers")
}

/// Explains each possible answer in a line.
fn answer_help(prompt: &PermissionPrompt, form: AnswerChoices) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (number, answer) in (1..).zip(all_answers(prompt)) {
        let letter = match answer.decision {
            PermissionDecision::AllowOnce if number == 1 => Some("y".to_owned()),
            PermissionDecision::Deny => Some("n".to_owned()),
            _ => None,
        };
        let number = is_shown(&answer, form).then(|| number.to_string());
        let keys: Vec<String> = letter.into_iter().chain(number).collect();
        if !keys.is_empty() {
            let mode = answer.mode.as_ref().map(|mode| format!("; the mode is then {mode}"));
            let meaning = decision_meaning(answer.decision);
            lines.push(format!("{}: {meaning}{}", keys.join(", "), mode.unwrap_or_default()));
        }
    }
    lines.push("e: change the arguments first".to_owned());
    lines.push("s: show all of it, and the rule that asks".to_owned());
    lines.push("anything else: do not run it, and tell the model what you type".to_owned());
    lines.join("\n")
}

fn decision_meaning(decision: PermissionDecision) -> &'static str {
    match decision {
        PermissionDecision::AllowOnce => "run it once",
        PermissionDecision::AllowInTurn => "run it, and do not ask again in this turn",
        PermissionDecision::AllowInSession => "run it, and do not ask again in this session",
        PermissionDecision::AllowAlways => {
            "run it, and do not ask again in this folder (a rule in your permissions.toml)"
        }
        PermissionDecision::Deny => "do not run it",
        PermissionDecision::DenyInTurn => "do not run it, nor ask again in this turn",
        PermissionDecision::DenyInSession => "do not run it, nor ask again in this session",
        PermissionDecision::DenyAlways => {
            "do not run it, nor ask again in this folder (a rule in your permissions.toml)"
        }
        PermissionDecision::Edit => "change the arguments first",
    }
}

/// Returns the conversation command in a line, because it is not meant for the model.
fn conversation_command(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?.strip_prefix('/')?;
    let is_own = slash::find(word).is_some() && word != "help";
    is_own.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_prompt() -> PermissionPrompt {
        let mut prompt = PermissionPrompt::default();
        prompt.answers = vec![
            AllowedAnswer::once(PermissionDecision::AllowOnce, "Yes"),
            AllowedAnswer::for_pattern(
                PermissionDecision::AllowAlways,
                1,
                "Yes, any `ls` in this folder",
            ),
            AllowedAnswer::once(PermissionDecision::Deny, "No"),
        ];
        prompt
    }

    fn read_typed_line(line: &str) -> Result<TypedAnswer, String> {
        read_answer(line, &sample_prompt(), AnswerChoices::Full)
    }

    fn answer_once(decision: PermissionDecision) -> Result<TypedAnswer, String> {
        Ok(TypedAnswer::Answer(PermissionAnswer::once(decision)))
    }

    #[test]
    fn plain_words_allow_or_deny_the_call() {
        for yes in ["y", "Y", "yes", "Yes.", "ok", "OK", "sure", "Sure!", "yes please", "1"] {
            assert_eq!(read_typed_line(yes), answer_once(PermissionDecision::AllowOnce), "{yes}");
        }
        for no in ["n", "No", "no.", "nope", "3"] {
            assert_eq!(read_typed_line(no), answer_once(PermissionDecision::Deny), "{no}");
        }
        assert_eq!(read_typed_line("e"), Ok(TypedAnswer::Edit));
    }

    #[test]
    fn sentence_denies_the_call_and_becomes_the_comment() {
        for words in [
            "use cargo instead",
            "no, because of 2",
            "yes, but not in src",
            "/tmp is the wrong place",
            "why",
            "never",
        ] {
            let comment = Some(words.to_owned());
            let answer =
                PermissionAnswer { comment, ..PermissionAnswer::once(PermissionDecision::Deny) };
            assert_eq!(read_typed_line(words), Ok(TypedAnswer::Answer(answer)), "{words}");
        }
    }

    #[test]
    fn number_selects_only_an_answer_that_is_shown() {
        let always = PermissionAnswer {
            pattern: Some(1),
            ..PermissionAnswer::once(PermissionDecision::AllowAlways)
        };
        assert_eq!(read_typed_line("2"), Ok(TypedAnswer::Answer(always.clone())));
        assert_eq!(read_typed_line("always"), Ok(TypedAnswer::Answer(always)));
        let short = |line| read_answer(line, &sample_prompt(), AnswerChoices::Short);
        assert_eq!(short("2"), Err(NO_ROOM.to_owned()));
        assert_eq!(short("always"), Err(NO_ROOM.to_owned()));
        assert_eq!(short("1"), answer_once(PermissionDecision::AllowOnce));
    }

    #[test]
    fn mode_can_be_chosen_only_if_it_is_shown() {
        let mut plan = PermissionPrompt::default();
        plan.answers = vec![
            AllowedAnswer::with_mode("ask", "Yes, and ask before each change"),
            AllowedAnswer::with_mode("accept-edits", "Yes, and edit files without asking"),
            AllowedAnswer::once(PermissionDecision::Deny, "No"),
        ];
        let in_mode = |mode: &str| {
            let mode = Some(mode.to_owned());
            let once = PermissionAnswer::once(PermissionDecision::AllowOnce);
            Ok(TypedAnswer::Answer(PermissionAnswer { mode, ..once }))
        };
        assert_eq!(read_answer("2", &plan, AnswerChoices::Full), in_mode("accept-edits"));
        assert_eq!(read_answer("2", &plan, AnswerChoices::Short), Err(NO_ROOM.to_owned()));
        assert_eq!(read_answer("y", &plan, AnswerChoices::Short), in_mode("ask"));
        let begin = |form| answer_help(&plan, form).lines().take(3).collect::<Vec<_>>().join("\n");
        assert_eq!(
            begin(AnswerChoices::Full),
            "y, 1: run it once; the mode is then ask\n\
             2: run it once; the mode is then accept-edits\n\
             n, 3: do not run it"
        );
        let short = answer_help(&plan, AnswerChoices::Short);
        assert!(short.starts_with("y: run it once; the mode is then ask\nn, 3: do not"), "{short}");
    }

    #[test]
    fn unclear_answer_decides_nothing() {
        assert_eq!(read_typed_line(""), Err(String::new()));
        for wrong in ["0", "4", "99999999999999999999", "a", "a2", "y2", "t"] {
            let told = read_typed_line(wrong).unwrap_err();
            assert!(told.starts_with("type y, n, a number from 1 to 3"), "{wrong}: {told}");
        }
        let told = read_typed_line("/mode read-only").unwrap_err();
        assert_eq!(told, "answer the question first, then use `/mode`");
    }

    #[test]
    fn each_answer_is_explained_in_a_line() {
        let help = read_typed_line("?").unwrap_err();
        let lines: Vec<&str> = help.lines().collect();
        assert_eq!(lines[0], "y, 1: run it once");
        assert!(lines[1].starts_with("2: run it, and do not ask again in this folder"), "{help}");
        assert_eq!(lines[2], "n, 3: do not run it");
        assert_eq!(lines.len(), 6);
    }
}
