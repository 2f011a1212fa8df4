//! The guardian that the tests' programs stand under: the test program itself has threads.

fn main() -> std::process::ExitCode {
    jaato_process::guardian_main()
}
