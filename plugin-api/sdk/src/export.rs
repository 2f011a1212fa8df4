//! `export_plugin!`: makes a crate a plugin.

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::abi::{FactoryBox, LogBox};
use jaato_types::{Error, ErrorKind, Frame};

use crate::definition::Definition;
use crate::fence::{fenced, install_hook};
use crate::instance::{Factory, error_frame, plain_answer};
use crate::state::State;

/// Answers the root module's `describe`.
pub fn describe_answer<S: State>(
    definition: impl FnOnce() -> Definition<S>,
) -> RResult<RVec<u8>, RVec<u8>> {
    plain_answer(|| {
        let description = definition().describe()?;
        let too_large = |error: jaato_types::FrameError| {
            Error::new(ErrorKind::LimitReached, format!("the description is no frame: {error}"))
        };
        Frame::write(&description).map_err(too_large)
    })
}

/// Answers the root module's `factory`.
pub fn factory_answer<S: State>(
    log: LogBox,
    definition: impl FnOnce() -> Definition<S>,
) -> RResult<FactoryBox, RVec<u8>> {
    install_hook(log);
    match fenced(|| Factory::new(definition())).and_then(|factory| factory) {
        Ok(factory) => RResult::ROk(FactoryBox::from_value(factory, TD_Opaque)),
        Err(error) => RResult::RErr(error_frame(&error)),
    }
}

/// Makes a crate a plugin: one line at the crate's root, beside `crate-type = ["cdylib"]`.
///
/// ```text
/// export_plugin! { state: Shelf, tools, provider: Local, scope: host, isolation: worker }
/// ```
///
/// - `state: TYPE` comes first: the [`State`](crate::State) of the plugin, `()` for none;
/// - `tools`: it has tools, collected by `tool!` and `sync_tool!`;
/// - `provider: TYPE`, `gc: TYPE`, `environment: TYPE`: it is a provider, a gc, an execution environment;
/// - `scope: host`: one instance a host process instead of one a session;
/// - `isolation: worker`: it wants a process of its own (a native runtime, much memory);
/// - `variables: ["NAME", "NAME=VALUE", …]`: variables that its worker needs, in the forms of
///   [`WorkerVariable`](crate::types::WorkerVariable).
#[macro_export]
macro_rules! export_plugin {
    ( state: $state:ty $(, $($rest:tt)*)? ) => {
        $crate::__export_plugin! {
            @take { $($($rest)*)? }
            state($state) kinds() tools(false) provider() gc() environment()
            scope("session") isolation("in_process") variables()
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_plugin {
    (@take { tools $(, $($rest:tt)*)? } state($s:ty) kinds($($k:literal)*) tools($_t:literal)
        provider($($p:ty)?) gc($($g:ty)?) environment($($e:ty)?) scope($sc:literal) isolation($i:literal) variables($($v:literal)*)) => {
        $crate::__export_plugin! { @take { $($($rest)*)? } state($s) kinds($($k)* "tool") tools(true)
            provider($($p)?) gc($($g)?) environment($($e)?) scope($sc) isolation($i) variables($($v)*) }
    };
    (@take { provider: $new:ty $(, $($rest:tt)*)? } state($s:ty) kinds($($k:literal)*) tools($t:literal)
        provider() gc($($g:ty)?) environment($($e:ty)?) scope($sc:literal) isolation($i:literal) variables($($v:literal)*)) => {
        $crate::__export_plugin! { @take { $($($rest)*)? } state($s) kinds($($k)* "provider") tools($t)
            provider($new) gc($($g)?) environment($($e)?) scope($sc) isolation($i) variables($($v)*) }
    };
    (@take { gc: $new:ty $(, $($rest:tt)*)? } state($s:ty) kinds($($k:literal)*) tools($t:literal)
        provider($($p:ty)?) gc() environment($($e:ty)?) scope($sc:literal) isolation($i:literal) variables($($v:literal)*)) => {
        $crate::__export_plugin! { @take { $($($rest)*)? } state($s) kinds($($k)* "gc") tools($t)
            provider($($p)?) gc($new) environment($($e)?) scope($sc) isolation($i) variables($($v)*) }
    };
    (@take { environment: $new:ty $(, $($rest:tt)*)? } state($s:ty) kinds($($k:literal)*) tools($t:literal)
        provider($($p:ty)?) gc($($g:ty)?) environment() scope($sc:literal) isolation($i:literal) variables($($v:literal)*)) => {
        $crate::__export_plugin! { @take { $($($rest)*)? } state($s) kinds($($k)* "environment") tools($t)
            provider($($p)?) gc($($g)?) environment($new) scope($sc) isolation($i) variables($($v)*) }
    };
    (@take { scope: host $(, $($rest:tt)*)? } state($s:ty) kinds($($k:literal)*) tools($t:literal)
        provider($($p:ty)?) gc($($g:ty)?) environment($($e:ty)?) scope($_sc:literal) isolation($i:literal) variables($($v:literal)*)) => {
        $crate::__export_plugin! { @take { $($($rest)*)? } state($s) kinds($($k)*) tools($t)
            provider($($p)?) gc($($g)?) environment($($e)?) scope("host") isolation($i) variables($($v)*) }
    };
    (@take { isolation: worker $(, $($rest:tt)*)? } state($s:ty) kinds($($k:literal)*) tools($t:literal)
        provider($($p:ty)?) gc($($g:ty)?) environment($($e:ty)?) scope($sc:literal) isolation($_i:literal) variables($($v:literal)*)) => {
        $crate::__export_plugin! { @take { $($($rest)*)? } state($s) kinds($($k)*) tools($t)
            provider($($p)?) gc($($g)?) environment($($e)?) scope($sc) isolation("worker") variables($($v)*) }
    };
    (@take { variables: [$($new:literal),* $(,)?] $(, $($rest:tt)*)? } state($s:ty) kinds($($k:literal)*) tools($t:literal)
        provider($($p:ty)?) gc($($g:ty)?) environment($($e:ty)?) scope($sc:literal) isolation($i:literal) variables($($v:literal)*)) => {
        $crate::__export_plugin! { @take { $($($rest)*)? } state($s) kinds($($k)*) tools($t)
            provider($($p)?) gc($($g)?) environment($($e)?) scope($sc) isolation($i) variables($($v)* $($new)*) }
    };
    (@take { } state($state:ty) kinds($($kind:literal)*) tools($has_tools:literal)
        provider($($provider:ty)?) gc($($gc:ty)?) environment($($environment:ty)?)
        scope($scope:literal) isolation($isolation:literal)
        variables($($variable:literal)*)) => {
        #[cfg(panic = "abort")]
        ::core::compile_error!(
            "a jaato plugin must unwind: remove `panic = \"abort\"` from its profile, or a panic would end the host"
        );

        #[doc(hidden)]
        #[allow(missing_docs, unused_qualifications, non_upper_case_globals)]
        pub mod __jaato {
            #[allow(unused_imports)]
            use super::*;
            use $crate::__private as private;
            use private::abi::abi_stable;

            /// Entries are of a type of this crate, so that plugins in one binary do not mix.
            pub struct Entry(pub private::ToolEntry<$state>);
            private::inventory::collect!(Entry);

            fn definition() -> private::Definition<$state> {
                private::Definition {
                    tools: private::inventory::iter::<Entry>
                        .into_iter()
                        .map(|entry| &entry.0)
                        .collect(),
                    wants_tools: $has_tools,
                    provider: [$(private::ProviderEntry::of::<$provider>())?].into_iter().next(),
                    gc: [$(private::GcEntry::of::<$gc>())?].into_iter().next(),
                    environment: [$(private::EnvironmentEntry::of::<$environment>())?]
                        .into_iter()
                        .next(),
                }
            }

            extern "C" fn describe() -> abi_stable::std_types::RResult<
                abi_stable::std_types::RVec<u8>,
                abi_stable::std_types::RVec<u8>,
            > {
                private::describe_answer(definition)
            }

            extern "C" fn factory(
                log: private::abi::LogBox,
            ) -> abi_stable::std_types::RResult<
                private::abi::FactoryBox,
                abi_stable::std_types::RVec<u8>,
            > {
                private::factory_answer(log, definition)
            }

            fn root() -> private::abi::PluginModuleRef {
                use abi_stable::prefix_type::PrefixTypeTrait as _;
                // The `#[used]` of older compilers does not keep a linker from dropping what nothing names.
                ::core::hint::black_box(&MANIFEST);
                private::abi::PluginModule { describe, factory }.leak_into_prefix()
            }

            extern "C" fn load() -> abi_stable::library::RootModuleResult {
                abi_stable::library::__call_root_module_loader(root)
            }

            #[unsafe(no_mangle)]
            // SAFETY: `load` makes the root module that the header names, built by this very crate.
            pub static JAATO_PLUGIN_V1: abi_stable::library::LibHeader = unsafe {
                abi_stable::library::LibHeader::from_constructor::<private::abi::PluginModuleRef>(
                    load,
                    abi_stable::library::CheckTypeLayout::Yes,
                )
            };

            const FACTS: private::Facts = private::Facts {
                name: ::core::env!("CARGO_PKG_NAME"),
                version: ::core::env!("CARGO_PKG_VERSION"),
                kinds: &[$($kind),*],
                scope: $scope,
                isolation: $isolation,
                variables: &[$($variable),*],
            };

            #[used]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__jaato"))]
            #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".jaato_manifest"))]
            static MANIFEST: [u8; private::length(&FACTS)] = private::bytes(&FACTS);

            /// The plugin without its dylib, for conformance suites.
            pub const MODULE: private::Module =
                private::Module { describe, factory, manifest: &MANIFEST };
        }
    };
}
