//! The traits that cross, as `abi_stable` makes them. Used by the sdk and the loader, never by
//! authors.
//!
//! The methods of the first release end at `last_prefix_field`. Later methods come after it, each
//! with a default body, which a caller gets when the other side is older.

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

/// Blocking work of a plugin, run once by the host on its blocking pool and dropped there.
#[sabi_trait]
pub trait JobAbi: Send + 'static {
    /// Runs the work. Fenced by the plugin; may block.
    #[sabi(last_prefix_field)]
    fn run(&mut self);
}

/// The host's log, lent for the life of the process: where panic messages of a plugin go.
#[sabi_trait]
pub trait LogAbi: Send + Sync + 'static {
    /// Writes one line. Levels are 1 error, 2 warn, 3 info, 4 debug. Any thread; never blocks for
    /// long.
    #[sabi(last_prefix_field)]
    fn log(&self, level: u8, text: RStr<'_>);
}

/// What the host lends to a call or to an instance. Implemented by the host, called by plugins from
/// any thread.
///
/// After its end (the call's future is ready or dropped; the instance is closed) it is an empty
/// shell: everything is refused, and futures that were pending resolve to a refusal, never to
/// success.
#[sabi_trait]
pub trait ContextAbi: Send + Sync + 'static {
    /// Returns a number that is unique to this call or instance within the host process.
    fn id(&self) -> u64;
    /// Tells whether the call was cancelled or the context has ended.
    fn is_cancelled(&self) -> bool;
    /// Waits for the cancel.
    fn cancelled(&self) -> FfiFuture<()>;
    /// Writes one line to the host's log; levels as in [`LogAbi`].
    fn log(&self, level: u8, text: RStr<'_>);
    /// Hands a frame to whoever waits for the call; false when it is not taken (ended, instance
    /// context).
    fn emit(&self, frame: RVec<u8>) -> bool;
    /// Sleeps; true when the time has passed, false when the context ended before.
    fn sleep_ms(&self, milliseconds: u64) -> FfiFuture<bool>;
    /// Runs blocking work on the host's pool; true when it ran to its end.
    fn spawn_blocking(&self, job: JobBox) -> FfiFuture<bool>;
    /// Runs background work on the plugin executor until it is done or the instance is closed;
    /// false when it is not taken.
    fn spawn(&self, task: FfiFuture<()>) -> bool;
    /// Asks a service of the host by name (`jaato_types::service`).
    fn service(&self, operation: RStr<'_>, frame: RVec<u8>) -> Answer;
    /// Waits for the next frame of a stream (at most 64 KiB); nothing at its end. Dropping it loses
    /// nothing.
    fn next(&self, handle: u64) -> Maybe;
    /// Ends a stream. Unknown handles are ignored.
    #[sabi(last_prefix_field)]
    fn close(&self, handle: u64);
}

/// The tools of one instance.
#[sabi_trait]
pub trait ToolAbi: Send + Sync + 'static {
    /// Runs one call. The frame's JSON holds arguments that match the tool's schema. Polled and
    /// dropped by the host on its plugin executor: must not block. Dropping the future cancels the
    /// call.
    #[sabi(last_prefix_field)]
    fn call(&self, name: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer;
}

/// The gc of one instance.
#[sabi_trait]
pub trait GcAbi: Send + Sync + 'static {
    /// Proposes a plan (`GcRequest` in, `GcPlan` out). Polled as [`ToolAbi::call`] is.
    #[sabi(last_prefix_field)]
    fn plan(&self, context: ContextBox, frame: RVec<u8>) -> Answer;
}

/// The model provider of one instance.
#[sabi_trait]
pub trait ProviderAbi: Send + Sync + 'static {
    /// Answers one request (`Request` in, `Completion` out); `Delta`s go out through the context's
    /// `emit`.
    fn complete(&self, context: ContextBox, frame: RVec<u8>) -> Answer;
    /// Lists the models (`[ModelInfo]` out). The frame has no JSON until a host has something to
    /// say in it.
    #[sabi(last_prefix_field)]
    fn models(&self, context: ContextBox, frame: RVec<u8>) -> Answer;
}

/// The execution environment of one instance.
#[sabi_trait]
pub trait EnvironmentAbi: Send + Sync + 'static {
    /// Runs an operation by name (`jaato_types::execution`); `unknown_operation` for a name that it
    /// does not know. Polled as [`ToolAbi::call`] is.
    #[sabi(last_prefix_field)]
    fn call(&self, operation: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer;
}

/// A plugin's living state. All its facets share it.
#[sabi_trait]
pub trait InstanceAbi: Send + Sync + 'static {
    /// Gives out its tools, where it has some.
    fn tools(&self) -> ROption<ToolBox>;
    /// Gives out its gc, where it has one.
    fn gc(&self) -> ROption<GcBox>;
    /// Gives out its provider, where it has one.
    fn provider(&self) -> ROption<ProviderBox>;
    /// Gives out its execution environment, where it has one.
    fn environment(&self) -> ROption<EnvironmentBox>;
    /// Runs an operation by name (`command`, and what comes later); `unknown_operation` for a name
    /// that it does not know.
    fn operation(&self, name: RStr<'_>, context: ContextBox, frame: RVec<u8>) -> Answer;
    /// Asks for what the next `create` is to be given; nothing when there is nothing to keep.
    fn save(&self) -> Maybe;
    /// Ends what the instance has going on. Called once, after the last call; then the instance is
    /// dropped.
    #[sabi(last_prefix_field)]
    fn close(&self) -> FfiFuture<()>;
}

/// Makes instances.
#[sabi_trait]
pub trait FactoryAbi: Send + Sync + 'static {
    /// Makes an instance from what an earlier one saved, or fresh. `context` is the instance's own.
    #[sabi(last_prefix_field)]
    fn create(
        &self,
        context: ContextBox,
        saved: ROption<RVec<u8>>,
    ) -> FfiFuture<RResult<InstanceBox, RVec<u8>>>;
}

/// The root module: what the exported static leads to.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginModuleRef)))]
#[sabi(missing_field(option))]
pub struct PluginModule {
    /// Describes the plugin (`Description` in a frame, or an error). Makes no instance.
    pub describe: extern "C" fn() -> RResult<RVec<u8>, RVec<u8>>,
    /// Gives out the factory; the log is where panic messages go. Called once a process.
    #[sabi(last_prefix_field)]
    pub factory: extern "C" fn(LogBox) -> RResult<FactoryBox, RVec<u8>>,
}

impl RootModule for PluginModuleRef {
    abi_stable::declare_root_module_statics! {PluginModuleRef}
    const BASE_NAME: &'static str = "jaato_plugin";
    const NAME: &'static str = "jaato_plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}
