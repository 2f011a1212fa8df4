//! The layout check. The older side counts as the interface, so plugins load in both directions.
//!
//! The check of `abi_stable` always treats the host as the interface, and therefore rejects older
//! plugins.

mod traits;

use jaato_types::text::{one_line, truncate_chars};

use std::fmt;

use abi_stable::abi_stability::abi_checking::{AbiInstabilityErrors, check_layout_compatibility};
use abi_stable::type_layout::TypeLayout;

use traits::MethodGrowth;

/// Longest text for one side of a difference, because the checker prints whole types.
const SIDE_CHARACTERS_MAX: usize = 200;

/// One side of the boundary.
#[derive(Clone, Copy)]
pub(crate) struct BoundarySide {
    /// Major, minor, patch.
    pub(crate) version: (u32, u32, u32),
    pub(crate) layout: &'static TypeLayout,
}

/// The first difference between two layouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutMismatch {
    /// The name of the differing item.
    pub what: String,
    /// The plugin's side.
    pub plugin: String,
    /// The host's side.
    pub host: String,
}

impl fmt::Display for LayoutMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: plugin has `{}`, host has `{}`", self.what, self.plugin, self.host)
    }
}

/// Checks two layouts of the same major version.
pub(crate) fn check_layout(plugin: BoundarySide, host: BoundarySide) -> Result<(), LayoutMismatch> {
    let plugin_is_older = plugin.version <= host.version;
    let (older, newer) = if plugin_is_older { (plugin, host) } else { (host, plugin) };
    check_layout_compatibility(older.layout, newer.layout).map_err(|errors| {
        let same = plugin.version == host.version;
        let growth = if same { MethodGrowth::None } else { MethodGrowth::Allowed };
        if let Some(mismatch) = traits::first_trait_difference(plugin.layout, host.layout, growth) {
            return mismatch;
        }
        let (what, expected, found) = first_layout_difference(&errors);
        let (plugin, host) = if plugin_is_older { (expected, found) } else { (found, expected) };
        LayoutMismatch { what, plugin, host }
    })
}

/// Extracts the first block from the checker's long output: item, expected (the older side), found.
fn first_layout_difference(errors: &AbiInstabilityErrors) -> (String, String, String) {
    let blocks = errors.errors.iter().map(ToString::to_string);
    let found = blocks.filter_map(|text| parse_difference(&text)).next();
    found.unwrap_or_else(|| {
        let unnamed = || "another layout".to_owned();
        ("the layouts differ".to_owned(), unnamed(), unnamed())
    })
}

fn parse_difference(text: &str) -> Option<(String, String, String)> {
    let (_, block) = text.split_once("\nError:")?;
    let (what, rest) = block.split_once("\nExpected:\n")?;
    let (expected, rest) = rest.split_once("\nFound:\n")?;
    let found = rest.split("\n\n").next().unwrap_or_default();
    let side = |text| truncate_chars(&one_line(text), SIDE_CHARACTERS_MAX);
    Some((side(what), side(expected), side(found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi_stable::StableAbi;

    /// A module of functions in one version, named after it.
    macro_rules! version {
        ($version:ident { $($field:ident: $type:ty,)* | $($added:ident: $added_type:ty,)* }) => {
            #[allow(dead_code, missing_docs)]
            mod $version {
                use super::*;

                #[repr(C)]
                #[derive(StableAbi)]
                #[sabi(kind(Prefix(prefix_ref = ModuleRef)))]
                #[sabi(missing_field(option))]
                pub struct Module {
                    $(pub $field: $type,)*
                    #[sabi(last_prefix_field)]
                    pub last: extern "C" fn(u64),
                    $(pub $added: $added_type,)*
                }

                pub fn layout() -> &'static TypeLayout {
                    <ModuleRef as StableAbi>::LAYOUT
                }
            }
        };
    }

    version!(base { first: extern "C" fn(u64), | });
    version!(grown { first: extern "C" fn(u64), | added: extern "C" fn(u64), });
    version!(retyped { first: extern "C" fn(i64), | });
    version!(renamed { other: extern "C" fn(u64), | });

    const V1_0: (u32, u32, u32) = (1, 0, 0);
    const V1_1: (u32, u32, u32) = (1, 1, 0);

    fn side(version: (u32, u32, u32), layout: &'static TypeLayout) -> BoundarySide {
        BoundarySide { version, layout }
    }

    #[test]
    fn an_older_plugin_on_a_newer_host_and_a_newer_plugin_on_an_older_host_load() {
        let (old, new) = (side(V1_0, base::layout()), side(V1_1, grown::layout()));
        assert_eq!(check_layout(old, new), Ok(()));
        assert_eq!(check_layout(new, old), Ok(()));
        assert_eq!(check_layout(old, old), Ok(()));
    }

    #[test]
    fn a_layout_that_grew_without_a_new_version_is_refused() {
        let (old, new) = (side(V1_0, base::layout()), side(V1_0, grown::layout()));
        assert!(check_layout(new, old).is_err());
    }

    #[track_caller]
    fn assert_refused(changed: fn() -> &'static TypeLayout, plugin_has: &str, host_has: &str) {
        for (plugin_version, host_version) in [(V1_0, V1_1), (V1_1, V1_0)] {
            let plugin = side(plugin_version, changed());
            let mismatch = check_layout(plugin, side(host_version, base::layout())).unwrap_err();
            let text = mismatch.to_string();
            assert!(!text.contains('\n') && text.len() < 600, "{text}");
            assert!(mismatch.plugin.contains(plugin_has), "{text}");
            assert!(mismatch.host.contains(host_has), "{text}");
        }
    }

    #[test]
    fn changed_type_is_refused_and_the_error_names_each_side_correctly() {
        assert_refused(retyped::layout, "i64", "u64");
    }

    #[test]
    fn changed_name_is_refused_and_the_error_names_each_side_correctly() {
        assert_refused(renamed::layout, "other", "first");
    }
}
