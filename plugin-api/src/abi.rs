//! The traits that cross the boundary, in the form of `abi_stable`. The SDK and the loader use
//! them, authors do not.
//!
//! The methods of the first release end at `last_prefix_field`. Later methods follow it, each with
//! a default body, which a caller gets if the other side is older.

// `sabi_trait` generates items without docs and impls inside functions.
#![allow(
    missing_docs,
    non_local_definitions,
    unused_qualifications,
    clippy::undocumented_unsafe_blocks
)]

use abi_stable::library::RootModule;
use abi_stable::sabi_types::VersionStrings;
use abi_stable::std_types::{RBox, ROption, RResult, RStr, RVec};
use abi_stable::{StableAbi, package_version_strings, sabi_trait};
use async_ffi::FfiFuture;

pub use {abi_stable, async_ffi};

/// A frame, or a frame with an error (`jaato_types::Error`).
pub type Answer = FfiFuture<RResult<RVec<u8>, RVec<u8>>>;

/// A frame, nothing, or a frame with an error.
pub type Maybe = FfiFuture<RResult<ROption<RVec<u8>>, RVec<u8>>>;

pub type JobBox = JobAbi_TO<RBox<()>>;
pub type LogBox = LogAbi_TO<RBox<()>>;
pub type ContextBox = ContextAbi_TO<RBox<()>>;
pub type ToolBox = ToolAbi_TO<RBox<()>>;
pub type GcBox = GcAbi_TO<RBox<()>>;
pub type ProviderBox = ProviderAbi_TO<RBox<()>>;
pub type EnvironmentBox = EnvironmentAbi_TO<RBox<()>>;
pub type InstanceBox = InstanceAbi_TO<RBox<()>>;
pub type FactoryBox = FactoryAbi_TO<RBox<()>>;

/// A plugin's blocking work. The host runs it once on its blocking pool and drops it there.
#[sabi_trait]
pub trait JobAbi: Send + 'static {
    /// Runs the work, which the plugin fences. May block.
    #[sabi(last_prefix_field)]
    fn run(&mut self);
}

/// The host's log, available for the life of the process. It receives the plugin's panic messages.
#[sabi_trait]
pub trait LogAbi: Send + Sync + 'static {
    /// Writes one line. Levels are 1 error, 2 warn, 3 info, 4 debug. May be called from any thread,
    /// and never blocks for long.
    #[sabi(last_prefix_field)]
    fn log(&self, level: u8, text: RStr<'_>);
}

/// The host's services for a call or an instance. The host implements it, and plugins call it from
/// any thread.
///
/// After its end (the call's future is ready or dropped, or the instance is closed), it refuses
/// everything, and pending futures resolve to a refusal, never to success.
#[sabi_trait]
pub trait ContextAbi: Send + Sync + 'static {
    /// Returns a number that is unique to this call or instance within the host process.
    fn id(&self) -> u64;
    /// Returns true if the call was cancelled or the context has ended.
    fn is_cancelled(&self) -> bool;
    /// Waits for the cancel.
    fn cancelled(&self) -> FfiFuture<()>;
    /// Writes one line to the host's log, with the levels of [`LogAbi`].
    fn log(&self, level: u8, text: RStr<'_>);
    /// Passes a frame to the caller. Returns false if it is not accepted (after the end, or on an
    /// instance's context).
    fn emit(&self, frame: RVec<u8>) -> bool;
    /// Sleeps. Returns true after the time has passed, false if the context ended before.
    fn sleep_ms(&self, milliseconds: u64) -> FfiFuture<bool>;
    /// Runs blocking work on the host's pool. Returns true if it ran to its end.
    fn spawn_blocking(&self, job: JobBox) -> FfiFuture<bool>;
    /// Runs background work on the plugin executor until it is done or the instance is closed.
    /// Returns false if it is not accepted.
    fn spawn(&self, task: FfiFuture<()>) -> bool;
    /// Calls a service of the host by name (`jaato_types::service`).
    fn service(&self, operation: RStr<'_>, frame: RVec<u8>) -> Answer;
    /// Waits for the next frame of a stream (at most 64 KiB), or returns nothing at its end.
    /// Dropping the wait loses nothing.
    fn next(&self, handle: u64) -> Maybe;
    /// Ends a stream. Unknown handles are ignored.
    #[sabi(last_prefix_field)]
    fn close(&self, handle: u64);
}

/// The tools of one instance.
#[sabi_trait]
pub trait ToolAbi: Send + Sync + 'static {
    /// Runs one call. The frame's JSON contains arguments that match the tool's schema. The host
    /// polls and drops the future on its plugin executor, so it must not block. Dropping it cancels
    /// the call.
    #[sabi(last_prefix_field)]
    fn call(&self, name: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer;
}

/// The gc of one instance.
#[sabi_trait]
pub trait GcAbi: Send + Sync + 'static {
    /// Proposes a plan (`GcRequest` in, `GcPlan` out). Polled like [`ToolAbi::call`].
    #[sabi(last_prefix_field)]
    fn plan(&self, context: ContextBox, frame: RVec<u8>) -> Answer;
}

/// The model provider of one instance.
#[sabi_trait]
pub trait ProviderAbi: Send + Sync + 'static {
    /// Answers one request (`Request` in, `Completion` out), and emits `Delta`s with the context's
    /// `emit`.
    fn complete(&self, context: ContextBox, frame: RVec<u8>) -> Answer;
    /// Lists the models (`[ModelInfo]` out). The frame has no JSON, but a later host may add some.
    #[sabi(last_prefix_field)]
    fn models(&self, context: ContextBox, frame: RVec<u8>) -> Answer;
}

/// The execution environment of one instance.
#[sabi_trait]
pub trait EnvironmentAbi: Send + Sync + 'static {
    /// Runs an operation by name (`jaato_types::execution`). Returns `unknown_operation` for an
    /// unknown name. Polled like [`ToolAbi::call`].
    #[sabi(last_prefix_field)]
    fn call(&self, operation: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer;
}

/// A plugin's state. All its facets share it.
#[sabi_trait]
pub trait InstanceAbi: Send + Sync + 'static {
    /// Returns its tools, if it has some.
    fn tools(&self) -> ROption<ToolBox>;
    /// Returns its gc, if it has one.
    fn gc(&self) -> ROption<GcBox>;
    /// Returns its provider, if it has one.
    fn provider(&self) -> ROption<ProviderBox>;
    /// Returns its execution environment, if it has one.
    fn environment(&self) -> ROption<EnvironmentBox>;
    /// Runs an operation by name (`command`, and later ones). Returns `unknown_operation` for an
    /// unknown name.
    fn operation(&self, name: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer;
    /// Returns the data for the next `create`, or nothing if there is nothing to save.
    fn save(&self) -> Maybe;
    /// Ends all activity of the instance. The host calls it once, after the last call, and then
    /// drops the instance.
    #[sabi(last_prefix_field)]
    fn close(&self) -> FfiFuture<()>;
}

/// Creates instances.
#[sabi_trait]
pub trait FactoryAbi: Send + Sync + 'static {
    /// Creates an instance, from the data that an earlier one saved or fresh. `context` is the
    /// instance's own.
    #[sabi(last_prefix_field)]
    fn create(
        &self,
        context: ContextBox,
        saved: ROption<RVec<u8>>,
    ) -> FfiFuture<RResult<InstanceBox, RVec<u8>>>;
}

/// The root module, to which the exported static leads.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginModuleRef)))]
#[sabi(missing_field(option))]
pub struct PluginModule {
    /// Describes the plugin (`Description` in a frame, or an error), without an instance.
    pub describe: extern "C" fn() -> RResult<RVec<u8>, RVec<u8>>,
    /// Returns the factory. The log receives panic messages. Called once per process.
    #[sabi(last_prefix_field)]
    pub factory: extern "C" fn(LogBox) -> RResult<FactoryBox, RVec<u8>>,
}

impl RootModule for PluginModuleRef {
    abi_stable::declare_root_module_statics! {PluginModuleRef}
    const BASE_NAME: &'static str = "jaato_plugin";
    const NAME: &'static str = "jaato_plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}
