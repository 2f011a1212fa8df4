//! `tool-reminder`: reminders that wake the session when they are due.
//!
//! Shows background work of an instance, `notify`, and state that outlives the instance.
#![forbid(unsafe_code)]

mod list;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;

pub use list::{REMINDERS_MAX, RefusedReminder, ReminderList, SECONDS_MAX, TEXT_BYTES_MAX};

/// How long a reminder sleeps at once. The remaining time is exact to a second, and a cancelled
/// reminder ends within a second.
const TICK: Duration = Duration::from_secs(1);

/// How often to try to send a reminder while the host accepts no more of them.
const TRIES_MAX: u32 = 10;

/// The pause between tries. The host accepts six notifications a minute.
const BETWEEN_TRIES: Duration = Duration::from_secs(15);

/// The reminders of one session.
pub struct Reminders {
    home: Home,
    list: SharedList,
}

/// The list, which calls and the background work share.
#[derive(Clone)]
struct SharedList(Arc<Mutex<ReminderList>>);

impl SharedList {
    fn lock(&self) -> MutexGuard<'_, ReminderList> {
        // The lock is only held to change one reminder.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reminders {
    /// Runs a reminder in the background until it is due or cancelled. It ends with the instance.
    fn start_reminder(&self, number: u64) {
        let (home, list) = (self.home.clone(), self.list.clone());
        self.home.spawn(async move {
            // Closures, so that the list is not locked while the reminder sleeps.
            let is_waiting = || list.lock().is_waiting(number);
            let tick = || list.lock().count_second(number);
            while is_waiting() {
                if home.sleep(TICK).await.is_err() {
                    return;
                }
                tick();
            }
            wake_reminder(&home, &list, number).await;
        });
    }
}

/// Notifies the session. A reminder that cannot be sent stays on the list, with the reason.
async fn wake_reminder(home: &Home, list: &SharedList, number: u64) {
    for _ in 0..TRIES_MAX {
        // It may be cancelled while it waits for its next try.
        let Some(text) = list.lock().text(number) else { return };
        let Err(error) = home.notify(format!("reminder {number}: {text}")).await else {
            list.lock().cancel(number);
            return;
        };
        let is_temporary = error.kind == ErrorKind::LimitReached;
        list.lock().fail(number, error.message.clone());
        if !is_temporary || home.sleep(BETWEEN_TRIES).await.is_err() {
            home.log(LogLevel::Warn, format!("reminder {number} was not sent: {}", error.message));
            return;
        }
    }
}

impl State for Reminders {
    async fn create(home: &Home, saved: Option<Value>) -> Result<Self> {
        let list = saved.map(serde_json::from_value::<ReminderList>).transpose();
        let list = list.map_err(|error| Error::failed(format!("the saved reminders: {error}")))?;
        let list = list.unwrap_or_default();
        let waiting: Vec<u64> = list.numbers().collect();
        let reminders = Self { home: home.clone(), list: SharedList(Arc::new(Mutex::new(list))) };
        for number in waiting {
            reminders.start_reminder(number);
        }
        Ok(reminders)
    }

    async fn save(&self) -> Result<Option<Value>> {
        Ok(serde_json::to_value(&*self.list.lock()).ok())
    }

    fn describe(description: &mut Description) {
        description.services = vec!["notify".to_owned()];
    }
}

/// Wakes this session in a while with a text. Returns the reminder's number at once.
#[tool_fn(
    destructive = false,
    open_world = false,
    auto_approval,
    example("remind me of the tea in five minutes", text = "the tea is ready", seconds = 300)
)]
async fn remind_me(
    cx: &Cx<Reminders>,
    /// What to be reminded of, at most 1,000 bytes.
    text: String,
    /// In how many seconds, at most a day (86,400).
    seconds: u64,
) -> Result<Output> {
    let number = cx.state().list.lock().add(&text, seconds).map_err(refusal_error)?;
    cx.state().start_reminder(number);
    Ok(Output::json(json!({ "number": number })))
}

/// Lists the reminders that wait, and those that could not be told, with the reason.
#[tool_fn(read_only, open_world = false, example("which reminders are there?"))]
async fn list_reminders(cx: &Cx<Reminders>) -> Result<Output> {
    Ok(Output::json(json!({ "reminders": cx.state().list.lock().to_model_json() })))
}

/// Cancels a reminder by its number. Returns whether there was one.
#[tool_fn(
    destructive = false,
    idempotent,
    open_world = false,
    auto_approval,
    example("no tea", number = 1)
)]
async fn cancel_reminder(
    cx: &Cx<Reminders>,
    /// The number that `remind_me` gave.
    number: u64,
) -> Result<Output> {
    let cancelled = cx.state().list.lock().cancel(number);
    Ok(Output::json(json!({ "cancelled": cancelled })))
}

/// Converts a refusal to an error with a hint for the model.
fn refusal_error(refused: RefusedReminder) -> Error {
    match refused {
        RefusedReminder::Text => {
            let text = format!("a reminder has 1 to {TEXT_BYTES_MAX} bytes of text");
            Error::new(ErrorKind::InvalidArguments, text)
        }
        RefusedReminder::Seconds => {
            let text = format!("a reminder waits at most {SECONDS_MAX} seconds");
            Error::new(ErrorKind::InvalidArguments, text)
        }
        RefusedReminder::Full => {
            let text = format!("the list already has {REMINDERS_MAX} reminders");
            Error::new(ErrorKind::LimitReached, text)
                .with_hint("cancel one with `cancel_reminder`; `list_reminders` lists them")
        }
    }
}

export_plugin! { state: Reminders, tools }
