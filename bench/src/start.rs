//! Measures the time from the start of a process to its first responses.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::BenchResult;
use crate::process;
use crate::table::Table;
use crate::world::{Home, World};

const TRIES: usize = 15;
const TWENTY_TOOLS: &str = "generate = 20\n[server]\nname = \"twenty\"\n";
const SLOW: &str = "generate = 20\n[server]\nname = \"slow\"\n[faults]\nstart_delay_ms = 300\n";

pub(crate) fn measure(world: &World, table: &mut Table) -> BenchResult<()> {
    for servers in [1, 10, 50] {
        let home = world.home(servers, TWENTY_TOOLS, json!({}))?;
        home.fill_cache()?;
        let (best, children) = tools_list(&home)?;
        table.row(
            &format!("cold start to `tools/list`, {servers} servers cached"),
            milliseconds(best),
            format!("{children} children started"),
            if servers == 50 { "≤ 15 ms, no child" } else { "" },
        );
        if servers == 50 {
            let best = best_of(|| first_search(&home))?;
            table.row(
                "first search, cold, 1,000 cached tools",
                milliseconds(best),
                "from spawn".to_owned(),
                "≤ 25 ms",
            );
            idle_memory(&home, table)?;
        }
    }
    let started = Instant::now();
    world.home(50, SLOW, json!({}))?.fill_cache()?;
    table.row(
        "whole catalogue, 50 uncached servers of 300 ms",
        format!("{:.2} s", started.elapsed().as_secs_f64()),
        "16 at a time".to_owned(),
        "≤ 2.5 s",
    );
    let demo = best_of(|| demo_call(world))?;
    table.row("CLI `call` on the demo server", milliseconds(demo), String::new(), "≤ 15 ms");
    let size = std::fs::metadata(&world.switchboard)?.len();
    table.row("release binary", process::mebibytes(size), String::new(), "≤ 20 MB");
    Ok(())
}

fn best_of(mut measure: impl FnMut() -> BenchResult<Duration>) -> BenchResult<Duration> {
    let mut times = (0..TRIES).map(|_| measure()).collect::<BenchResult<Vec<_>>>()?;
    times.sort_unstable();
    // The median: the fastest start would depend on chance.
    Ok(times[times.len() / 2])
}

fn tools_list(home: &Home) -> BenchResult<(Duration, usize)> {
    let mut children = 0;
    let best = best_of(|| {
        let started = Instant::now();
        let mut client = home.serve()?;
        client.initialize()?;
        client.ask("tools/list", &json!({}))?;
        let took = started.elapsed();
        children += process::children(client.pid())?.len();
        Ok(took)
    })?;
    Ok((best, children))
}

fn first_search(home: &Home) -> BenchResult<Duration> {
    let started = Instant::now();
    let mut client = home.serve()?;
    client.initialize()?;
    let answer = client.mcp(&json!({ "search": "list open pull requests" }))?;
    let took = started.elapsed();
    if answer["result"]["isError"] == true {
        return Err(format!("unexpected answer: {answer}").into());
    }
    Ok(took)
}

fn idle_memory(home: &Home, table: &mut Table) -> BenchResult<()> {
    let mut client = home.serve()?;
    client.initialize()?;
    client.ask("tools/list", &json!({}))?;
    let before = process::resident(client.pid())?;
    client.mcp(&json!({ "search": "list open pull requests" }))?;
    let after = process::resident(client.pid())?;
    table.row(
        "idle RSS, 50 servers, 1,000 cached tools",
        process::mebibytes(before),
        format!("{} after a search", process::mebibytes(after)),
        "≤ 14 MiB",
    );
    Ok(())
}

fn demo_call(world: &World) -> BenchResult<Duration> {
    let home = world.home(0, "", json!({}))?;
    let started = Instant::now();
    let output = home.command().args(["call", "demo_add", "a=2", "b=40"]).output()?;
    let took = started.elapsed();
    if output.stdout != b"42\n" {
        return Err("the demo server did not say 42".into());
    }
    Ok(took)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
