//! Exports a boundary without an implementation: the part that a host sees before it runs a plugin.

use jaato_plugin_api::abi::abi_stable::library::{
    __call_root_module_loader, CheckTypeLayout, LibHeader, RootModuleResult,
};
use jaato_plugin_api::abi::abi_stable::prefix_type::PrefixTypeTrait;
use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::abi::{FactoryBox, LogBox, PluginModule, PluginModuleRef};

extern "C" fn describe() -> RResult<RVec<u8>, RVec<u8>> {
    RResult::RErr(RVec::new())
}

extern "C" fn factory(_log: LogBox) -> RResult<FactoryBox, RVec<u8>> {
    RResult::RErr(RVec::new())
}

fn root() -> PluginModuleRef {
    PluginModule { describe, factory }.leak_into_prefix()
}

extern "C" fn load() -> RootModuleResult {
    __call_root_module_loader(root)
}

#[unsafe(no_mangle)]
// SAFETY: `load` makes the root module that the header names.
pub static JAATO_PLUGIN_V1: LibHeader =
    unsafe { LibHeader::from_constructor::<PluginModuleRef>(load, CheckTypeLayout::Yes) };

const MANIFEST_TEXT: &[u8] =
    br#"{"v":1,"name":"foreign","version":"0.1.0","api":"1.0.0","kinds":["tool"]}"#;

#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__jaato"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".jaato_manifest"))]
static MANIFEST: [u8; MANIFEST_TEXT.len()] = {
    let mut bytes = [0; MANIFEST_TEXT.len()];
    bytes.copy_from_slice(MANIFEST_TEXT);
    bytes
};
