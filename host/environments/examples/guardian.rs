//! The guardian for the tests' programs. The test program itself cannot be one, because it has
//! threads.

fn main() -> std::process::ExitCode {
    jaato_process::guardian_main()
}
