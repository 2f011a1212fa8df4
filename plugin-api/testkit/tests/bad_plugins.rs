//! Tests that the suites find faults: each faulty plugin fails the matching check.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::time::Duration;

use jaato_plugin_testkit::conformance::{
    ConformanceCheck, ConformanceSuite, gc, plugin, provider, tool,
};
use jaato_plugin_testkit::{FakeHost, Module, PluginKind};

/// Defines a plugin in its own module. (`export_plugin!` exports a symbol that a binary can have
/// only once, so these plugins use the parts of that macro.)
macro_rules! plugin {
    (state: $state:ty $(, tools: [$($tool:ty),*])? $(, provider: $provider:ty)? $(, gc: $gc:ty)?) => {
        pub fn module() -> super::Module {
            use jaato_plugin_sdk::__private as private;
            use private::abi::abi_stable::std_types::{RResult, RVec};
            type Answer<T> = RResult<T, RVec<u8>>;

            fn definition() -> private::Definition<$state> {
                #[allow(unused_mut)]
                let mut tools: Vec<&'static private::ToolEntry<$state>> = Vec::new();
                $($({
                    static ENTRY: private::ToolEntry<$state> =
                        private::ToolEntry::for_tool::<$tool>();
                    tools.push(&ENTRY);
                })*)?
                private::Definition {
                    wants_tools: !tools.is_empty(),
                    tools,
                    provider: [$(private::ProviderEntry::for_provider::<$provider>())?].into_iter().next(),
                    gc: [$(private::GcEntry::for_gc::<$gc>())?].into_iter().next(),
                    environment: None,
                    hook: None,
                    is_dynamic: false,
                }
            }
            extern "C" fn describe() -> Answer<RVec<u8>> {
                private::describe_answer(definition)
            }
            extern "C" fn factory(log: private::abi::LogBox) -> Answer<private::abi::FactoryBox> {
                private::factory_answer(log, definition)
            }
            super::Module { describe, factory, manifest: super::MANIFEST }
        }
    };
}

const MANIFEST: &[u8] =
    br#"{"v":1,"name":"bad","version":"0.1.0","api":"1.0.0","kinds":["tool","provider","gc"]}"#;

#[track_caller]
fn assert_check_fails(module: Module, check: ConformanceCheck, expected: &str) {
    assert_check_fails_on(module, |host| host, check, expected);
}

/// Like `fails`, with a less patient host, because the plugin uses up all the patience.
#[track_caller]
fn assert_check_fails_soon(module: Module, check: ConformanceCheck, expected: &str) {
    assert_check_fails_on(
        module,
        |host| host.with_patience(Duration::from_secs(1)),
        check,
        expected,
    );
}

#[track_caller]
fn assert_check_fails_on(
    module: Module,
    prepare: fn(FakeHost) -> FakeHost,
    check: ConformanceCheck,
    expected: &str,
) {
    let kinds = [PluginKind::Tool, PluginKind::Provider, PluginKind::Gc];
    let suite = ConformanceSuite::for_plugin(module, &kinds).with_host(prepare).with_all_examples();
    match suite.run_check(check) {
        Err(text) => assert!(text.contains(expected), "{text}"),
        Ok(()) => panic!("the defect is not found: {expected}"),
    }
}

/// A tool whose state all instances share, and other faults.
mod shared {
    use jaato_plugin_sdk::prelude::*;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    static CALLS: AtomicU64 = AtomicU64::new(0);

    pub struct GlobalState;

    impl State for GlobalState {
        async fn create(_home: &Home, saved: Option<Value>) -> Result<Self> {
            assert!(saved.is_none_or(|saved| saved.is_u64()), "what is that?");
            Ok(Self)
        }

        async fn save(&self) -> Result<Option<Value>> {
            Ok(Some(json!(CALLS.load(SeqCst))))
        }

        fn describe(description: &mut Description) {
            description.instructions = Some(CALLS.fetch_add(1, SeqCst).to_string());
        }

        async fn command(_cx: &Cx<Self>, _name: &str, _arguments: Value) -> Result<Output> {
            Ok(Output::default())
        }
    }

    /// Counts calls.
    #[derive(ToolInput)]
    #[tool(read_only, example("count"))]
    pub struct Count {}

    impl Tool for Count {
        type State = GlobalState;

        async fn call(self, _cx: &Cx<GlobalState>) -> Result<Output> {
            CALLS.fetch_add(1, SeqCst);
            Ok(Output::default())
        }
    }

    plugin! { state: GlobalState, tools: [Count] }
}

/// Tools with one fault each.
mod careless {
    use jaato_plugin_sdk::prelude::*;
    use jaato_plugin_sdk::serde_json;
    use jaato_plugin_sdk::types::{Annotations, Availability, Example, ToolSpec};

    /// A handwritten spec that the derive would refuse.
    pub struct CarelessTool(Value);

    impl ToolInput for CarelessTool {
        fn spec() -> ToolSpec {
            ToolSpec {
                name: "careless".into(),
                description: "x".repeat(2000),
                parameters: json!({
                    "type": "object",
                    "properties": { "depth": { "type": "integer", "description": "How deep." } },
                    "required": ["depth"],
                }),
                annotations: Annotations { read_only: true, ..Annotations::default() },
                category: String::new(),
                availability: Availability::Core,
                auto_approval: false,
                auto_background: false,
                traits: Vec::new(),
                examples: vec![Example { phrase: "dive".into(), arguments: Default::default() }],
                available_if: None,
                run_if: None,
                ..ToolSpec::default()
            }
        }

        fn parse(json: &[u8]) -> Result<Self> {
            Ok(Self(serde_json::from_slice(json).unwrap_or_default()))
        }
    }

    impl Tool for CarelessTool {
        type State = ();

        async fn call(self, _cx: &Cx) -> Result<Output> {
            let depth = self.0["depth"].as_u64().unwrap_or(1);
            Ok(Output::json(json!(100 / depth)))
        }
    }

    plugin! { state: (), tools: [CarelessTool] }
}

/// Leaks a context and fails an example.
mod rude {
    use jaato_plugin_sdk::prelude::*;

    /// Keeps the context after the call.
    #[derive(ToolInput)]
    #[tool(read_only, example("keep"))]
    pub struct Keep {}

    impl Tool for Keep {
        type State = ();

        async fn call(self, cx: &Cx) -> Result<Output> {
            std::mem::forget(cx.reporter());
            Err(Error::failed("it is mine"))
        }
    }

    plugin! { state: (), tools: [Keep] }
}

/// Blocks in a poll.
mod stuck {
    use jaato_plugin_sdk::prelude::*;

    /// Blocks its thread.
    #[derive(ToolInput)]
    #[tool(read_only, example("block"))]
    pub struct Block {}

    impl Tool for Block {
        type State = ();

        async fn call(self, _cx: &Cx) -> Result<Output> {
            loop {
                std::thread::park();
            }
        }
    }

    plugin! { state: (), tools: [Block] }
}

/// A provider whose completion differs from its deltas, and a gc that separates pairs.
mod liar {
    use jaato_plugin_sdk::prelude::*;

    pub struct LyingPlugin;

    impl Provider for LyingPlugin {
        type State = ();

        fn spec() -> ProviderSpec {
            ProviderSpec {
                name: "li/ar".into(),
                title: String::new(),
                default_model: String::new(),
                models: Vec::new(),
                ..ProviderSpec::default()
            }
        }

        async fn complete(cx: &Cx, _request: CompletionRequest) -> Result<Completion> {
            cx.emit(&Delta::text("yes"));
            let parts = vec![Part::text("no")];
            Ok(Completion::new(parts, FinishReason::Stop, Usage::default()))
        }
    }

    impl Gc for LyingPlugin {
        type State = ();

        async fn plan(_cx: &Cx, request: GcRequest) -> Result<GcPlan> {
            let drop = if request.messages.is_empty() { vec![0] } else { vec![1] };
            Ok(GcPlan { v: 1, drop, ..GcPlan::default() })
        }
    }

    plugin! { state: (), provider: LyingPlugin, gc: LyingPlugin }
}

#[test]
fn suite_reports_a_manifest_kind_that_is_not_described() {
    let check = plugin::the_description_agrees_with_the_manifest;
    assert_check_fails(
        shared::module(),
        check,
        "kind Provider: named in the manifest true, described false",
    );
    let suite = ConformanceSuite::for_plugin(shared::module(), &[PluginKind::Tool]);
    let text = suite.run_check(plugin::manifest_kinds_match).unwrap_err();
    assert!(text.contains("its suite {Tool}"), "{text}");
}

#[test]
fn suite_reports_state_shared_between_instances() {
    assert_check_fails(
        shared::module(),
        tool::instances_are_independent,
        "changes what another saves",
    );
    assert_check_fails(
        shared::module(),
        tool::read_only_examples_change_nothing,
        "is read-only and changes",
    );
    let check = plugin::the_description_is_the_same_each_time;
    assert_check_fails(shared::module(), check, "describes itself differently");
}

#[test]
fn suite_reports_a_panic_that_the_sdk_caught() {
    let check = plugin::bad_saved_state_is_refused_or_forgotten;
    assert_check_fails(shared::module(), check, "what is that?");
    assert_check_fails(
        careless::module(),
        tool::wrong_arguments_are_refused,
        "which its schema does not allow",
    );
}

#[test]
fn suite_reports_unknown_commands_that_do_not_fail() {
    let check = plugin::unknown_operations_are_refused;
    assert_check_fails(shared::module(), check, "an unknown command did not fail");
}

#[test]
fn suite_reports_careless_tool_specs() {
    let module = careless::module();
    assert_check_fails(
        module,
        tool::descriptions_are_present_and_short,
        "a description of 2000 bytes",
    );
    assert_check_fails(
        module,
        tool::schemas_are_closed_objects,
        "unknown properties are not refused",
    );
    assert_check_fails(module, tool::examples_fit_their_schema, "required property");
    assert_check_fails(module, tool::bad_frames_are_refused, "is accepted as valid");
}

#[test]
fn suite_reports_objects_held_after_close() {
    assert_check_fails_soon(
        rude::module(),
        plugin::no_objects_are_left,
        "it still holds LiveObjectCounts { contexts: 1",
    );
    assert_check_fails(rude::module(), tool::examples_work, "it is mine");
}

#[test]
fn suite_reports_a_blocking_poll() {
    assert_check_fails_soon(stuck::module(), tool::examples_work, "did not finish within");
    assert_check_fails_soon(stuck::module(), tool::a_cancelled_call_ends, "did not finish within");
}

#[test]
fn suite_reports_a_provider_that_contradicts_itself() {
    assert_check_fails(liar::module(), provider::provider_name_is_valid, "before the slash");
    let check = provider::a_simple_request_is_answered;
    assert_check_fails(liar::module(), check, r#"the text "yes", the completion has "no""#);
}

/// Providers that list missing options, refuse listed options, or fail on some histories.
mod braggarts {
    use super::{MANIFEST, Module};
    use jaato_plugin_sdk::prelude::*;

    fn spec_with_options(options: &[&str]) -> ProviderSpec {
        let options = options.iter().map(|name| (*name).to_owned()).collect();
        ProviderSpec { name: "brag".into(), options, ..ProviderSpec::default() }
    }

    fn hello_completion(cx: &Cx) -> Result<Completion> {
        cx.emit(&Delta::text("hello"));
        let parts = vec![Part::text("hello")];
        Ok(Completion::new(parts, FinishReason::Stop, Usage::default()))
    }

    pub mod unknown {
        use super::*;

        pub struct UnknownOptionProvider;

        impl Provider for UnknownOptionProvider {
            type State = ();

            fn spec() -> ProviderSpec {
                spec_with_options(&["temperature", "humour"])
            }

            async fn complete(cx: &Cx, _request: CompletionRequest) -> Result<Completion> {
                hello_completion(cx)
            }
        }

        plugin! { state: (), provider: UnknownOptionProvider }
    }

    pub mod refused {
        use super::*;

        pub struct RefusingProvider;

        impl Provider for RefusingProvider {
            type State = ();

            fn spec() -> ProviderSpec {
                spec_with_options(&["seed", "stream"])
            }

            async fn complete(cx: &Cx, request: CompletionRequest) -> Result<Completion> {
                // Without streaming, deltas are optional.
                if request.options.stream == Some(false) {
                    let parts = vec![Part::text("hello")];
                    return Ok(Completion::new(parts, FinishReason::Stop, Usage::default()));
                }
                let is_kept = request.options.seed.is_none();
                let refusal = Error::new(ErrorKind::InvalidArguments, "no seeds");
                if is_kept { hello_completion(cx) } else { Err(refusal) }
            }
        }

        plugin! { state: (), provider: RefusingProvider }
    }

    pub mod clumsy {
        use super::*;

        pub struct PanickingProvider;

        impl Provider for PanickingProvider {
            type State = ();

            fn spec() -> ProviderSpec {
                spec_with_options(&[])
            }

            async fn complete(cx: &Cx, request: CompletionRequest) -> Result<Completion> {
                let parts = request.messages.iter().flat_map(|message| &message.parts);
                for part in parts {
                    assert!(!matches!(part, Part::Opaque(_)), "what is this?");
                }
                hello_completion(cx)
            }
        }

        plugin! { state: (), provider: PanickingProvider }
    }
}

#[test]
fn suite_reports_listed_options_that_do_not_work() {
    let check = provider::listed_options_are_accepted;
    assert_check_fails(braggarts::unknown::module(), check, "the unknown option `humour`");
    assert_check_fails(
        braggarts::refused::module(),
        check,
        "the option `seed` is listed but refused",
    );
    let suite = ConformanceSuite::for_plugin(braggarts::clumsy::module(), &[PluginKind::Provider]);
    assert_eq!(suite.run_check(check), Ok(()), "who lists nothing is asked for nothing");
}

#[test]
fn suite_reports_a_provider_that_cannot_handle_a_history() {
    let check = provider::a_history_of_every_kind_is_answered_or_refused;
    assert_check_fails(braggarts::clumsy::module(), check, "what is this?");
}

#[test]
fn suite_reports_a_bad_gc_plan() {
    assert_check_fails(liar::module(), gc::a_full_history_shrinks, "stays and its call goes");
    assert_check_fails(liar::module(), gc::empty_history_is_unchanged, "drops message");
}

/// A plugin that panics when it is described, and has no instance.
mod broken {
    use jaato_plugin_sdk::prelude::*;

    pub struct PanickingDescription;

    impl State for PanickingDescription {
        async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
            Err(Error::failed("no key"))
        }

        fn describe(_description: &mut Description) {
            panic!("no words")
        }
    }

    plugin! { state: PanickingDescription }
}

#[test]
fn plugin_with_a_failing_description_fails_at_first_use() {
    let host = FakeHost::new(broken::module());
    let error = host.description().unwrap_err();
    assert!(error.message.ends_with("no words"), "{error}");
    assert_eq!(host.call("any", jaato_plugin_sdk::serde_json::json!({})).unwrap_err(), error);
}
