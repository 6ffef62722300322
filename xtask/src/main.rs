//! Developer commands: `cargo xtask search-run CORPUS QUERIES OUT`.

mod search_run;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["search-run", corpus, queries, out] => {
            search_run::run(corpus.as_ref(), queries.as_ref(), out.as_ref())?;
        }
        _ => return Err("usage: cargo xtask search-run CORPUS QUERIES OUT".into()),
    }
    Ok(())
}
