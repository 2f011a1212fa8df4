//! The panic hook of a program with a linked plugin. A test program of its own, because a process
//! has one hook.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use jaato_library::{ErrorKind, Jaato, blocking::BlockingJaato};
use jaato_plugin_sdk::prelude::*;

/// Panics.
#[tool_fn]
pub async fn fall(_cx: &Cx) -> Result<Output> {
    panic!("inside of the plugin")
}

export_plugin! { state: (), tools }

#[test]
fn panics_of_the_program_reach_its_hook_and_those_of_a_linked_plugin_do_not() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    std::panic::set_hook(Box::new(move |info| {
        kept.lock().unwrap().push(info.payload_as_str().unwrap_or_default().to_owned());
    }));
    let jaato = BlockingJaato::start(Jaato::builder().plugin(__jaato::MODULE)).unwrap();
    let error = jaato.call("fall", json!({})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PluginPanicked);
    assert!(error.message.contains("inside of the plugin"), "{error}");
    assert_eq!(*seen.lock().unwrap(), Vec::<String>::new());
    std::panic::catch_unwind(|| panic!("outside of the plugin")).unwrap_err();
    assert_eq!(*seen.lock().unwrap(), ["outside of the plugin"]);
    jaato.close();
}
