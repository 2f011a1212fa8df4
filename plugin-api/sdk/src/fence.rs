//! The panic fence: no panic of a plugin crosses the boundary.
//!
//! It covers each poll, drop and plain call of the host. The plugin's panic hook keeps the message
//! of the last panic per thread, so that the error contains its text and location.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use jaato_plugin_api::abi::LogBox;
use jaato_types::{Error, ErrorKind};
use pin_project_lite::pin_project;

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A part of tokio's panic message in a future that it does not run.
const NO_REACTOR: &str = "there is no reactor running";

/// The remedy for that.
const TOKIO_HINT: &str = "the plugin's author must run this future with \
    `jaato_plugin_sdk::tokio::run`, which the feature `tokio` of the sdk adds";

static LOG: OnceLock<LogBox> = OnceLock::new();

/// Redirects this plugin's panic messages from the terminal to the host's log.
pub(crate) fn install_hook(log: LogBox) {
    if LOG.set(log).is_err() {
        return;
    }
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!(" at {}:{}", at.file(), at.line()));
        let text = panic_message(info.payload()).unwrap_or("a panic without a text");
        let line = format!("panicked{}: {text}", place.unwrap_or_default());
        if let Some(log) = LOG.get() {
            log.log(1, line.as_str().into());
        }
        // If the thread is exiting, the slot may be gone. The log has the line.
        let _ = LAST_PANIC.try_with(|slot| slot.replace(Some(line)));
    }));
}

/// Runs a closure and converts a panic to an error.
pub(crate) fn run_fenced<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).map_err(panic_error)
}

fn panic_error(payload: Box<dyn Any + Send>) -> Error {
    let said = LAST_PANIC.try_with(RefCell::take).ok().flatten();
    let text = said.unwrap_or_else(|| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
            .map_or_else(|| "the plugin panicked".to_owned(), |text| format!("panicked: {text}"))
    });
    drop_payload(payload);
    let needs_tokio = text.contains(NO_REACTOR);
    let error = Error::new(ErrorKind::PluginPanicked, text);
    if needs_tokio { error.with_hint(TOKIO_HINT) } else { error }
}

fn panic_message(payload: &(dyn Any + Send)) -> Option<&str> {
    let owned = || payload.downcast_ref::<String>().map(String::as_str);
    payload.downcast_ref::<&str>().copied().or_else(owned)
}

/// Drops the payload of a panic. If that drop panics too, the second payload is leaked instead of
/// dropped.
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

pin_project! {
    /// A future whose polls and drop are fenced.
    pub(crate) struct FencedFuture<F> {
        #[pin]
        inner: Option<F>,
    }

    impl<F> PinnedDrop for FencedFuture<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // Drops the future here, inside the fence. The field then has nothing left to drop.
            let _ = run_fenced(|| this.inner.set(None));
        }
    }
}

impl<F> FencedFuture<F> {
    pub(crate) fn new(inner: F) -> Self {
        Self { inner: Some(inner) }
    }
}

impl<F: Future> Future for FencedFuture<F> {
    type Output = Result<F::Output, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            let text = "a future was polled after it finished";
            return Poll::Ready(Err(Error::new(ErrorKind::HostBug, text)));
        };
        let polled = match run_fenced(|| inner.poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(error) => Err(error),
        };
        // Dropped here rather than with the box, so that a panic in the drop becomes an error of
        // this call.
        let dropped = run_fenced(|| this.inner.set(None));
        Poll::Ready(polled.and_then(|output| dropped.map(|()| output)))
    }
}

/// A value whose drop is fenced.
pub(crate) struct FencedDrop<T>(Option<T>);

impl<T> FencedDrop<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Takes the value out, once. The caller must drop it inside the fence.
    pub(crate) fn take_value(&mut self) -> Option<T> {
        self.0.take()
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Drop for FencedDrop<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        let _ = run_fenced(|| drop(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_without_a_tokio_runtime_names_the_remedy() {
        let naive = "there is no reactor running, must be called from the context of a Tokio 1.x \
                     runtime";
        let hint = |text: &'static str| run_fenced(|| panic!("{text}")).unwrap_err().hint;
        assert_eq!(hint(naive).as_deref(), Some(TOKIO_HINT));
        assert_eq!(hint("boom"), None);
    }
}
