//! The program `switchboard` once more, where the tests of this package can find it.

fn main() -> std::process::ExitCode {
    switchboard::reaper::run_if_asked();
    switchboard_cli::run(std::env::args_os())
}
