//! The program `switchboard`.

fn main() -> std::process::ExitCode {
    switchboard::reaper::run_if_asked();
    switchboard_cli::run(std::env::args_os())
}
