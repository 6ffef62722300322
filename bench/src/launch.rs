//! Compares a server behind `npx` that Switchboard starts with one that is started directly: start
//! time and memory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::BenchResult;
use crate::client::Client;
use crate::process;
use crate::table::Table;
use crate::world::World;

const TRIES: usize = 5;
const PACKAGE: &str = "@modelcontextprotocol/server-everything";
/// The directory in which npm installs the server; its name contains a part of the hash of the
/// package's name.
const INSTALLED: &str = "_npx/5b2dd62b9d0bddd4/node_modules/@modelcontextprotocol";

pub(crate) fn measure(world: &World, table: &mut Table) -> BenchResult<()> {
    let Some(cache) = cache().filter(|cache| cache.join(INSTALLED).is_dir()) else {
        let reason = format!("npm has not installed it: `npx -y {PACKAGE}` does");
        table.row("a server behind `npx`", "skipped".to_owned(), reason, "");
        return Ok(());
    };
    let (plain, plain_tree) = median(|| plainly(world, &cache))?;
    let (ours, our_tree) = median(|| through(world, &cache))?;
    table.row(
        "a server behind `npx`, from spawn to its first answer",
        format!("{:.0} ms", ours.as_secs_f64() * 1e3),
        format!("`npx` {:.0} ms", plain.as_secs_f64() * 1e3),
        "",
    );
    table.row(
        "its processes and their RSS",
        our_tree.to_string(),
        format!("`npx` {plain_tree}"),
        "one process",
    );
    Ok(())
}

/// A started server with all processes that were started for it.
struct Tree {
    processes: usize,
    resident: u64,
}

impl Tree {
    fn of(pids: &[u32]) -> BenchResult<Tree> {
        let resident = pids.iter().map(|pid| process::resident(*pid)).sum::<BenchResult<u64>>()?;
        Ok(Tree { processes: pids.len(), resident })
    }
}

impl std::fmt::Display for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {}", self.processes, process::mebibytes(self.resident))
    }
}

fn plainly(world: &World, cache: &Path) -> BenchResult<(Duration, Tree)> {
    let started = Instant::now();
    let mut command = world.program("npx");
    let mut client = Client::start(command.args(["-y", PACKAGE]).env("npm_config_cache", cache))?;
    client.initialize()?;
    let took = started.elapsed();
    let mut tree = process::descendants(client.pid())?;
    tree.push(client.pid());
    Ok((took, Tree::of(&tree)?))
}

fn through(world: &World, cache: &Path) -> BenchResult<(Duration, Tree)> {
    let env = json!({ "npm_config_cache": cache });
    let server = json!({ "command": "npx", "args": ["-y", PACKAGE], "env": env });
    let config = json!({ "mcpServers": { "it": server }, "settings": { "firstListing": false } });
    let home = world.home_with(&config)?;
    let started = Instant::now();
    let mut client = home.serve()?;
    client.initialize()?;
    let call = json!({ "tool": "it_echo", "args": { "message": "hello" } });
    let answer = client.mcp(&call)?;
    let took = started.elapsed();
    if answer["result"]["isError"] == true {
        return Err(format!("unexpected answer: {answer}").into());
    }
    Ok((took, Tree::of(&process::descendants(client.pid())?)?))
}

fn median(
    mut measure: impl FnMut() -> BenchResult<(Duration, Tree)>,
) -> BenchResult<(Duration, Tree)> {
    let mut tries = (0..TRIES).map(|_| measure()).collect::<BenchResult<Vec<_>>>()?;
    tries.sort_by_key(|(took, _)| *took);
    Ok(tries.swap_remove(TRIES / 2))
}

#[expect(clippy::disallowed_methods, reason = "a bench uses what is installed on its machine")]
fn cache() -> Option<PathBuf> {
    let moved = std::env::var_os("npm_config_cache").map(PathBuf::from);
    moved.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".npm")))
}
