//! The tables; the only place that prints.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the report is for people")]

use crate::BenchResult;
use crate::arguments::{Choices, choose};
use crate::data::ToolData;
use crate::judge::{RankingScores, Score, judge};
use crate::simulation::{Bill, ToolAccess, WAYS, run, tasks};
use crate::world::Worlds;

/// The numbers of tools for which the costs are shown.
const SIZES: [usize; 5] = [20, 100, 180, 500, 2_000];

pub(crate) fn complain(message: &str) {
    eprintln!("{message}");
}

/// Prints the quality and the speed of the ranking.
pub(crate) fn search(data: &ToolData) -> BenchResult<()> {
    let RankingScores { ours, adapter, query, index } = judge(data);
    println!(
        "| queries over {} tools | | hit@3 | hit@5 | nDCG@10 | hit@5 of an adapter | nDCG@10 |",
        data.tool_count()
    );
    println!("|---|---|---|---|---|---|---|");
    let row = |name: &str, Score { queries, first_three, hit, ndcg }: Score, other: Score| {
        println!(
            "| {name} | {queries} | {first_three:.3} | {hit:.3} | {ndcg:.3} | {:.3} | {:.3} |",
            other.hit, other.ndcg
        );
    };
    for ((kind, score), other) in ours.kinds.iter().zip(adapter.kinds.values()) {
        row(kind, *score, *other);
    }
    row("mean of the kinds", ours.all(), adapter.all());
    println!(
        "\n{:.3} ms a query (median), {:.1} ms for the index",
        query.as_secs_f64() * 1e3,
        index.as_secs_f64() * 1e3
    );
    let choices = choose(data)?;
    if choices.searches > 0 {
        arguments(choices);
    }
    Ok(())
}

/// Prints the outcomes of searches with arguments.
fn arguments(choices: Choices) {
    let Choices { searches, fits_one, right, wrong, called, asked, miscalled, misasked } = choices;
    let share = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
    let row = |what: &str, count: usize, of: usize| {
        println!("| {what} | {count} | {:.1} % |", share(count, of));
    };
    println!("\n| searches with arguments | {searches} | share |\n|---|---|---|");
    row("only one of the first five hits takes them", fits_one, searches);
    row("of these: the right tool is chosen", right, fits_one);
    row("a wrong tool is chosen", wrong, fits_one);
    row("the right tool only reads or only adds, and is called", called, fits_one);
    row("the right tool is destructive: the user is asked, then it is called", asked, fits_one);
    row("a wrong tool is called", miscalled, fits_one);
    row("the user is asked about a wrong tool", misasked, fits_one);
}

/// Prints the costs of tasks for each way of tool access and each number of tools.
pub(crate) fn tokens(data: &ToolData) -> BenchResult<()> {
    let worlds = Worlds::new(data)?;
    let tasks = tasks(data);
    println!("{} tasks over {} tools\n", tasks.len(), data.tool_count());
    println!(
        "| tools | way | standing | added once | sent, all turns | of direct | turns | failed \
         | misled | dearer than direct | more turns than the adapter |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for size in SIZES.into_iter().filter(|size| *size <= data.tool_count()) {
        let mut bills: Vec<[Bill; WAYS.len()]> = Vec::new();
        for task in &tasks {
            let Some(tool) = task.tools.first() else { continue };
            let world = worlds.around(tool, size)?;
            bills.push(WAYS.map(|way| run(task, &world, way)));
        }
        for (at, way) in WAYS.into_iter().enumerate() {
            println!("| {size} | {} | {} |", title(way), row(&bills, at).join(" | "));
        }
    }
    Ok(())
}

fn title(way: ToolAccess) -> &'static str {
    match way {
        ToolAccess::Direct => "listed directly",
        ToolAccess::Adapter => "an adapter with a tool per server",
        ToolAccess::Switchboard => "Switchboard",
        ToolAccess::SearchAndCall => "Switchboard, search with arguments",
    }
}

fn row(bills: &[[Bill; WAYS.len()]], at: usize) -> Vec<String> {
    let [direct, adapter] = [0, 1];
    let mean = |of: &dyn Fn(&[Bill; WAYS.len()]) -> f64| {
        bills.iter().map(of).sum::<f64>() / bills.len().max(1) as f64
    };
    let share = |of: &dyn Fn(&[Bill; WAYS.len()]) -> bool| {
        format!("{:.1} %", 100.0 * mean(&|bills| f64::from(u8::from(of(bills)))))
    };
    let sent = mean(&|bills| bills[at].sent as f64);
    vec![
        format!("{:.0}", mean(&|bills| bills[at].standing as f64)),
        format!("{:.0}", mean(&|bills| bills[at].added as f64)),
        format!("{sent:.0}"),
        format!("{:.1} %", 100.0 * sent / mean(&|bills| bills[direct].sent as f64).max(1.0)),
        format!("{:.2}", mean(&|bills| bills[at].turns as f64)),
        share(&|bills| bills[at].failed),
        share(&|bills| bills[at].misled),
        share(&|bills| bills[at].sent > bills[direct].sent),
        share(&|bills| bills[at].turns > bills[adapter].turns),
    ]
}
