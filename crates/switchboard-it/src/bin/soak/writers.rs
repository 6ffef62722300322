//! The scenario `writers`: many processes change the same files. Also the program of each writer.

use std::io::{self, Write};
use std::path::Path;

use switchboard_it::soak::writers::{WriterPlan, update_concurrently, write};
use tokio::runtime::Runtime;

use crate::usage;

/// The first argument of a writer process.
pub(crate) const WRITER: &str = "write";

pub(crate) fn run(_: &Runtime, numbers: &[usize]) -> io::Result<bool> {
    let small: Option<Vec<u32>> = numbers.iter().map(|number| (*number).try_into().ok()).collect();
    let Some(&[writers, updates]) = small.as_deref() else { return Err(usage()) };
    let home = tempfile::tempdir()?;
    let plan = WriterPlan { writers, updates, updates_per_kill: writers * 2 };
    let program = std::env::current_exe()?;
    let figures = update_concurrently(&program, home.path(), plan);
    let (updates, kills) = (figures.updates, figures.kills);
    writeln!(
        io::stdout(),
        "{writers} writers: {updates} updates, {kills} killed, none lost, nothing torn"
    )?;
    Ok(true)
}

/// Runs as one writer process, with its number, its first and its last update.
pub(crate) fn write_as_child(home: &str, numbers: &[&str]) -> io::Result<bool> {
    let numbers: Option<Vec<u32>> = numbers.iter().map(|number| number.parse().ok()).collect();
    let Some(&[writer, first, last]) = numbers.as_deref() else { return Err(usage()) };
    write(Path::new(home), writer, first, last)?;
    Ok(true)
}
