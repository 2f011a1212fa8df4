//! Asks the user at the terminal for permission, for answers to forms, and for secrets that only a
//! program may see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_runtime::session_loop::{
    Cancel, FormQuestion, NoAnswer, PermissionAsker, SecretAnswer, SecretQuestion, UserAsker,
};
use jaato_runtime::types::SessionId;
use jaato_runtime::types::ask::FormAnswer;
use jaato_runtime::types::permission_prompt::{PermissionAnswer, PermissionPrompt};
use parking_lot::Mutex as SyncMutex;
use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard, watch};
use tokio::time::timeout;

use crate::prompts::secret::{self, HiddenInput};
use crate::prompts::{form, permission};
use crate::report;
use crate::terminal::{self, Before, Reply, Text, exact_line};
use crate::view::View;

/// The reason why no user can be asked after the view has ended.
const VIEW_ENDED: &str = "the view has ended";

/// The reason why no user can be asked if questions cannot be shown.
const NOTHING_SHOWN: &str = "standard error is not a terminal";

/// Shown above the draft when a question waits.
const QUESTION_WAITS: &str = "jaato has a question. Enter sends your draft first, Ctrl-C drops it.";

/// How long a draft and a question coexist before the user is informed that the question waits.
const DRAFT_LOOK: Duration = Duration::from_millis(200);

/// Columns of a program's own prompt.
const PROMPT_COLUMNS: usize = 400;

/// Decides who uses the terminal: a question, or the user who types the next message.
#[derive(Default)]
pub struct Stage {
    taken: Arc<Mutex<()>>,
    /// Whether the user is typing the next message.
    is_typed: watch::Sender<bool>,
    /// Questions that wait for the terminal.
    waiting: watch::Sender<usize>,
    /// Text that was typed before a question was shown. It belongs to the next message.
    typed_early: SyncMutex<String>,
    /// Whether there is a next message.
    has_lines: AtomicBool,
}

/// The terminal, reserved for the next message.
pub struct ForLines {
    stage: Arc<Stage>,
    _taken: OwnedMutexGuard<()>,
}

/// Shows if questions wait for the terminal while the user types a message.
#[derive(Debug)]
pub struct WaitingQuestions(watch::Receiver<usize>);

impl WaitingQuestions {
    /// Returns true if a question waits.
    pub fn has_any(&self) -> bool {
        *self.0.borrow() > 0
    }
}

/// A question that waits for the terminal, counted until it is dropped.
struct Waiting<'a>(&'a Stage);

impl<'a> Waiting<'a> {
    fn begin(stage: &'a Stage) -> Self {
        stage.waiting.send_modify(|waiting| *waiting += 1);
        Self(stage)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}

impl Stage {
    /// Reserves the terminal for the next message when no question uses it. Returns `None` if the
    /// conversation ends first.
    pub async fn for_lines(self: &Arc<Self>, over: &Cancel) -> Option<ForLines> {
        let _taken = tokio::select! {
            taken = Arc::clone(&self.taken).lock_owned() => taken,
            () = over.cancelled() => return None,
        };
        Some(ForLines { stage: Arc::clone(self), _taken })
    }

    /// Records that messages are read, so that text typed before a question is kept for the next
    /// message.
    pub fn keep_lines(&self) {
        self.has_lines.store(true, Relaxed);
    }

    fn before(&self) -> Before<'_> {
        // If lines are piped in, text typed at the terminal is not a message.
        let are_typed = self.has_lines.load(Relaxed) && terminal::input_is_terminal();
        if are_typed { Before::Kept(&self.typed_early) } else { Before::Dropped }
    }

    /// Reserves the terminal for a question. An idle prompt gives way to it, but it waits for a
    /// message that the user is typing.
    async fn for_question(&self) -> MutexGuard<'_, ()> {
        let _waiting = Waiting::begin(self);
        let taken_later = self.taken.lock();
        tokio::pin!(taken_later);
        let mut is_typed = self.is_typed.subscribe();
        let taken = tokio::select! {
            biased;
            taken = &mut taken_later => Some(taken),
            // This cannot fail, because `self` holds the sender.
            _ = is_typed.wait_for(|is_typed| *is_typed) => None,
        };
        if let Some(taken) = taken {
            return taken;
        }
        // A line that was just sent is not a draft.
        match timeout(DRAFT_LOOK, &mut taken_later).await {
            Ok(taken) => taken,
            Err(_) => {
                report::print_remark(QUESTION_WAITS);
                taken_later.await
            }
        }
    }

    /// Reserves the terminal for a question that a running call asks. Returns `None` while the user
    /// types the next message, because that may take any amount of time.
    async fn for_urgent_question(&self) -> Option<MutexGuard<'_, ()>> {
        let mut is_typed = self.is_typed.subscribe();
        tokio::select! {
            biased;
            // This cannot fail, because `self` holds the sender.
            _ = is_typed.wait_for(|is_typed| *is_typed) => None,
            taken = self.for_question() => Some(taken),
        }
    }
}

impl ForLines {
    /// Takes the text that was typed before a question was seen.
    pub fn typed_early(&self) -> String {
        let text = std::mem::take(&mut *self.stage.typed_early.lock());
        text.trim_end_matches('\n').to_owned()
    }

    /// Records that the user begins to type the message.
    pub fn begin_typing(&self) {
        self.stage.is_typed.send_replace(true);
    }

    /// Returns a view of the questions that wait for the terminal.
    pub fn waiting_questions(&self) -> WaitingQuestions {
        WaitingQuestions(self.stage.waiting.subscribe())
    }

    /// Becomes ready when a question waits for the terminal.
    pub async fn wanted(&self) {
        let mut waiting = self.stage.waiting.subscribe();
        // This cannot fail, because the stage holds the sender.
        let _ = waiting.wait_for(|waiting| *waiting > 0).await;
    }
}

impl Drop for ForLines {
    fn drop(&mut self) {
        self.stage.is_typed.send_replace(false);
    }
}

/// Asks on standard error if that is a terminal, and reads the answer from the keyboard.
pub struct TerminalAsker {
    view: Arc<View>,
    stage: Arc<Stage>,
}

impl TerminalAsker {
    /// Creates an asker for a view and its terminal.
    pub fn new(view: Arc<View>, stage: Arc<Stage>) -> Self {
        Self { view, stage }
    }

    fn nobody_there(&self) -> Option<&'static str> {
        match (terminal::input_is_terminal(), terminal::errors_are_terminal()) {
            (true, true) => None,
            (true, false) => Some(NOTHING_SHOWN),
            (false, true) => terminal::nobody_types(),
            (false, false) => Some(terminal::NO_TERMINAL),
        }
    }
}

impl PermissionAsker for TerminalAsker {
    fn unavailable_reason(&self) -> Option<String> {
        self.nobody_there().map(str::to_owned)
    }

    fn channel(&self) -> &str {
        "terminal"
    }

    fn ask_permission<'a>(
        &'a self,
        _session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        Box::pin(async move {
            let _taken = self.stage.for_question().await;
            let open = self.view.open_question().await;
            let open = open.ok_or_else(|| NoAnswer::new(VIEW_ENDED))?;
            let answered =
                permission::ask_permission(Arc::new(open), prompt, self.stage.before()).await;
            match answered {
                Ok(Reply::Answer(answer)) => Ok(answer),
                Ok(Reply::Nobody(reason)) => Err(NoAnswer { reason }),
                Err(error) => Err(NoAnswer::new(error.to_string())),
            }
        })
    }
}

impl UserAsker for TerminalAsker {
    fn ask_secret<'a>(&'a self, question: SecretQuestion<'a>) -> BoxFuture<'a, SecretAnswer> {
        let nobody = |reason: &str| SecretAnswer::Nobody { reason: reason.to_owned() };
        Box::pin(async move {
            if let Some(reason) = self.nobody_there() {
                return nobody(reason);
            }
            let Some(_taken) = self.stage.for_urgent_question().await else {
                return nobody("the next message is being typed at the terminal");
            };
            let Some(open) = self.view.open_question().await else {
                return nobody(VIEW_ENDED);
            };
            match secret::ask_secret(&open, &secret_text(&question)).await {
                Ok(HiddenInput::Typed(secret)) => SecretAnswer::Typed(secret),
                Ok(HiddenInput::Declined) => SecretAnswer::Declined,
                Err(error) => nobody(&error.to_string()),
            }
        })
    }

    fn ask_form<'a>(&'a self, question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
        Box::pin(async move {
            let _taken = self.stage.for_question().await;
            let Some(open) = self.view.open_question().await else {
                return FormAnswer::without_user(VIEW_ENDED);
            };
            let answered = form::ask_form(Arc::new(open), &question, self.stage.before()).await;
            answered.unwrap_or_else(|error| FormAnswer::without_user(error.to_string()))
        })
    }
}

/// Names the program before its prompt, because the prompt may contain any text.
fn secret_text(question: &SecretQuestion<'_>) -> Text {
    let SecretQuestion { plugin, name, command, prompt } = question;
    let [name, command, prompt] = [name, command, prompt].map(|it| exact_line(it, PROMPT_COLUMNS));
    Text::new().plain(&format!(
        "{} of {plugin} runs `{command}`, which asks for a secret.\n\
         What you type now goes only to that program and is not shown; Ctrl-C declines.\n\
         {} ",
        name,
        prompt.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use jaato_runtime::types::PluginName;

    use super::*;

    #[tokio::test]
    async fn a_secret_waits_for_another_question_and_not_for_the_next_message() {
        let (stage, over) = (Arc::new(Stage::default()), Cancel::new());
        let lines = stage.for_lines(&over).await.unwrap();
        lines.begin_typing();
        assert!(stage.for_urgent_question().await.is_none());
        drop(lines);
        let question = stage.for_urgent_question().await;
        assert!(question.is_some());
        // The next message waits for the question while the conversation runs.
        over.cancel();
        assert!(stage.for_lines(&over).await.is_none());
        drop(question);
        assert!(stage.for_urgent_question().await.is_some());
    }

    #[tokio::test]
    async fn a_prompt_without_a_key_gives_way_to_a_question() {
        let (stage, over) = (Arc::new(Stage::default()), Cancel::new());
        let lines = stage.for_lines(&over).await.unwrap();
        let asks = Arc::clone(&stage);
        let asking = tokio::spawn(async move { asks.for_urgent_question().await.is_some() });
        lines.wanted().await;
        let questions = lines.waiting_questions();
        assert!(questions.has_any());
        drop(lines);
        assert!(asking.await.unwrap());
        // No question waits for the terminal.
        assert!(!questions.has_any());
    }

    #[test]
    fn a_question_for_a_secret_says_who_asks_and_cannot_pass_for_another() {
        let plugin = PluginName::from("tool-x");
        let prompt = "password:\u{1b}[2J\nrun it? ";
        let question = SecretQuestion { plugin: &plugin, name: "session_0", command: "su", prompt };
        let text = secret_text(&question).styled(console::Style::new);
        assert!(text.starts_with("session_0 of tool-x runs `su`, which asks"), "{text}");
        assert!(text.ends_with("\npassword:<U+001B>[2J run it? "), "{text}");
    }
}
