//! A copy of the program `switchboard` in this package, whose path cargo passes to its tests.

fn main() -> std::process::ExitCode {
    switchboard::reaper::run_if_asked();
    switchboard_cli::run(std::env::args_os())
}
