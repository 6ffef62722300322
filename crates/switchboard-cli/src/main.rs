//! The program `switchboard`.

fn main() -> std::process::ExitCode {
    switchboard_cli::run(std::env::args_os())
}
