//! Plugins' forms for the user: checked, one at a time, with events for each form and its answer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jaato_types::ask::{FORMS_WAITING_MAX, Form, FormAnswer, FormOutcome};
use jaato_types::{Error, ErrorKind, Event, PluginName, Result};
use tokio::sync::watch;

use crate::Cancel;
use crate::ask::FormQuestion;
use crate::form_check::{check_answer, check_form};
use crate::session::SessionShared;

/// How often a client may give an answer that does not fit the form.
const ANSWERS_MAX: u32 = 3;

/// The forms of a session.
#[derive(Default)]
pub(crate) struct SessionForms {
    /// Held while the user has a form.
    shown: tokio::sync::Mutex<()>,
    waiting: watch::Sender<usize>,
    asked: AtomicU64,
    /// Set when the session takes no more forms.
    over: Cancel,
}

/// A form that is shown or waits. It is counted until it is dropped.
struct CountedForm<'a>(&'a watch::Sender<usize>);

impl<'a> CountedForm<'a> {
    /// Counts one more. Returns `None` if too many wait.
    fn try_count(waiting: &'a watch::Sender<usize>) -> Option<Self> {
        let has_room = waiting.send_if_modified(|count| {
            let has_room = *count <= FORMS_WAITING_MAX;
            *count += usize::from(has_room);
            has_room
        });
        has_room.then(|| Self(waiting))
    }
}

impl Drop for CountedForm<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// A form that was announced. Dropping it without an answer means that it was withdrawn.
struct AnnouncedForm<'a> {
    shared: &'a SessionShared,
    form_id: String,
    source: String,
    outcome: FormOutcome,
}

impl Drop for AnnouncedForm<'_> {
    fn drop(&mut self) {
        self.shared.emitter.emit(Event::FormAnswered {
            form_id: std::mem::take(&mut self.form_id),
            source: std::mem::take(&mut self.source),
            outcome: self.outcome,
        });
    }
}

impl SessionForms {
    /// Asks the user.
    pub(crate) async fn ask_form(
        &self,
        plugin: &PluginName,
        form: &Form,
        shared: &SessionShared,
    ) -> Result<FormAnswer> {
        check_form(form)?;
        if let Some(reason) = shared.ports.asker.unavailable_reason() {
            return Ok(FormAnswer::without_user(reason));
        }
        let Some(_counted) = CountedForm::try_count(&self.waiting) else {
            let text = format!("{FORMS_WAITING_MAX} forms are already waiting for the user");
            return Err(Error::new(ErrorKind::LimitReached, text).temporary());
        };
        let asking = self.ask_exclusively(plugin, form, shared);
        tokio::select! {
            biased;
            () = self.over.cancelled() => Err(Error::cancelled()),
            answer = asking => Ok(answer),
        }
    }

    /// Withdraws all forms, including new ones, and waits until that was announced.
    pub(crate) async fn withdraw_forms(&self) {
        self.over.cancel();
        // This cannot fail, because the sender is `self.waiting`.
        let _ = self.waiting.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Asks once no other form is shown.
    async fn ask_exclusively(
        &self,
        plugin: &PluginName,
        form: &Form,
        shared: &SessionShared,
    ) -> FormAnswer {
        let _shown = self.shown.lock().await;
        let form_id = format!("form_{}", self.asked.fetch_add(1, Relaxed) + 1);
        let source = plugin.as_str().to_owned();
        shared.emitter.emit(Event::FormAsked {
            form_id: form_id.clone(),
            source: source.clone(),
            form: form.clone(),
        });
        let outcome = FormOutcome::Cancelled;
        let mut announced = AnnouncedForm { shared, form_id: form_id.clone(), source, outcome };
        let agent = shared.agent.lock().as_ref().map(|agent| agent.name.clone());
        let session = &shared.id;
        let question =
            FormQuestion { session, agent: agent.as_deref(), plugin, id: &form_id, form };
        for _ in 0..ANSWERS_MAX {
            let answer = shared.ports.asker.ask_form(question).await;
            if check_answer(form, &answer).is_ok() {
                announced.outcome = answer.outcome;
                return answer;
            }
        }
        announced.outcome = FormOutcome::Nobody;
        FormAnswer::without_user(format!("{ANSWERS_MAX} answers did not fit the form"))
    }
}
