//! Measures the built programs side by side and prints one table of ratios.
//!
//! `cargo xtask bench` builds everything for release and runs this.

mod client;
mod http;
mod http_client;
mod latency;
mod launch;
mod memory;
mod process;
mod search;
mod start;
mod table;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use table::Table;
use world::World;

/// The result of a benchmark step; a failure is only reported.
pub(crate) type BenchResult<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [switchboard, fixture, sections @ ..] = args.as_slice() else {
        table::complain("usage: switchboard-bench SWITCHBOARD FIXTURE-SERVER [SECTION…]");
        return ExitCode::from(2);
    };
    let world = World::new(absolute(switchboard), absolute(fixture));
    match measure(&world, sections) {
        Ok(table) => {
            table.print();
            ExitCode::SUCCESS
        }
        Err(error) => {
            table::complain(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The absolute path of a program, because programs are started in other directories.
fn absolute(program: &str) -> PathBuf {
    std::path::absolute(program).unwrap_or_else(|_| PathBuf::from(program))
}

/// A section of the benchmark. Latency comes last, because it pins this process and its children to
/// one core.
type Section = (&'static str, fn(&World, &mut Table) -> BenchResult<()>);
const SECTIONS: [Section; 6] = [
    ("start", start::measure),
    ("launch", launch::measure),
    ("search", search::measure),
    ("memory", memory::measure),
    ("http", http::measure),
    ("latency", latency::measure),
];

fn measure(world: &World, wanted: &[String]) -> BenchResult<Table> {
    let mut table = Table::default();
    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            section(world, &mut table)?;
        }
    }
    Ok(table)
}
