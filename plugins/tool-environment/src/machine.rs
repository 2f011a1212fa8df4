//! The aspects `os` and `arch`.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

use crate::facts::MachineFacts;

/// Returns type, name, release and friendly name of the operating system. Under MSYS2, also its
/// variant.
pub(crate) fn os_fields(facts: &MachineFacts) -> Map<String, Value> {
    let (kind, name, friendly) = os_names(&facts.os);
    let mut report = Map::from_iter([
        ("type".to_owned(), json!(kind)),
        ("name".to_owned(), json!(name)),
        ("release".to_owned(), json!(kernel_release(facts))),
        ("friendly_name".to_owned(), json!(friendly)),
    ]);
    if let Some(system) = facts.variables.get("MSYSTEM").filter(|_| facts.is_windows()) {
        report.insert("msys2".to_owned(), json!(true));
        report.insert("msystem".to_owned(), json!(system));
    }
    report
}

/// Returns the machine, the processor, and the architecture's normalized name.
pub(crate) fn arch_fields(facts: &MachineFacts) -> Map<String, Value> {
    let machine = machine_name(facts);
    Map::from_iter([
        ("machine".to_owned(), json!(machine)),
        ("processor".to_owned(), json!(processor_name(facts, machine))),
        ("normalized".to_owned(), json!(normalize_architecture(machine))),
    ])
}

/// Returns the type as `uname` gives it in lower case, the system's own spelling, and the common
/// name.
fn os_names(os: &str) -> (&str, &str, &str) {
    match os {
        "linux" | "android" => ("linux", "Linux", "Linux"),
        "macos" => ("darwin", "Darwin", "macOS"),
        "windows" => ("windows", "Windows", "Windows"),
        "freebsd" => ("freebsd", "FreeBSD", "FreeBSD"),
        "netbsd" => ("netbsd", "NetBSD", "NetBSD"),
        "openbsd" => ("openbsd", "OpenBSD", "OpenBSD"),
        other => (other, other, other),
    }
}

/// Returns the kernel's release. Windows' kernel has only a build number, so this is the product's:
/// `10`.
fn kernel_release(facts: &MachineFacts) -> Option<&str> {
    if facts.is_windows() {
        return facts.os_version.as_deref()?.split_whitespace().next();
    }
    facts.kernel_version.as_deref().or(facts.os_version.as_deref())
}

/// Returns Windows' own spelling (`AMD64`) if there is one. The first variable is set for a 32-bit
/// process on a 64-bit system.
fn machine_name(facts: &MachineFacts) -> &str {
    let own = facts.variables.first_set(&["PROCESSOR_ARCHITEW6432", "PROCESSOR_ARCHITECTURE"]);
    own.filter(|_| facts.is_windows()).unwrap_or(&facts.machine)
}

fn processor_name<'a>(facts: &'a MachineFacts, machine: &'a str) -> &'a str {
    match facts.os.as_str() {
        "windows" => facts.variables.get("PROCESSOR_IDENTIFIER").unwrap_or(machine),
        "macos" if machine == "arm64" => "arm",
        _ => machine,
    }
}

pub(crate) fn normalize_architecture(machine: &str) -> String {
    let lower = machine.to_ascii_lowercase();
    match lower.as_str() {
        "x86_64" | "amd64" => "x86_64".to_owned(),
        "aarch64" | "arm64" => "arm64".to_owned(),
        "i386" | "i686" => "x86".to_owned(),
        _ => lower,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::testing::{
        linux_machine, macos_machine, msys2_machine, report_lines, windows_machine,
    };

    #[track_caller]
    fn check_fields(
        aspect: fn(&MachineFacts) -> Map<String, Value>,
        facts: MachineFacts,
        expected: Expect,
    ) {
        expected.assert_eq(&report_lines(&aspect(&facts)));
    }

    #[test]
    fn each_os_has_a_friendly_and_a_technical_name() {
        check_fields(
            os_fields,
            linux_machine(),
            expect![[r#"
                friendly_name = "Linux"
                name = "Linux"
                release = "5.15.0"
                type = "linux"
            "#]],
        );
        check_fields(
            os_fields,
            macos_machine(),
            expect![[r#"
                friendly_name = "macOS"
                name = "Darwin"
                release = "22.1.0"
                type = "darwin"
            "#]],
        );
        check_fields(
            os_fields,
            windows_machine(),
            expect![[r#"
                friendly_name = "Windows"
                name = "Windows"
                release = "10"
                type = "windows"
            "#]],
        );
        check_fields(
            os_fields,
            msys2_machine(),
            expect![[r#"
                friendly_name = "Windows"
                msys2 = true
                msystem = "UCRT64"
                name = "Windows"
                release = "10"
                type = "windows"
            "#]],
        );
    }

    #[test]
    fn msys2_is_reported_only_on_windows() {
        let facts = MachineFacts { variables: msys2_machine().variables, ..linux_machine() };
        assert!(!os_fields(&facts).contains_key("msys2"));
    }

    #[test]
    fn an_unknown_release_is_null_and_an_unknown_system_keeps_its_name() {
        let facts = MachineFacts {
            os: "haiku".to_owned(),
            kernel_version: None,
            os_version: None,
            ..linux_machine()
        };
        check_fields(
            os_fields,
            facts,
            expect![[r#"
                friendly_name = "haiku"
                name = "haiku"
                release = null
                type = "haiku"
            "#]],
        );
    }

    #[test]
    fn architecture_is_reported_raw_and_normalized() {
        check_fields(
            arch_fields,
            linux_machine(),
            expect![[r#"
                machine = "x86_64"
                normalized = "x86_64"
                processor = "x86_64"
            "#]],
        );
        check_fields(
            arch_fields,
            macos_machine(),
            expect![[r#"
                machine = "arm64"
                normalized = "arm64"
                processor = "arm"
            "#]],
        );
        check_fields(
            arch_fields,
            windows_machine(),
            expect![[r#"
                machine = "AMD64"
                normalized = "x86_64"
                processor = "Intel64 Family 6 Model 158 Stepping 10, GenuineIntel"
            "#]],
        );
    }

    #[test]
    fn all_spellings_of_an_architecture_share_one_name() {
        for (machine, name) in [
            ("AMD64", "x86_64"),
            ("aarch64", "arm64"),
            ("ARM64", "arm64"),
            ("i386", "x86"),
            ("i686", "x86"),
            ("riscv64", "riscv64"),
            ("PPC64LE", "ppc64le"),
        ] {
            assert_eq!(normalize_architecture(machine), name, "{machine}");
        }
    }
}
