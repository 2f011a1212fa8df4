//! Fences: stop panics of a plugin's raw export and of the host's own services at the call.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jaato_types::{Error, ErrorKind};

/// Runs host code that a plugin called. A panic is a bug of the host and must not cross the
/// boundary.
///
/// # Errors
/// `host_bug` if the code panics.
pub fn run_host_code<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = format!("a service of the host panicked: {}", panic_message(payload.as_ref()));
        drop_payload(payload);
        Error::new(ErrorKind::HostBug, text).with_hint(
            "report it to jaato's developers, because the plugin did not cause it".to_owned(),
        )
    })
}

/// Runs code of a plugin, and catches a panic that passed the plugin's own fence.
///
/// # Errors
/// The panic message.
pub fn run_plugin_code<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = panic_message(payload.as_ref()).to_owned();
        drop_payload(payload);
        text
    })
}

/// Drops a panic's payload. If that drop panics too, its payload is leaked instead of dropped.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let owned = || payload.downcast_ref::<String>().map(String::as_str);
    payload.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("without a text")
}
