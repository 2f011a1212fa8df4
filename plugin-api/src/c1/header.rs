//! Generates `include/jaato_plugin.h` from the definitions, and tests that the committed file
//! matches.

use expect_test::expect_file;

use super::{Buffer, Host, KINDS, Plugin, STATUSES, VERSION};

/// A named constant.
pub(super) struct Constant {
    pub(super) docs: &'static [&'static str],
    pub(super) name: &'static str,
    pub(super) value: u64,
}

/// A struct: data members first, then functions.
pub(super) struct Shape {
    pub(super) docs: &'static [&'static str],
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
    pub(super) calls: &'static [Function],
}

/// A data member.
pub(super) struct Field {
    pub(super) docs: &'static [&'static str],
    pub(super) name: &'static str,
    pub(super) type_name: &'static str,
}

/// A function pointer member.
pub(super) struct Function {
    pub(super) docs: &'static [&'static str],
    pub(super) name: &'static str,
    pub(super) arguments: &'static [(&'static str, &'static str)],
    pub(super) answer: &'static str,
}

const BEGIN: &str = include_str!("begin.h");
const END: &str = include_str!("end.h");

fn header() -> String {
    let mut text = format!("{BEGIN}\n#define JAATO_C1_VERSION {VERSION}\n\n");
    text += &constants("The result of a poll.", "", STATUSES);
    text += &constants("The kind of a call.", "CALL_", KINDS);
    for opaque in ["Context", "Waker", "Request"] {
        text += &format!("{};\n", c_type(opaque));
    }
    for shape in [&Buffer::SHAPE, &Host::SHAPE, &Plugin::SHAPE] {
        text += "\n";
        text += &structure(shape);
    }
    text + "\n" + END
}

fn constants(what: &str, prefix: &str, constants: &[Constant]) -> String {
    let mut text = format!("/* {what} */\nenum {{\n");
    for constant in constants {
        text += &comment("    ", constant.docs);
        text += &format!("    JAATO_{prefix}{} = {},\n", constant.name, constant.value);
    }
    // Some C compilers do not accept a comma at the end of an enum.
    text.truncate(text.len() - 2);
    text + "\n};\n\n"
}

fn structure(shape: &Shape) -> String {
    let mut text = format!("{}{} {{\n", comment("", shape.docs), c_type(shape.name));
    for field in shape.fields {
        text += &comment("    ", field.docs);
        text += &format!("    {};\n", c_declaration(field.type_name, field.name));
    }
    for call in shape.calls {
        text += &comment("    ", call.docs);
        let arguments: Vec<_> =
            call.arguments.iter().map(|(name, type_name)| c_declaration(type_name, name)).collect();
        let pointer = format!("(*{})({})", call.name, arguments.join(", "));
        text += &format!("    {};\n", c_declaration(call.answer, &pointer));
    }
    text + "};\n"
}

fn comment(indent: &str, docs: &[&str]) -> String {
    let lines: Vec<_> = docs.iter().map(|line| line.trim().replace('`', "")).collect();
    let joined = lines.join(&format!("\n{indent}   "));
    format!("{indent}/* {joined} */\n")
}

/// Returns a declaration: the type followed by the name, with the star next to the name.
fn c_declaration(rust: &str, name: &str) -> String {
    let c = c_type(rust);
    if c.ends_with('*') { format!("{c}{name}") } else { format!("{c} {name}") }
}

fn c_type(rust: &str) -> String {
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("const {} *", c_type(target));
    }
    if let Some(target) = rust.strip_prefix("*mut ") {
        return format!("{} *", c_type(target));
    }
    let plain = match rust {
        "()" | "c_void" => "void",
        "c_char" => "char",
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "usize" => "size_t",
        // Types that a later boundary would define again.
        "Host" => "struct jaato_host_c1",
        "Plugin" => "struct jaato_plugin_c1",
        own => return format!("struct jaato_{}", own.to_lowercase()),
    };
    plain.to_owned()
}

#[test]
fn committed_c_header_matches_the_definitions() {
    expect_file!["../../include/jaato_plugin.h"].assert_eq(&header());
}
