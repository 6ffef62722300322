//! Simulates tasks with a fixed policy: search, describe, call, and search again after a miss.
//! Counts the tokens until the call is made, for each way of tool access.

use serde_json::{Value, json};
use switchboard_core::approval::Access;
use switchboard_core::catalog::guess::NotCalled;
use switchboard_core::catalog::{Resolution, Resolved};
use switchboard_core::exact::Args;
use switchboard_core::render::text;
use switchboard_core::reply::{Reply, SearchPage};
use switchboard_core::request::{Matching, Request, parse};
use switchboard_core::tool_card;

use crate::adapter::{self, Adapter};
use crate::data::{Query, Tool, ToolData};
use crate::shape;
use crate::world::{World, tokens};

/// The maximum number of searches of a task; a task without a hit has then failed.
const MOST_SEARCHES: usize = 3;

/// The number of words of a description that the second search uses.
const VARIANT_WORDS: usize = 8;

/// The estimated tokens of the result of a tool that was called by mistake.
const RESULT: usize = 500;

/// The kinds of queries with one right tool.
const KINDS: [&str; 4] = ["keyword_hand", "keyword_llm", "llm_route", "step"];

/// A query with the tools that are right for it.
pub(crate) struct Task<'a> {
    pub(crate) query: &'a Query,
    /// The first right tool decides which tools are in the world, and what the second search is.
    pub(crate) tools: Vec<&'a Tool>,
}

/// All queries of these kinds for which the data has a right tool.
pub(crate) fn tasks(data: &ToolData) -> Vec<Task<'_>> {
    let queries = data.queries.iter().filter(|query| KINDS.contains(&query.kind.as_str()));
    let tasks = queries.map(|query| {
        let all = data.servers.values().flatten();
        let right = |tool: &&Tool| query.relevant.contains(&tool.id);
        Task { query, tools: all.filter(right).collect() }
    });
    tasks.filter(|task| !task.tools.is_empty()).collect()
}

/// How a model finds a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ToolAccess {
    /// All definitions are in the context.
    Direct,
    Adapter,
    Switchboard,
    /// Switchboard, with the arguments in the first search.
    SearchAndCall,
}

pub(crate) const WAYS: [ToolAccess; 4] =
    [ToolAccess::Direct, ToolAccess::Adapter, ToolAccess::Switchboard, ToolAccess::SearchAndCall];

/// The costs and the outcome of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bill {
    pub(crate) standing: usize,
    /// The tokens that were added to the context, each counted once.
    pub(crate) added: usize,
    /// The tokens that were sent: the context is sent again with every turn.
    pub(crate) sent: usize,
    pub(crate) turns: usize,
    pub(crate) failed: bool,
    /// Whether a wrong tool was called.
    pub(crate) misled: bool,
}

pub(crate) fn run(task: &Task<'_>, world: &World<'_>, way: ToolAccess) -> Bill {
    match way {
        ToolAccess::Direct => direct(task, world),
        ToolAccess::Adapter => with_adapter(task, world),
        ToolAccess::Switchboard | ToolAccess::SearchAndCall => with_switchboard(task, world, way),
    }
}

/// A conversation. Only tokens that concern tools are counted.
struct Talk {
    bill: Bill,
}

impl Talk {
    fn new(standing: usize) -> Talk {
        Talk { bill: Bill { standing, added: standing, ..Bill::default() } }
    }

    /// Adds a turn: the model reads the context and makes a call, and the result is added to the
    /// context.
    fn turn(&mut self, call: &Value, answer: &str) {
        self.bill.sent += self.bill.added;
        self.bill.added += tokens(&call.to_string()) + tokens(answer);
        self.bill.turns += 1;
    }

    /// Adds the final call. Its result costs the same for every way of tool access, and is not
    /// counted.
    fn call(mut self, call: &Value) -> Bill {
        self.turn(call, "");
        self.bill
    }

    fn give_up(self) -> Bill {
        Bill { failed: true, ..self.bill }
    }
}

fn direct(task: &Task<'_>, world: &World<'_>) -> Bill {
    let Some(tool) = task.tools.first() else { return Talk::new(world.direct).give_up() };
    let args = shape::arguments(&tool.input_schema);
    Talk::new(world.direct).call(&json!({ "name": tool.name, "arguments": args }))
}

fn with_adapter(task: &Task<'_>, world: &World<'_>) -> Bill {
    let mut talk = Talk::new(adapter::standing(world.lists.len()));
    let adapter = Adapter::of(world.tools());
    let mut searches = Searches::new(task);
    while let Some((query, offset)) = searches.next() {
        let ranked = adapter.rank(&query);
        let answer = adapter::page(&query, &ranked, offset);
        talk.turn(&search_call(&query, offset), &answer);
        let hits = || ranked.iter().skip(offset).take(adapter::PAGE);
        if let Some(tool) = task.tools.iter().find(|tool| hits().any(|hit| hit.id == tool.id)) {
            let args = shape::arguments(&tool.input_schema);
            return talk.call(&mcp(json!({ "tool": adapter::shown(tool), "args": args })));
        }
        let next = offset + adapter::PAGE;
        searches.missed((next < ranked.len()).then_some(next));
    }
    talk.give_up()
}

fn with_switchboard(task: &Task<'_>, world: &World<'_>, way: ToolAccess) -> Bill {
    let mut talk = Talk::new(tokens(&tool_card::definition()));
    let mut searches = Searches::new(task);
    while let Some((query, offset)) = searches.next() {
        let Some(mut page) = found(world, &query, offset) else { break };
        let mut search = search_call(&query, offset);
        if way == ToolAccess::SearchAndCall && talk.bill.turns == 0 {
            let args = task.tools.first().map(|tool| shape::arguments(&tool.input_schema));
            search["arguments"]["args"] = args.unwrap_or_default();
            match called_at_once(world, &page, &search["arguments"]["args"]) {
                Ok(called) if task.tools.iter().any(|tool| world.shown(tool) == Some(&called)) => {
                    return talk.call(&search);
                }
                Ok(_) => {
                    // The model sees which tool was called, and searches without arguments.
                    talk.turn(&search, "");
                    talk.bill.added += RESULT;
                    talk.bill.misled = true;
                    search = search_call(&query, offset);
                }
                Err(why) => page.not_called = Some(Box::new(why)),
            }
        }
        let total = page.total;
        let answer = text::reply(&Reply::Found(page));
        talk.turn(&search, &answer);
        if let Some((tool, name)) = seen(task, world, |name| is_in_full(&answer, name)) {
            return talk.call(&call_of(tool, name));
        }
        if let Some((tool, name)) = seen(task, world, |name| is_a_line(&answer, name)) {
            let Some(resolved) = resolve(world, name) else { break };
            let described = text::reply(&Reply::Described(Box::new(resolved.describe())));
            talk.turn(&mcp(json!({ "describe": name })), &described);
            return talk.call(&call_of(tool, name));
        }
        searches.missed(next_offset(&answer).filter(|next| *next < total));
    }
    talk.give_up()
}

/// The offset of the next page according to a result; `None` if it names none.
fn next_offset(answer: &str) -> Option<usize> {
    let (_, rest) = answer.rsplit_once("next page: offset ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The searches of a task: the query, then other words for it, then the next page of the latest
/// search that has one.
struct Searches {
    query: String,
    variant: String,
    done: usize,
    pages: Vec<(String, Option<usize>)>,
}

impl Searches {
    fn new(task: &Task<'_>) -> Searches {
        let variant = task.tools.first().map(|tool| variant(tool)).unwrap_or_default();
        Searches { query: task.query.query.clone(), variant, done: 0, pages: Vec::new() }
    }

    fn next(&self) -> Option<(String, usize)> {
        match self.done {
            0 => Some((self.query.clone(), 0)),
            1 => Some((self.variant.clone(), 0)),
            done if done < MOST_SEARCHES => {
                let mut latest = self.pages.iter().rev();
                latest.find_map(|(query, next)| Some((query.clone(), (*next)?)))
            }
            _ => None,
        }
    }

    /// Records that a search found no right tool. `next` is the offset of its next page.
    fn missed(&mut self, next: Option<usize>) {
        let query = if self.done == 0 { &self.query } else { &self.variant };
        self.pages.push((query.clone(), next));
        self.done += 1;
    }
}

/// The first words of the description: the likely query of a user who knows what the tool does.
fn variant(tool: &Tool) -> String {
    let about = if tool.description().trim().is_empty() { &tool.name } else { tool.description() };
    let sentence = about.split(['.', '\n']).find(|part| !part.trim().is_empty()).unwrap_or(about);
    sentence.split_whitespace().take(VARIANT_WORDS).collect::<Vec<_>>().join(" ")
}

/// The tool that a search with arguments calls.
fn called_at_once(world: &World<'_>, page: &SearchPage, args: &Value) -> Result<String, NotCalled> {
    let args = Args::parse(&args.to_string()).map_err(|_| NotCalled::Unclear)?;
    let best = world.catalog.meant(page, Matching::Words, None, &args);
    let best = best.ok_or(NotCalled::Unclear)?;
    best.check_unnamed(args, Access::Full).map(|checked| checked.target.shown.to_string())
}

fn found(world: &World<'_>, query: &str, offset: usize) -> Option<SearchPage> {
    let asked = parse(json!({ "search": query, "offset": offset }).into()).ok()?;
    match asked.request {
        Request::Search(request) => world.catalog.search(&request).ok(),
        _ => None,
    }
}

fn resolve(world: &World<'_>, name: &str) -> Option<Resolved> {
    match world.catalog.resolve(name, None).ok()? {
        Resolution::Tool(resolved) => Some(resolved),
        Resolution::Unlisted(_) => None,
    }
}

/// The first right tool whose name satisfies `is_seen`.
fn seen<'a, 'w>(
    task: &Task<'a>,
    world: &'w World<'_>,
    is_seen: impl Fn(&str) -> bool,
) -> Option<(&'a Tool, &'w str)> {
    let named = task.tools.iter().filter_map(|tool| Some((*tool, world.shown(tool)?)));
    named.into_iter().find(|(_, name)| is_seen(name))
}

fn is_in_full(answer: &str, name: &str) -> bool {
    answer.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('(')))
}

fn is_a_line(answer: &str, name: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut lines = answer.lines().filter_map(|line| line.strip_prefix("- ")?.strip_prefix(name));
    lines.any(|rest| !rest.starts_with(goes_on))
}

fn call_of(tool: &Tool, name: &str) -> Value {
    mcp(json!({ "tool": name, "args": shape::arguments(&tool.input_schema) }))
}

fn search_call(query: &str, offset: usize) -> Value {
    match offset {
        0 => mcp(json!({ "search": query })),
        _ => mcp(json!({ "search": query, "offset": offset })),
    }
}

fn mcp(arguments: Value) -> Value {
    json!({ "name": "mcp", "arguments": arguments })
}
