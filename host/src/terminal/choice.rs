//! Asks the user to choose one of several answers.

use std::sync::Arc;

use super::{
    Before, Dialog, Look, Reply, Text, ask, errors_are_terminal, nobody_types, open_question,
};
use crate::exit::{CommandFailure, Exit};
use crate::signals;

/// Returns true if a user at the terminal can choose.
pub fn can_choose() -> bool {
    nobody_types().is_none() && errors_are_terminal()
}

/// Asks until the user chooses an answer of the dialog. The last answer chooses none. `fold`
/// returns the row that replaces the question. Returns `None` if no one can answer.
///
/// # Errors
/// If the terminal is gone.
pub async fn choose(
    dialog: Dialog,
    fold: impl Fn(usize) -> Text,
) -> Result<Option<Option<usize>>, CommandFailure> {
    let offers = dialog.answers.len().saturating_sub(1);
    // If it were killed during the question, jaato would leave the terminal raw.
    let ending = signals::end_on_signals();
    let read = |line: &str| read_answer(line, offers);
    let fold = |answer: &Option<usize>| answer.map(&fold);
    let answer = ask(Arc::new(open_question()), dialog, Before::Dropped, read, fold).await;
    drop(ending);
    match answer {
        Ok(Reply::Answer(answer)) => Ok(Some(answer)),
        Ok(Reply::Nobody(_)) => Ok(None),
        Err(error) => Err(CommandFailure::new(Exit::Failed, format!("cannot ask: {error}"))),
    }
}

/// Asks a question that is answered with yes or no. `notes` are lines below it, and `done` replaces
/// it after a yes. Returns false if no one can answer.
///
/// # Errors
/// If the terminal is gone.
pub async fn confirm(
    title: &str,
    notes: impl IntoIterator<Item = String>,
    done: &str,
) -> Result<bool, CommandFailure> {
    let mut dialog = Dialog::choice(title, vec!["yes".to_owned(), "no".to_owned()]);
    dialog.notes = notes.into_iter().map(|line| (Look::Plain, line)).collect();
    let answer = choose(dialog, |_| Text::new().with(Look::Green, done)).await?;
    Ok(answer.flatten().is_some())
}

/// Parses the number of an answer. The one after the offers chooses none.
fn read_answer(line: &str, offers: usize) -> Result<Option<usize>, String> {
    match line.to_ascii_lowercase().as_str() {
        "" => Err(String::new()),
        "y" | "yes" => Ok(Some(0)),
        "n" | "no" => Ok(None),
        line => match line.parse::<usize>() {
            Ok(number @ 1..) if number <= offers => Ok(Some(number - 1)),
            Ok(number) if number == offers + 1 => Ok(None),
            _ => Err(format!("type a number from 1 to {}", offers + 1)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_accepts_only_an_offered_number_or_yes_or_no() {
        let read = |line| read_answer(line, 2);
        assert_eq!([read("1"), read("2"), read("y")], [Ok(Some(0)), Ok(Some(1)), Ok(Some(0))]);
        assert_eq!([read("3"), read("n")], [Ok(None), Ok(None)]);
        for line in ["", "0", "4", "sure", "-1"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
