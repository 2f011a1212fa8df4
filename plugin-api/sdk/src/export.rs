//! The code that `export_plugin!` adds to a crate, and the answers of its functions.

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::abi::{FactoryBox, LogBox};
use jaato_types::{Error, ErrorKind, Frame};

use crate::definition::Definition;
use crate::fence::{install_hook, run_fenced};
use crate::instance::{StateFactory, error_frame, plain_answer};
use crate::state::State;

/// Returns the answer of the root module's `describe`.
pub fn describe_answer<S: State>(
    definition: impl FnOnce() -> Definition<S>,
) -> RResult<RVec<u8>, RVec<u8>> {
    plain_answer(|| {
        let description = definition().describe()?;
        let too_large = |error: jaato_types::FrameError| {
            Error::new(
                ErrorKind::LimitReached,
                format!("cannot write the description to a frame: {error}"),
            )
        };
        Frame::write(&description).map_err(too_large)
    })
}

/// Returns the answer of the root module's `factory`.
pub fn factory_answer<S: State>(
    log: LogBox,
    definition: impl FnOnce() -> Definition<S>,
) -> RResult<FactoryBox, RVec<u8>> {
    install_hook(log);
    match run_fenced(|| StateFactory::new(definition())).and_then(|factory| factory) {
        Ok(factory) => RResult::ROk(FactoryBox::from_value(factory, TD_Opaque)),
        Err(error) => RResult::RErr(error_frame(&error)),
    }
}

/// The items that make a dynamic library a plugin file.
#[cfg(not(feature = "linked"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __exported {
    ($($item:item)*) => { $($item)* };
}

/// Nothing: every plugin file exports the same symbol, which a program can have only once.
#[cfg(feature = "linked")]
#[doc(hidden)]
#[macro_export]
macro_rules! __exported {
    ($($item:item)*) => {};
}

/// The code of a plugin. `export_plugin!` parses and checks the author's input, and passes it to
/// this macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __plugin {
    (
        state: $state:ty,
        has_tools: $has_tools:literal,
        has_dynamic_tools: $has_dynamic_tools:literal,
        kinds: [$($kind:literal),*],
        types: [$($method:ident: $of:ty),*],
        environment: [$($environment:ty)?],
        scope: $scope:literal,
        isolation: $isolation:literal,
        variables: [$($variable:literal),*]
    ) => {
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

            /// The type belongs to the plugin's crate, so that the entries of several plugins in
            /// one binary stay separate.
            pub struct Entry(pub private::ToolEntry<$state>);
            private::inventory::collect!(Entry);

            fn definition() -> private::Definition<$state> {
                let entries = private::inventory::iter::<Entry>.into_iter();
                private::Definition::new(entries.map(|entry| &entry.0).collect(), $has_tools)
                    .dynamic($has_dynamic_tools)
                    $(.$method::<$of>())*
                    $(.environment(::jaato_plugin_sdk_environment::entry::<$environment>()))?
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

            $crate::__exported! {
                fn root() -> private::abi::PluginModuleRef {
                    use abi_stable::prefix_type::PrefixTypeTrait as _;
                    // With older compilers, `#[used]` does not stop the linker from removing
                    // statics that nothing refers to.
                    ::core::hint::black_box(&MANIFEST);
                    private::abi::PluginModule { describe, factory }.leak_into_prefix()
                }

                extern "C" fn load() -> abi_stable::library::RootModuleResult {
                    abi_stable::library::__call_root_module_loader(root)
                }

                #[unsafe(no_mangle)]
                // SAFETY: `load` makes the root module that the header names, built by this very
                // crate.
                pub static JAATO_PLUGIN_V1: abi_stable::library::LibHeader = unsafe {
                    abi_stable::library::LibHeader::from_constructor::<private::abi::PluginModuleRef>(
                        load,
                        abi_stable::library::CheckTypeLayout::Yes,
                    )
                };
            }

            const FACTS: private::ManifestFacts = private::ManifestFacts {
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
            static MANIFEST: [u8; private::manifest_length(&FACTS)] =
                private::manifest_bytes(&FACTS);

            /// The plugin's module for conformance suites, without a dylib.
            pub const MODULE: private::Module =
                private::Module { describe, factory, manifest: &MANIFEST };
        }
    };
}
