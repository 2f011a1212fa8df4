//! The published layout of the boundary matches the committed one, so an accidental change fails a
//! test.
//!
//! `UPDATE_EXPECT=1 cargo test -p jaato-plugin-api --test it layout` rewrites it. A changed line is
//! a change of the boundary, and `docs/abi.md` says which ones are allowed. Numbers distinguish
//! types with the same name. They count from the root, so a new type may change others.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::VecDeque;
use std::fmt::Write as _;

use expect_test::expect_file;
use jaato_plugin_api::abi::PluginModuleRef;
use jaato_plugin_api::abi::abi_stable::StableAbi;
use jaato_plugin_api::abi::abi_stable::type_layout::{
    TLData, TLField, TLFields, TLFunction, TypeLayout,
};

type Layout = &'static TypeLayout;

// Sizes and alignments are those of 64-bit targets.
#[cfg(target_pointer_width = "64")]
#[test]
fn the_layout_is_the_committed_one() {
    let published = Published::from(<PluginModuleRef as StableAbi>::LAYOUT);
    expect_file!["layout.txt"].assert_eq(&published.text());
}

/// All types that are reachable from the root module.
struct Published {
    types: Vec<Layout>,
}

impl Published {
    fn from(root: Layout) -> Self {
        let mut types: Vec<Layout> = Vec::new();
        let mut waiting = VecDeque::from([root]);
        while let Some(layout) = waiting.pop_front() {
            if types.iter().all(|known| known.get_utypeid() != layout.get_utypeid()) {
                types.push(layout);
                waiting.extend(reached_from(layout));
            }
        }
        Self { types }
    }

    /// Returns all types by name, each with the facts that the loader compares.
    fn text(&self) -> String {
        let mut texts: Vec<String> = self.types.iter().map(|layout| self.of_type(layout)).collect();
        texts.sort();
        texts.join("\n")
    }

    fn of_type(&self, layout: Layout) -> String {
        let (package, version) = layout.package_and_version();
        let mut text = format!("{}\n    of {package} {version}", self.unique_name(layout));
        write!(text, ", size {}, alignment {}", layout.size(), layout.alignment()).unwrap();
        text.push_str(if layout.is_nonzero() { ", never zero\n" } else { "\n" });
        let mut list = |what: &str, fields: TLFields| {
            for field in fields.iter() {
                writeln!(text, "    {what}{}", self.of_field(&field)).unwrap();
            }
        };
        match layout.data() {
            TLData::Primitive(_) | TLData::Opaque => {}
            TLData::Struct { fields } => list("", fields),
            TLData::Union { fields } => list("either ", fields),
            TLData::Enum(variants) => list("in a variant ", variants.fields),
            TLData::PrefixType(prefix) => list("", prefix.fields),
        }
        list("phantom ", layout.phantom_fields());
        match layout.data() {
            TLData::Enum(variants) => {
                let names: Vec<_> = variants.variant_names_iter().collect();
                writeln!(text, "    variants {}", names.join(", ")).unwrap();
            }
            TLData::PrefixType(prefix) => {
                writeln!(text, "    the first {} are there always", prefix.first_suffix_field)
                    .unwrap();
            }
            TLData::Primitive(_)
            | TLData::Opaque
            | TLData::Struct { .. }
            | TLData::Union { .. } => {}
        }
        text
    }

    fn of_field(&self, field: &TLField) -> String {
        let functions: Vec<_> =
            field.function_range().iter().map(|it| self.signature(&it)).collect();
        if functions.is_empty() {
            return format!("{}: {}", field.name(), self.unique_name(field.layout()));
        }
        format!("{}: {}", field.name(), functions.join(" or "))
    }

    fn signature(&self, function: &TLFunction) -> String {
        let parameters = function.param_type_layouts.iter().map(|of| self.unique_name(of()));
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        let returns =
            function.return_type_layout().map(|of| format!(" -> {}", self.unique_name(of())));
        format!("fn({parameters}){}", returns.unwrap_or_default())
    }

    /// Returns the path of a type, with a number if others have the same path.
    fn unique_name(&self, layout: Layout) -> String {
        let name = path(layout);
        let mut alike = self.types.iter().filter(|other| path(other) == name);
        if alike.clone().count() < 2 {
            return name;
        }
        let number = alike.position(|other| other.get_utypeid() == layout.get_utypeid()).unwrap();
        format!("{name} #{}", number + 1)
    }
}

fn path(layout: Layout) -> String {
    match layout.mod_path().to_string().as_str() {
        // References and pointers have odd spaces there.
        "<prelude>" => {
            let name = layout.full_type().to_string();
            name.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        module => format!("{module}::{}", layout.full_type()),
    }
}

fn reached_from(layout: Layout) -> Vec<Layout> {
    let fields = match layout.data() {
        TLData::Primitive(_) | TLData::Opaque => None,
        TLData::Struct { fields } | TLData::Union { fields } => Some(fields),
        TLData::Enum(variants) => Some(variants.fields),
        TLData::PrefixType(prefix) => Some(prefix.fields),
    };
    let fields = fields.into_iter().chain([layout.phantom_fields()]);
    fields.flat_map(|fields| fields.to_vec()).flat_map(|field| reached_by(&field)).collect()
}

fn reached_by(field: &TLField) -> Vec<Layout> {
    let functions = field.function_range().iter();
    let of_functions = functions.flat_map(|function| {
        let parameters = function.param_type_layouts.iter();
        parameters.chain(function.return_type_layout()).map(|of| of()).collect::<Vec<_>>()
    });
    [field.layout()].into_iter().chain(of_functions).collect()
}
