//! Names the method in which two boundaries differ, which the checker's message does not.
//!
//! This is not the check itself: it runs only after the check found a difference, and may find
//! none.

use std::collections::VecDeque;

use abi_stable::type_layout::{TLData, TLField, TLFunction, TypeLayout};

use super::LayoutMismatch;

type Layout = &'static TypeLayout;

/// Which side may have more methods than the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MethodGrowth {
    /// The newer side may: its methods after the frozen ones are not a difference.
    Allowed,
    /// Neither side, because both report the same version.
    None,
}

/// A trait or a module of functions.
struct MethodTable {
    name: String,
    methods: Vec<TableMethod>,
    /// Number of methods that every version has.
    frozen: usize,
}

#[derive(PartialEq, Eq)]
struct TableMethod {
    name: &'static str,
    signature: String,
}

/// Finds the first method that differs, in the order of the host's traits.
pub(super) fn first_trait_difference(
    plugin: Layout,
    host: Layout,
    growth: MethodGrowth,
) -> Option<LayoutMismatch> {
    let theirs = list_method_tables(plugin);
    list_method_tables(host).iter().find_map(|host| {
        let plugin = theirs.iter().find(|table| table.name == host.name)?;
        table_difference(plugin, host, growth)
    })
}

fn table_difference(
    plugin: &MethodTable,
    host: &MethodTable,
    growth: MethodGrowth,
) -> Option<LayoutMismatch> {
    let mut both = plugin.methods.iter().zip(&host.methods);
    if let Some((has, wants)) = both.find(|(has, wants)| has != wants) {
        return Some(describe_mismatch(plugin, host, has, wants));
    }
    if growth == MethodGrowth::Allowed && plugin.frozen == host.frozen {
        return None;
    }
    let shared = plugin.methods.len().min(host.methods.len());
    let (added, missing) = (plugin.methods.get(shared), host.methods.get(shared));
    let one = added.or(missing)?;
    let side = |method: Option<&TableMethod>| {
        method.map_or_else(missing_item_text, |it| it.signature.clone())
    };
    Some(LayoutMismatch { what: host.method_path(one), plugin: side(added), host: side(missing) })
}

/// Describes a method's change, given the methods at the same position on both sides.
fn describe_mismatch(
    plugin: &MethodTable,
    host: &MethodTable,
    has: &TableMethod,
    wants: &TableMethod,
) -> LayoutMismatch {
    let (what, plugin, host) = if has.name == wants.name {
        (host.method_path(wants), has.signature.clone(), wants.signature.clone())
    } else if !plugin.has_method(wants.name) && !host.has_method(has.name) {
        (host.method_path(wants), has.name.to_owned(), wants.name.to_owned())
    } else if !plugin.has_method(wants.name) {
        (host.method_path(wants), missing_item_text(), wants.signature.clone())
    } else if !host.has_method(has.name) {
        (host.method_path(has), has.signature.clone(), missing_item_text())
    } else {
        let order = format!("the order of `{}`", host.name);
        (order, has.name.to_owned(), wants.name.to_owned())
    };
    LayoutMismatch { what, plugin, host }
}

fn missing_item_text() -> String {
    "no such method".to_owned()
}

impl MethodTable {
    fn has_method(&self, name: &str) -> bool {
        self.methods.iter().any(|method| method.name == name)
    }

    fn method_path(&self, method: &TableMethod) -> String {
        format!("`{}::{}`", self.name, method.name)
    }
}

/// Returns every table that can be reached from the root, in the order of first mention.
fn list_method_tables(root: Layout) -> Vec<MethodTable> {
    let (mut seen, mut tables) = (Vec::new(), Vec::new());
    let mut waiting = VecDeque::from([root]);
    while let Some(layout) = waiting.pop_front() {
        if seen.contains(&layout.get_utypeid()) {
            continue;
        }
        seen.push(layout.get_utypeid());
        let fields = table_fields(layout);
        waiting.extend(fields.iter().flat_map(layouts_of_field));
        if let TLData::PrefixType(prefix) = layout.data() {
            // Fields that a macro adds before a trait's methods.
            let hidden =
                fields.iter().take_while(|field| field.name().starts_with("_sabi")).count();
            let methods = fields.iter().skip(hidden).filter(|field| field.is_function());
            let methods = methods.map(TableMethod::from_field).collect();
            let frozen = usize::from(prefix.first_suffix_field).saturating_sub(hidden);
            tables.push(MethodTable { name: table_name(layout), methods, frozen });
        }
    }
    tables
}

/// Returns a table's name. The table of trait `Moon` is in the module `Moon_trait`.
fn table_name(layout: Layout) -> String {
    let module = layout.mod_path().to_string();
    let place = module.rsplit("::").next().and_then(|last| last.strip_suffix("_trait"));
    place.unwrap_or(layout.name()).to_owned()
}

fn table_fields(layout: Layout) -> Vec<TLField> {
    let fields = match layout.data() {
        TLData::Primitive(_) | TLData::Opaque => None,
        TLData::Struct { fields } | TLData::Union { fields } => Some(fields),
        TLData::Enum(variants) => Some(variants.fields),
        TLData::PrefixType(prefix) => Some(prefix.fields),
    };
    let all = fields.into_iter().chain([layout.phantom_fields()]);
    all.flat_map(|fields| fields.to_vec()).collect()
}

fn layouts_of_field(field: &TLField) -> Vec<Layout> {
    let functions = field.function_range().iter();
    let of_functions = functions.flat_map(|function| {
        let parameters = function.param_type_layouts.iter();
        parameters.chain(function.return_type_layout()).map(|of| of()).collect::<Vec<_>>()
    });
    [field.layout()].into_iter().chain(of_functions).collect()
}

impl TableMethod {
    fn from_field(field: &TLField) -> Self {
        let signatures: Vec<_> =
            field.function_range().iter().map(|it| function_signature(&it)).collect();
        Self { name: field.name(), signature: signatures.join(" | ") }
    }
}

fn function_signature(function: &TLFunction) -> String {
    let name = |of: extern "C" fn() -> Layout| of().full_type().to_string();
    let parameters: Vec<_> = function.param_type_layouts.iter().map(name).collect();
    let returns = function.return_type_layout().map(|of| format!(" -> {}", name(of)));
    format!("fn({}){}", parameters.join(", "), returns.unwrap_or_default())
}
