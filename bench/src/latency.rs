//! Compares a call through Switchboard with a direct one: latency, throughput, CPU time and lost
//! responses.

use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::BenchResult;
use crate::client::Client;
use crate::process;
use crate::table::Table;
use crate::world::World;

const WARM_UP: usize = 2_000;
const CALLS: usize = 8_000;
const ROUNDS: usize = 9;

const DIRECT: &str = r#"{"name":"echo","arguments":{"text":"hello there"}}"#;
const THROUGH: &str =
    r#"{"name":"mcp","arguments":{"tool":"fixture_echo","args":{"text":"hello there"}}}"#;

pub(crate) fn measure(world: &World, table: &mut Table) -> BenchResult<()> {
    pin_to_one_core()?;
    let home = world.echo_home()?;
    let mut direct = world.direct(&["--bench"])?;
    let mut through = home.serve()?;
    direct.initialize()?;
    through.initialize()?;
    direct.sequential(DIRECT, WARM_UP)?;
    through.sequential(THROUGH, WARM_UP)?;
    if !through.last_line().contains("hello there") {
        return Err(format!("unexpected answer: {}", through.last_line()).into());
    }
    sequential(&mut direct, &mut through, table)?;
    for window in [16, 64] {
        in_flight(&mut direct, &mut through, window, table)?;
    }
    Ok(())
}

/// The best of several rounds. Both subjects are measured in turns, so that noise affects both
/// alike.
fn sequential(direct: &mut Client, through: &mut Client, table: &mut Table) -> BenchResult<()> {
    let mut floor = [Duration::MAX; 2];
    let mut ours = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        for (client, params, best) in
            [(&mut *direct, DIRECT, &mut floor), (&mut *through, THROUGH, &mut ours)]
        {
            let mut times = client.sequential(params, CALLS)?;
            times.sort_unstable();
            for (slot, percent) in best.iter_mut().zip([50, 99]) {
                *slot = (*slot).min(times[times.len() * percent / 100]);
            }
        }
    }
    for (name, index, bar) in [("echo p50", 0, "≤ 4.5 ×"), ("echo p99", 1, "")] {
        let ratio = ours[index].as_secs_f64() / floor[index].as_secs_f64();
        let micros = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6);
        table.row(
            name,
            micros(ours[index]),
            format!("{ratio:.2} × direct ({})", micros(floor[index])),
            bar,
        );
    }
    Ok(())
}

fn in_flight(
    direct: &mut Client,
    through: &mut Client,
    window: usize,
    table: &mut Table,
) -> BenchResult<()> {
    let (mut floor, mut ours) = (0.0_f64, 0.0_f64);
    let before = process::cpu(through.pid())?;
    for _ in 0..ROUNDS {
        floor = floor.max(direct.pipelined(DIRECT, CALLS, window)?);
        ours = ours.max(through.pipelined(THROUGH, CALLS, window)?);
    }
    let spent = process::cpu(through.pid())? - before;
    let thousands = |rate: f64| format!("{:.0}k/s", rate / 1_000.0);
    let bar = if window == 64 { "≥ 80k/s, no lost answer" } else { "" };
    table.row(
        &format!("calls a second, {window} in flight"),
        thousands(ours),
        format!("{:.2} × direct ({})", ours / floor, thousands(floor)),
        bar,
    );
    let per_ten_thousand = spent.as_secs_f64() * 10_000.0 / (CALLS * ROUNDS) as f64;
    let bar = if window == 16 { "≤ 0.2 s" } else { "" };
    table.row(
        &format!("CPU for 10,000 calls, {window} in flight"),
        format!("{per_ten_thousand:.3} s"),
        "gateway alone".to_owned(),
        bar,
    );
    Ok(())
}

/// Pins this process to one core, so that the figures measure work and not the scheduling over
/// cores.
fn pin_to_one_core() -> BenchResult<()> {
    let mut cores = CpuSet::new();
    cores.set(0);
    Ok(sched_setaffinity(None, &cores)?)
}
