//! Checks that there is enough memory before a model is loaded.
//!
//! Loading keeps the weights as they are stored, and again in the layout of the vector kernels.
//! With Intel's AMX there is a third copy, which an environment variable that the runtime reads at
//! its start can avoid.

use jaato_plugin_sdk::types::{Error, ErrorKind, Result};

/// With less free memory, the user gets a notice before the model is loaded.
pub const TIGHT_BYTES: u64 = 6 * GIB;

const GIB: u64 = 1 << 30;

/// The runtime's memory in addition to the weights: vocabulary, grammar, and the cache of a long
/// prompt.
const WORKING_BYTES: u64 = 256 << 20;

/// The copies of the weights that the runtime makes on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightCopies {
    /// As stored and repacked.
    TwoCopies,
    /// As stored, repacked, and for AMX. `variable` avoids the last copy.
    ThreeCopies {
        /// The variable to set, as `NAME=1`.
        variable: &'static str,
    },
}

impl WeightCopies {
    /// Detects what the runtime will use on this machine.
    pub fn detect_for_machine() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let is_set = |name: &str| std::env::var(name).as_deref() == Ok("1");
            let is_forced = is_set("MISTRALRS_FORCE_AVX2") || is_set("MISTRALRS_FORCE_AVXVNNI");
            if !is_forced && is_x86_feature_detected!("avx512vnni") && has_amx_instructions() {
                let variable = if is_x86_feature_detected!("avxvnni") {
                    "MISTRALRS_FORCE_AVXVNNI=1"
                } else {
                    "MISTRALRS_FORCE_AVX2=1"
                };
                return Self::ThreeCopies { variable };
            }
        }
        Self::TwoCopies
    }

    /// Returns the memory in bytes for a model with weights of this size.
    ///
    /// Measured with the default model of 1.04 GiB: 2.5 GiB with two copies, 3.7 GiB with three.
    fn needed_bytes(self, weights_bytes: u64) -> u64 {
        let tenths = match self {
            Self::TwoCopies => 21,
            Self::ThreeCopies { .. } => 32,
        };
        weights_bytes / 10 * tenths + WORKING_BYTES
    }
}

#[cfg(target_arch = "x86_64")]
fn has_amx_instructions() -> bool {
    // The standard library has no stable name for these features, but Linux lists them.
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
        let flags = text.lines().find(|line| line.starts_with("flags"));
        flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "amx_int8"))
    })
}

/// Returns the memory in bytes that this process can still use, or `None` if that is unknown.
pub fn available_bytes() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    let machine = system.available_memory();
    let group = system.cgroup_limits().map(|limits| limits.free_memory);
    Some(group.map_or(machine, |group| group.min(machine))).filter(|&bytes| bytes > 0)
}

/// Returns a notice for the user if memory is tight.
///
/// # Errors
/// Kind `limit_reached` if the memory is not enough, with a hint.
pub fn check_memory(
    kernels: WeightCopies,
    weights_bytes: u64,
    available: Option<u64>,
) -> Result<Option<String>> {
    let Some(available) = available else { return Ok(None) };
    let needed = kernels.needed_bytes(weights_bytes);
    if available < needed {
        let text = format!(
            "the local model needs about {} of memory, but only {} are available",
            format_gib(needed),
            format_gib(available)
        );
        return Err(Error::new(ErrorKind::LimitReached, text).with_hint(memory_hint(
            kernels,
            weights_bytes,
            available,
        )));
    }
    if available >= TIGHT_BYTES {
        return Ok(None);
    }
    let saving = match kernels {
        WeightCopies::TwoCopies => String::new(),
        WeightCopies::ThreeCopies { variable } => {
            let saved = needed - WeightCopies::TwoCopies.needed_bytes(weights_bytes);
            format!("; `{variable}` in the environment saves {}", format_gib(saved))
        }
    };
    Ok(Some(format!(
        "memory is tight: {} are available, the model takes about {}{saving}",
        format_gib(available),
        format_gib(needed)
    )))
}

fn memory_hint(kernels: WeightCopies, weights_bytes: u64, available: u64) -> String {
    match kernels {
        WeightCopies::ThreeCopies { variable }
            if WeightCopies::TwoCopies.needed_bytes(weights_bytes) <= available =>
        {
            format!("set `{variable}` to use less memory, and restart jaato")
        }
        WeightCopies::ThreeCopies { .. } | WeightCopies::TwoCopies => {
            "close other programs, or take the smaller `--model local/qwen2.5-coder-0.5b`"
                .to_owned()
        }
    }
}

fn format_gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / GIB as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: u64 = 1_117_320_768;
    const AMX: WeightCopies = WeightCopies::ThreeCopies { variable: "MISTRALRS_FORCE_AVX2=1" };

    #[track_caller]
    fn assert_warning(kernels: WeightCopies, available: u64, expected: &str) {
        let text = check_memory(kernels, WEIGHTS, Some(available));
        let text = text.map_or_else(|error| error.to_string(), Option::unwrap_or_default);
        assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{text}");
    }

    #[test]
    fn memory_warning_is_absent_with_enough_or_unknown_memory() {
        assert_warning(AMX, TIGHT_BYTES, "");
        assert_eq!(check_memory(AMX, WEIGHTS, None), Ok(None));
    }

    #[test]
    fn low_memory_warning_names_the_variable_that_saves_memory() {
        assert_warning(
            AMX,
            TIGHT_BYTES - 1,
            "`MISTRALRS_FORCE_AVX2=1` in the environment saves 1.1 GiB",
        );
        assert_warning(
            AMX,
            TIGHT_BYTES - 1,
            "6.0 GiB are available, the model takes about 3.6 GiB",
        );
        assert_warning(WeightCopies::TwoCopies, 5 * GIB, "memory is tight: 5.0 GiB are available");
    }

    #[test]
    fn insufficient_memory_is_an_error_with_a_hint() {
        assert_warning(AMX, 3 * GIB, "hint: set `MISTRALRS_FORCE_AVX2=1`");
        assert_warning(AMX, 2 * GIB, "the smaller `--model local/qwen2.5-coder-0.5b`");
        assert_warning(
            WeightCopies::TwoCopies,
            GIB,
            "needs about 2.4 GiB of memory, but only 1.0 GiB are available",
        );
    }
}
