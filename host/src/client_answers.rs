//! `jaato run --answers`: a program answers the user's questions, with JSON lines on standard
//! input.
//!
//! An event (`permission_asked`, `form_asked`) announces a question, and an answer names it by that
//! event's id. Errors in a line are reported on standard error, and as an event, because not every
//! client reads standard error. They contain nothing of the line except its id, because an answer
//! may be a secret.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_runtime::ANSWER_MS;
use jaato_runtime::session_loop::{
    EventEmitter, EventSink, FormQuestion, NoAnswer, PermissionAsker, UserAsker,
};
use jaato_runtime::types::ask::FormAnswer;
use jaato_runtime::types::permission_prompt::{
    PermissionAnswer, PermissionDecision, PermissionPrompt,
};
use jaato_runtime::types::{Error, ErrorKind, Event, EventEnvelope, SessionId};
use jaato_runtime::visible;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::conversation::SessionObservers;
use crate::input_lines::read_lines;
use crate::report;
use crate::terminal::exact_line;
use crate::view::View;

/// How many faulty lines are reported. A client that writes more does not read what jaato writes.
const PROBLEMS_TOLD_MAX: usize = 100;
/// How many closed questions are remembered, to distinguish a second answer from one to an unknown
/// question.
const REMEMBERED_MAX: usize = 256;
/// How often a form may get an answer that does not fit it.
const ANSWERS_MAX: usize = 3;
/// The longest comment on a decision, in bytes, because the model reads it.
const COMMENT_BYTES_MAX: usize = 16 * 1024;
/// The columns of an id in messages.
const ID_COLUMNS: usize = 80;

/// The format of a line.
const HINT: &str = "a line is {\"answer\": {\"call_id\": …, \"decision\": \"allow_once\" or \"allow_in_turn\" \
or \"allow_in_session\" or \"allow_always\" or \"deny\" or \"deny_in_turn\" or \"deny_in_session\" or \"deny_always\" or \"edit\", \
\"pattern\": …, \"mode\": …, \"comment\": …, \"arguments\": …}} or {\"answer\": {\"form_id\": …, \"outcome\": \
\"answered\" or \"declined\", \"values\": {…}}}";

/// The program that answers.
#[derive(Clone, Default)]
pub struct AnswerClient(Arc<AnswerClientInner>);

#[derive(Default)]
struct AnswerClientInner {
    state: Mutex<AnswerClientState>,
    /// Wakes tasks that wait for an answer.
    changed: Notify,
}

#[derive(Default)]
struct AnswerClientState {
    /// Questions that were announced and are still open.
    open: BTreeMap<OpenQuestionKey, PendingQuestion>,
    /// Closed questions, the newest last.
    over: VecDeque<OpenQuestionKey>,
    /// Why no more answers will come.
    ended: Option<String>,
    /// The session's events, once it has started.
    emitter: Option<EventEmitter>,
    /// The faults that were found before that.
    early: Vec<Event>,
}

/// The key of a question: its id, which another session may also use, and its session.
type OpenQuestionKey = (String, SessionId);

/// An open question.
struct PendingQuestion {
    asked: OpenQuestionKind,
    /// Its answer, until that is taken.
    given: Option<ClientAnswer>,
}

/// The kind of an open question: a permission prompt, with the answers that it allows, or a form.
#[derive(Debug, Clone, PartialEq)]
enum OpenQuestionKind {
    Prompt(Box<PermissionPrompt>),
    Form,
}

/// An answer, and the question that it names.
#[derive(Debug, Clone, PartialEq)]
struct AddressedAnswer {
    id: String,
    /// The session, if several sessions ask.
    session: Option<SessionId>,
    given: ClientAnswer,
}

/// A client's answer.
#[derive(Debug, Clone, PartialEq)]
enum ClientAnswer {
    Decision(PermissionAnswer),
    Form(FormAnswer),
}

/// Records each question before it is announced, so that no answer can come too early.
struct QuestionRecorder {
    client: AnswerClient,
    view: Arc<View>,
}

impl EventSink for QuestionRecorder {
    fn receive_event(&self, envelope: EventEnvelope) {
        let session = &envelope.session;
        match &envelope.event {
            Event::FormAsked { form_id, .. } => {
                self.client.open_question(form_id, session, OpenQuestionKind::Form)
            }
            Event::PermissionAsked(prompt) => {
                let asked = OpenQuestionKind::Prompt(prompt.clone());
                self.client.open_question(prompt.call_id.as_str(), session, asked);
            }
            _ => {}
        }
        self.view.receive_event(envelope);
    }
}

/// A question that waits. Dropping it closes it.
struct QuestionGuard<'a> {
    client: &'a AnswerClient,
    key: OpenQuestionKey,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.client.0.state.lock();
        state.open.remove(&self.key);
        state.over.push_back(self.key.clone());
        if state.over.len() > REMEMBERED_MAX {
            state.over.pop_front();
        }
    }
}

impl AnswerClient {
    /// Starts to read answers from standard input.
    pub fn start() -> Self {
        let client = Self::default();
        tokio::spawn(client.clone().read_answers());
        client
    }

    /// Creates the observers of a session whose events go to a view.
    pub fn session_observers(&self, view: &Arc<View>) -> SessionObservers {
        let events = QuestionRecorder { client: self.clone(), view: Arc::clone(view) };
        SessionObservers { events: Arc::new(events), asker: Arc::new(self.clone()) }
    }

    /// Reports faults among the events of this session too.
    pub fn report_to(&self, emitter: EventEmitter) {
        let early = {
            let mut state = self.0.state.lock();
            state.emitter = Some(emitter.clone());
            std::mem::take(&mut state.early)
        };
        early.into_iter().for_each(|event| emitter.emit(event));
    }

    fn refuse_answer(&self, id: Option<&str>, line: Option<u64>, error: Error) {
        let event = Event::AnswerRefused { id: id.map(str::to_owned), line, error };
        let emitter = {
            let mut state = self.0.state.lock();
            let Some(emitter) = state.emitter.clone() else {
                state.early.push(event);
                return;
            };
            emitter
        };
        emitter.emit(event);
    }

    fn open_question(&self, id: &str, session: &SessionId, asked: OpenQuestionKind) {
        let key = (id.to_owned(), session.clone());
        self.0.state.lock().open.entry(key).or_insert(PendingQuestion { asked, given: None });
    }

    fn register_waiting(
        &self,
        id: &str,
        session: &SessionId,
        asked: OpenQuestionKind,
    ) -> QuestionGuard<'_> {
        self.open_question(id, session, asked);
        QuestionGuard { client: self, key: (id.to_owned(), session.clone()) }
    }

    /// Reads lines to the end, each as it arrives.
    async fn read_answers(self) {
        let mut lines = read_lines();
        let (mut number, mut problems) = (0_u64, 0_usize);
        while let Some(line) = lines.recv().await {
            number += 1;
            let taken = match line {
                Ok(line) if line.trim_ascii().is_empty() => Ok(()),
                Ok(line) => parse_answer_line(&line).and_then(|named| self.accept_answer(named)),
                Err(error) if error.kind == ErrorKind::Io => {
                    self.stop_answers(error.message);
                    return;
                }
                Err(error) => Err(error),
            };
            let Err(error) = taken else { continue };
            problems += 1;
            if problems <= PROBLEMS_TOLD_MAX {
                let Error { message, .. } = &error;
                report_answer_error(
                    &format!("line {number} of standard input is not an answer: {message}"),
                    &error,
                );
                self.refuse_answer(None, Some(number), error);
            }
            if problems == PROBLEMS_TOLD_MAX {
                report::print_problems(&[
                    "jaato does not report further lines that are not answers".to_owned(),
                ]);
            }
        }
        self.stop_answers("standard input has ended".to_owned());
    }

    /// Passes an answer to the question that it names.
    fn accept_answer(&self, named: AddressedAnswer) -> Result<(), Error> {
        let AddressedAnswer { id, session, given } = named;
        let names =
            |key: &OpenQuestionKey| key.0 == id && session.as_ref().is_none_or(|it| *it == key.1);
        let mut state = self.0.state.lock();
        let shown = exact_line(&visible::visible_name(&id), ID_COLUMNS);
        let is_over = state.over.iter().any(names);
        let mut found: Vec<&mut PendingQuestion> =
            state.open.iter_mut().filter(|(key, _)| names(key)).map(|(_, slot)| slot).collect();
        let text = match found.as_mut_slice() {
            [slot] if slot.given.is_some() => format!("`{shown}` is already answered"),
            [slot] => match slot.mismatch_reason(&given) {
                Some(why) => format!("`{shown}` {why}"),
                None => {
                    slot.given = Some(given);
                    drop(state);
                    self.0.changed.notify_waiters();
                    return Ok(());
                }
            },
            [] if is_over => format!("`{shown}` is closed: it was answered or withdrawn"),
            [] => format!("no question `{shown}` is waiting"),
            _ => format!("several sessions ask `{shown}`: the answer's `session` says which"),
        };
        Err(Error::new(ErrorKind::InvalidArguments, text))
    }

    /// Records that no more answers will come. Earlier ones still count.
    fn stop_answers(&self, reason: String) {
        self.0.state.lock().ended = Some(reason);
        self.0.changed.notify_waiters();
    }

    /// Waits for an answer.
    ///
    /// # Errors
    /// If no more answers will come. The error has the reason.
    async fn wait_for_answer(&self, open: &QuestionGuard<'_>) -> Result<ClientAnswer, String> {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            // Registers before it checks, so that it does not miss an answer between the two.
            changed.as_mut().enable();
            {
                let mut state = self.0.state.lock();
                if let Some(given) = state.open.get_mut(&open.key).and_then(|it| it.given.take()) {
                    return Ok(given);
                }
                if let Some(reason) = &state.ended {
                    return Err(reason.clone());
                }
            }
            changed.await;
        }
    }
}

fn report_answer_error(text: &str, error: &Error) {
    let hint = error.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    report::print_problems(&[format!("{text}{hint}")]);
}

impl PendingQuestion {
    /// Returns why an answer does not fit this question.
    fn mismatch_reason(&self, given: &ClientAnswer) -> Option<&'static str> {
        match (&self.asked, given) {
            (OpenQuestionKind::Prompt(prompt), ClientAnswer::Decision(answer)) => {
                let why =
                    "does not allow this answer: `answers` of its event lists the allowed ones";
                (!prompt.is_allowed(answer)).then_some(why)
            }
            (OpenQuestionKind::Form, ClientAnswer::Form(_)) => None,
            (OpenQuestionKind::Prompt(_), ClientAnswer::Form(_)) => {
                Some("is a tool call: answer it with `call_id`")
            }
            (OpenQuestionKind::Form, ClientAnswer::Decision(_)) => {
                Some("is a form: answer it with `form_id`")
            }
        }
    }
}

impl PermissionAsker for AnswerClient {
    fn unavailable_reason(&self) -> Option<String> {
        self.0.state.lock().ended.clone()
    }

    fn channel(&self) -> &str {
        "client"
    }

    fn answer_timeout_ms(&self) -> Option<u64> {
        Some(ANSWER_MS)
    }

    fn ask_permission<'a>(
        &'a self,
        session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
        Box::pin(async move {
            let asked = OpenQuestionKind::Prompt(Box::new(prompt.clone()));
            let open = self.register_waiting(prompt.call_id.as_str(), session, asked);
            match self.wait_for_answer(&open).await {
                Ok(ClientAnswer::Decision(answer)) => Ok(answer),
                Ok(ClientAnswer::Form(_)) => unreachable!("checked by `accept_answer`"),
                Err(reason) => Err(NoAnswer { reason }),
            }
        })
    }
}

impl UserAsker for AnswerClient {
    fn ask_form<'a>(&'a self, question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
        Box::pin(async move {
            let open = self.register_waiting(question.id, question.session, OpenQuestionKind::Form);
            for left in (0..ANSWERS_MAX).rev() {
                let answer = match self.wait_for_answer(&open).await {
                    Ok(ClientAnswer::Form(answer)) => answer,
                    Ok(ClientAnswer::Decision(_)) => unreachable!("checked by `accept_answer`"),
                    Err(reason) => return FormAnswer::without_user(reason),
                };
                let Err(error) = question.check_answer(&answer) else { return answer };
                let id = &open.key.0;
                report::print_problems(&[format!(
                    "the answer to `{id}` does not fit the form ({left} more may come): {error}"
                )]);
                self.refuse_answer(Some(id), None, error);
            }
            FormAnswer::without_user(format!("{ANSWERS_MAX} answers did not fit the form"))
        })
    }
}

/// Parses one line. Errors contain nothing of it.
fn parse_answer_line(line: &[u8]) -> Result<AddressedAnswer, Error> {
    let wrong = |text: &str| Error::new(ErrorKind::InvalidArguments, text).with_hint(HINT);
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| wrong(&format!("it is not JSON (column {})", error.column())))?;
    let Some(answer) = value.get("answer").and_then(Value::as_object) else {
        return Err(wrong("it is not a JSON object with an object `answer`"));
    };
    let text = |key: &str| answer.get(key).and_then(Value::as_str);
    let (id, given) = match (text("call_id"), text("form_id")) {
        (Some(id), None) => (id, ClientAnswer::Decision(parse_decision(answer, wrong)?)),
        (None, Some(id)) => (id, ClientAnswer::Form(parse_form_answer(answer, wrong)?)),
        _ => return Err(wrong("`answer` has either a text `call_id` or a text `form_id`")),
    };
    Ok(AddressedAnswer { id: id.to_owned(), session: text("session").map(SessionId::from), given })
}

fn parse_decision(
    answer: &Map<String, Value>,
    wrong: impl Fn(&str) -> Error,
) -> Result<PermissionAnswer, Error> {
    let comment = match answer.get("comment") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.len() <= COMMENT_BYTES_MAX => Some(text.clone()),
        Some(_) => {
            return Err(wrong(&format!(
                "`comment` is not a text of at most {COMMENT_BYTES_MAX} bytes"
            )));
        }
    };
    let pattern = match answer.get("pattern") {
        None | Some(Value::Null) => None,
        Some(number) => match number.as_u64().and_then(|number| usize::try_from(number).ok()) {
            Some(number) => Some(number),
            None => return Err(wrong("`pattern` is not a position in `patterns` (from 0)")),
        },
    };
    let mode = answer.get("mode").and_then(Value::as_str).map(str::to_owned);
    let decision = answer.get("decision").cloned().unwrap_or_default();
    let decision: PermissionDecision = serde_json::from_value(decision)
        .map_err(|_| wrong("`decision` is not a known decision"))?;
    let arguments = match decision {
        PermissionDecision::Edit => match answer.get("arguments") {
            Some(arguments) => Some(arguments.clone()),
            None => return Err(wrong("`edit` requires `arguments`")),
        },
        _ => None,
    };
    Ok(PermissionAnswer { pattern, mode, comment, arguments, ..PermissionAnswer::once(decision) })
}

fn parse_form_answer(
    answer: &Map<String, Value>,
    wrong: impl Fn(&str) -> Error,
) -> Result<FormAnswer, Error> {
    let values = match answer.get("values") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(values)) => values.clone(),
        Some(_) => return Err(wrong("`values` is not an object")),
    };
    let outcome = answer.get("outcome").and_then(Value::as_str);
    match outcome {
        Some("answered") => Ok(FormAnswer::answered(values.into_iter().collect())),
        Some("declined") if values.is_empty() => Ok(FormAnswer::declined()),
        Some("declined") => Err(wrong("a declined form cannot have `values`")),
        _ => Err(wrong("`outcome` is neither `answered` nor `declined`")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_parsed_line(line: &str, expected: Result<(&str, ClientAnswer), &str>) {
        let expected =
            expected.map(|(id, given)| AddressedAnswer { id: id.to_owned(), session: None, given });
        let parsed = parse_answer_line(line.as_bytes()).map_err(|error| error.message);
        assert_eq!(parsed, expected.map_err(str::to_owned), "{line}");
    }

    fn decision_for_call(
        answer: PermissionAnswer,
    ) -> Result<(&'static str, ClientAnswer), &'static str> {
        Ok(("call_1", ClientAnswer::Decision(answer)))
    }

    #[test]
    fn answer_line_decides_a_call_or_answers_a_form() {
        use PermissionDecision as Is;
        let line = |decision: &str| {
            let comment = "use your fingers";
            let answer = json!({ "call_id": "call_1", "decision": decision, "comment": comment });
            json!({ "answer": answer }).to_string()
        };
        let comment = Some("use your fingers".to_owned());
        for (word, decision) in [
            ("allow_once", Is::AllowOnce),
            ("allow_in_turn", Is::AllowInTurn),
            ("allow_in_session", Is::AllowInSession),
            ("deny", Is::Deny),
            ("deny_in_session", Is::DenyInSession),
        ] {
            let comment = comment.clone();
            let answer = PermissionAnswer { comment, ..PermissionAnswer::once(decision) };
            check_parsed_line(&line(word), decision_for_call(answer));
        }
        let once = PermissionAnswer::once;
        check_parsed_line(
            r#"{"answer": {"call_id": "call_1", "decision": "allow_always", "pattern": 2}}"#,
            decision_for_call(PermissionAnswer { pattern: Some(2), ..once(Is::AllowAlways) }),
        );
        check_parsed_line(
            r#"{"answer": {"call_id": "call_1", "decision": "allow_once", "mode": "ask"}}"#,
            decision_for_call(PermissionAnswer {
                mode: Some("ask".to_owned()),
                ..once(Is::AllowOnce)
            }),
        );
        check_parsed_line(
            r#"{"answer": {"call_id": "call_1", "decision": "edit", "arguments": {"a": 1}}}"#,
            decision_for_call(PermissionAnswer {
                arguments: Some(json!({ "a": 1 })),
                ..once(Is::Edit)
            }),
        );
        check_parsed_line(&line("yes"), Err("`decision` is not a known decision"));
        check_parsed_line(
            r#"{"answer": {"form_id": "form_1", "outcome": "declined"}}"#,
            Ok(("form_1", ClientAnswer::Form(FormAnswer::declined()))),
        );
        let values = [("day".to_owned(), json!("monday"))];
        check_parsed_line(
            r#"{"answer": {"form_id": "form_1", "outcome": "answered", "values": {"day": "monday"}}}"#,
            Ok(("form_1", ClientAnswer::Form(FormAnswer::answered(values.into_iter().collect())))),
        );
    }

    #[test]
    fn errors_about_an_answer_line_do_not_repeat_its_content() {
        let object = "it is not a JSON object with an object `answer`";
        for line in ["[]", "1", "{}", r#"{"answer": "hunter2"}"#, r#"{"call_id": "call_1"}"#] {
            check_parsed_line(line, Err(object));
        }
        check_parsed_line("{\"answer\": hunter2", Err("it is not JSON (column 12)"));
        let ids = "`answer` has either a text `call_id` or a text `form_id`";
        check_parsed_line(r#"{"answer": {}}"#, Err(ids));
        check_parsed_line(r#"{"answer": {"call_id": 1, "decision": "deny"}}"#, Err(ids));
        check_parsed_line(r#"{"answer": {"call_id": "a", "form_id": "b"}}"#, Err(ids));
        let values = r#"{"answer": {"form_id": "b", "outcome": "answered", "values": "hunter2"}}"#;
        check_parsed_line(values, Err("`values` is not an object"));
        let outcome = "`outcome` is neither `answered` nor `declined`";
        check_parsed_line(r#"{"answer": {"form_id": "b", "outcome": "hunter2"}}"#, Err(outcome));
        let comment = r#"{"answer": {"call_id": "a", "decision": "deny", "comment": ["hunter2"]}}"#;
        check_parsed_line(comment, Err("`comment` is not a text of at most 16384 bytes"));
        let pattern = r#"{"answer": {"call_id": "a", "decision": "deny", "pattern": "hunter2"}}"#;
        check_parsed_line(pattern, Err("`pattern` is not a position in `patterns` (from 0)"));
        let edit = r#"{"answer": {"call_id": "a", "decision": "edit"}}"#;
        check_parsed_line(edit, Err("`edit` requires `arguments`"));
    }

    fn sample_prompt() -> PermissionPrompt {
        let words = json!({ "answers": [{ "decision": "allow_once", "label": "Yes" }] });
        serde_json::from_value(words).unwrap()
    }

    #[tokio::test]
    async fn answer_is_accepted_once_and_only_for_a_waiting_question() {
        let (client, main) = (AnswerClient::default(), SessionId::from("main"));
        let given =
            || ClientAnswer::Decision(PermissionAnswer::once(PermissionDecision::AllowOnce));
        let prompt = || OpenQuestionKind::Prompt(Box::new(sample_prompt()));
        let take = |id: &str, session: Option<&str>, given| {
            let (id, session) = (id.to_owned(), session.map(SessionId::from));
            client
                .accept_answer(AddressedAnswer { id, session, given })
                .map_err(|error| error.message)
        };
        let told = |id: &str| take(id, None, given());
        assert_eq!(told("call_1"), Err("no question `call_1` is waiting".to_owned()));
        client.open_question("call_1", &main, prompt());
        let always = PermissionAnswer::once(PermissionDecision::AllowAlways);
        let wide = take("call_1", None, ClientAnswer::Decision(always)).unwrap_err();
        assert!(wide.starts_with("`call_1` does not allow this answer"), "{wide}");
        let form = take("call_1", None, ClientAnswer::Form(FormAnswer::declined()));
        assert_eq!(form, Err("`call_1` is a tool call: answer it with `call_id`".to_owned()));
        client.open_question("call_1", &SessionId::from("helper"), prompt());
        let several = "several sessions ask `call_1`: the answer's `session` says which";
        assert_eq!(told("call_1"), Err(several.to_owned()));
        assert_eq!(take("call_1", Some("main"), given()), Ok(()));
        let again = take("call_1", Some("main"), given());
        assert_eq!(again, Err("`call_1` is already answered".to_owned()));
        // It arrived before anything waited for it, and before the end of standard input.
        client.stop_answers("standard input has ended".to_owned());
        let open = client.register_waiting("call_1", &main, prompt());
        assert_eq!(client.wait_for_answer(&open).await, Ok(given()));
        assert_eq!(client.wait_for_answer(&open).await, Err("standard input has ended".to_owned()));
        drop(open);
        let over = "`call_1` is closed: it was answered or withdrawn";
        assert_eq!(take("call_1", Some("main"), given()), Err(over.to_owned()));
        for number in 0..=REMEMBERED_MAX {
            drop(client.register_waiting(&format!("form_{number}"), &main, OpenQuestionKind::Form));
        }
        assert_eq!(client.0.state.lock().over.len(), REMEMBERED_MAX);
    }
}
