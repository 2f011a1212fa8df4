//! Describes how a child ended.

use jaato_process::Exit;

/// Describes how a process ended: `exited with 3`, `was killed by signal 6 (abort)`.
pub fn exit_text(exit: Exit) -> String {
    let signal = match exit {
        Exit::Code(code) => return format!("exited with {code}"),
        Exit::Signal(signal) => signal,
    };
    let name = match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        9 => " (kill)",
        11 => " (segmentation fault)",
        15 => " (terminate)",
        24 => " (processor time)",
        _ => "",
    };
    format!("was killed by signal {signal}{name}")
}
