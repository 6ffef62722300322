//! Which tools a search finds and in which order, and properties that hold for any input.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::properties::{self, Piece};
use super::tokens::{self, WordForm};
use super::{Document, Fit, Hit, Indexer, Postings, RankingPage, index_all, rank};
use crate::catalog::Annotations;
use crate::pattern::{Case, Pattern};

/// A tool for the tests: `server/name`, description, schema and keywords.
#[derive(Debug, Clone)]
struct Tool {
    server: String,
    name: String,
    description: String,
    schema: String,
    keywords: Vec<String>,
    annotations: Annotations,
}

impl Tool {
    fn document(&self) -> Document<'_> {
        Document {
            server: &self.server,
            name: &self.name,
            title: None,
            description: &self.description,
            input_schema: &self.schema,
            keywords: &self.keywords,
            annotations: self.annotations,
        }
    }
}

fn tool(name: &str, description: &str) -> Tool {
    let (server, name) = name.split_once('/').unwrap();
    Tool {
        server: server.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        schema: String::new(),
        keywords: Vec::new(),
        annotations: Annotations::default(),
    }
}

fn tools() -> Vec<Tool> {
    let mut tools = vec![
        tool("browser/take_screenshot", "Capture the page as an image. Saves a file."),
        tool("browser/browserNavigate", "Open a URL in the tab."),
        tool("github/create_issue", "Open a new issue in a repository."),
        tool("github/list_issues", "List the issues of a repository."),
        tool("github/merge_pull_request", "Merge a pull request."),
        tool("files/read_file", "Read a file from disk."),
        tool("files/write_file", "Write text to a file, creating an issue report if it fails."),
        tool("trains/get-tickets", "查询12306余票信息。"),
        tool("notes/HTTPServerRestart", "Restarts it."),
    ];
    tools[5].schema =
        r#"{"properties": {"encoding": {"description": "character set", "enum": ["latin1"]}}}"#
            .to_owned();
    tools[4].keywords = vec!["land".to_owned()];
    tools
}

/// The tools grouped by server, in the order of each server's first tool.
fn listings(tools: &[Tool]) -> Vec<Vec<Tool>> {
    let mut listings: Vec<Vec<Tool>> = Vec::new();
    for tool in tools {
        match listings.iter_mut().find(|listing| listing[0].server == tool.server) {
            Some(listing) => listing.push(tool.clone()),
            None => listings.push(vec![tool.clone()]),
        }
    }
    listings
}

fn indexed(listings: &[Vec<Tool>]) -> Vec<Postings> {
    let mut indexer = Indexer::default();
    listings.iter().map(|tools| indexer.index(tools.iter().map(Tool::document))).collect()
}

/// The ranking of tools for a query, each as `server/name` with its score.
fn ranking(listings: &[Vec<Tool>], query: &str) -> Vec<(String, f32)> {
    ranking_by(listings, &indexed(listings), query)
}

fn ranking_by(listings: &[Vec<Tool>], postings: &[Postings], query: &str) -> Vec<(String, f32)> {
    let hits = rank(&postings.iter().collect::<Vec<_>>(), query).hits;
    let shown = |hit: &Hit| {
        let tool = &listings[hit.listing][hit.document];
        (format!("{}/{}", tool.server, tool.name), hit.score)
    };
    hits.iter().map(shown).collect()
}

/// Checks which of `tools()` a query finds, best first.
fn check(query: &str, expected: &[&str]) {
    let found: Vec<String> =
        ranking(&listings(&tools()), query).into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, expected, "for {query:?}");
}

#[test]
fn search_matches_any_word_and_prefers_names() {
    check(
        "issue",
        &["github/create_issue", "github/list_issues", "files/write_file", "trains/get-tickets"],
    );
    check("merge tab", &["github/merge_pull_request", "browser/browserNavigate"]);
}

#[test]
fn search_ignores_word_endings_letter_case_and_identifier_style() {
    check("Merging Pulled REQUESTS", &["github/merge_pull_request"]);
    check("mergePullRequest", &["github/merge_pull_request"]);
    check("http", &["notes/HTTPServerRestart"]);
    check("httpserverrestart", &["notes/HTTPServerRestart"]);
}

#[test]
fn search_matches_server_names_schema_properties_and_configured_keywords() {
    check("trains", &["trains/get-tickets"]);
    check("encoding", &["files/read_file"]);
    check("charsets latin1", &["files/read_file"]);
    check("land", &["github/merge_pull_request"]);
}

/// The expected tool shares no word and no synonym with the query.
#[test]
fn search_finds_tools_by_topic_without_shared_words() {
    let mut tools = tools();
    tools.push(tool("airbnb/search", "Apartments for a holiday stay."));
    tools.push(tool("cloud/quota", "Limits of cores in a region."));
    let found = ranking(&listings(&tools), "vacation rental");
    assert_eq!(found.first().map(|(name, _)| name.as_str()), Some("airbnb/search"));
}

#[test]
fn misspelt_query_word_finds_tools_by_topic() {
    let tools = [
        tool("a/one", "Pictures of animals."),
        tool("a/two", "Timetable of trains and railway stations."),
        tool("a/three", "A schedule."),
    ];
    let found = ranking(&listings(&tools), "railwya");
    assert_eq!(found.first().map(|(name, _)| name.as_str()), Some("a/two"));
}

#[test]
fn synonyms_match_with_lower_weight() {
    let tools = [
        tool("a/remove_folder", ""),
        tool("a/delete_folder", ""),
        tool("b/review", "Comments on a pull request."),
    ];
    let names = |query: &str| -> Vec<String> {
        ranking(&listings(&tools), query).into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names("delete directory"), ["a/delete_folder", "a/remove_folder"]);
    assert_eq!(names("pr")[0], "b/review");
}

#[test]
fn search_ranking_rates_how_well_the_best_tool_matches() {
    let judged = |query: &str| {
        let postings = indexed(&listings(&tools()));
        let ranking = rank(&postings.iter().collect::<Vec<_>>(), query);
        (ranking.fit, ranking.good)
    };
    assert_eq!(judged("take a screenshot of the page"), (Fit::Clear, 1));
    assert_eq!(judged("repository issues"), (Fit::Plausible, 2));
    assert_eq!(judged("book a table for dinner and tab"), (Fit::Weak, 1));
    assert_eq!(judged("zzz"), (Fit::Weak, 0));
}

#[test]
fn misspelt_query_word_finds_the_intended_tool() {
    check("screnshot", &["browser/take_screenshot"]);
    check("screehsnot", &["browser/take_screenshot"]);
    check("mereg", &["github/merge_pull_request"]);
    check("nerge", &["github/merge_pull_request"]);
    check("nergge", &[]);
    check("tba", &[]);
}

#[test]
fn deprecated_tool_ranks_behind_its_successor() {
    let listing = |said: &str| {
        [vec![
            tool_of("a", "read_file", &format!("Reads a file. {said}")),
            tool_of("a", "read_text_file", "Reads a file."),
        ]]
    };
    let first = |said: &str| ranking(&listing(said), "read file")[0].0.clone();
    assert_eq!(first(""), "a/read_file");
    assert_eq!(first("Tells deprecated fields."), "a/read_file");
    assert_eq!(first("DEPRECATED: use read_text_file."), "a/read_text_file");
}

#[test]
fn query_word_joined_from_two_known_words_is_split() {
    check("mergepull", &["github/merge_pull_request"]);
    check("writefile", &["files/write_file", "files/read_file", "browser/take_screenshot"]);
}

#[test]
fn word_beginning_of_three_or_more_letters_matches() {
    check("screensh", &["browser/take_screenshot"]);
    check("tick", &["trains/get-tickets"]);
    check("re", &[]);
}

/// `for` and `get` are words of other tools.
#[test]
fn known_word_is_not_split_into_other_words() {
    let tools = [tool("web/get", "Gets a page for you."), tool("memory/delete_entities", "")];
    let found = ranking(&listings(&tools), "forget");
    assert_eq!(found.first().map(|(name, _)| name.as_str()), Some("memory/delete_entities"));
    assert!(found.iter().all(|(name, _)| name != "web/get"), "{found:?}");
}

#[test]
fn similar_spelling_does_not_outrank_a_synonym() {
    let tools = [tool("a/nose", ""), tool("a/memo", "")];
    let names = |query: &str| -> Vec<String> {
        ranking(&listings(&tools), query).into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names("note"), ["a/memo"]);
}

#[test]
fn everyday_query_words_find_the_intended_tools() {
    let tools = [
        tool("git/git_log", "Shows the commit logs"),
        tool("git/git_diff", "Shows differences between branches or commits"),
        tool("git/git_branch", "List Git branches"),
        tool("time/get_current_time", "Get current time in a specific timezone"),
        tool("time/convert_time", "Convert time between timezones"),
        tool("memory/add_observations", "Add new observations to existing entities"),
    ];
    let first = |query: &str| ranking(&listings(&tools), query)[0].0.clone();
    assert_eq!(first("remember"), "memory/add_observations");
    assert_eq!(first("show the history"), "git/git_log");
    assert_eq!(first("compare two branches"), "git/git_diff");
    assert_eq!(first("what time is it in Tokyo"), "time/get_current_time");
}

#[test]
fn reading_query_ranks_destructive_tools_last() {
    let tools = [tool("a/reset_pages", "Pages."), tool("a/tally_pages", "Pages.")];
    let declared = |read_only, destructive| {
        let mut tools = tools.clone();
        tools[0].annotations = Annotations { read_only, destructive, ..Annotations::default() };
        tools
    };
    let order = |tools: &[Tool], query: &str| -> Vec<String> {
        ranking(&listings(tools), query).into_iter().map(|(name, _)| name).collect()
    };
    let score = |tools: &[Tool]| {
        let found = ranking(&listings(tools), "look at the pages");
        found.iter().find(|(name, _)| name == "a/reset_pages").map(|(_, score)| *score).unwrap()
    };
    assert_eq!(order(&tools, "look at the pages"), ["a/tally_pages", "a/reset_pages"]);
    assert_eq!(order(&tools, "reset the pages"), ["a/reset_pages", "a/tally_pages"]);
    // Annotations take precedence over the verb in the name.
    assert!(score(&declared(Some(true), None)) > score(&tools));
    assert_eq!(score(&declared(None, Some(true))), score(&tools));
}

#[test]
fn stop_words_match_only_without_other_words() {
    check("please merge the", &["github/merge_pull_request"]);
    check("it", &["notes/HTTPServerRestart", "files/write_file"]);
}

#[test]
fn cjk_phrases_match_by_one_or_two_characters() {
    check("余票", &["trains/get-tickets"]);
    check("票", &["trains/get-tickets"]);
    check("信余", &[]);
}

#[test]
fn query_without_words_finds_nothing() {
    check("", &[]);
    check(" ?! ", &[]);
}

#[test]
fn equal_scores_are_ordered_by_server_and_name() {
    let same = ["b/same", "a/same", "a/other"].map(|name| tool(name, "one text"));
    let found = ranking(&[same.to_vec()], "text");
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a/other", "a/same", "b/same"]);
}

fn check_words(text: &str, expected: &[&str]) {
    let mut words = Vec::new();
    tokens::split(text, |word, form| match form {
        WordForm::Part => words.push(word.to_owned()),
        WordForm::Whole => words.push(format!("={word}")),
        WordForm::Character => words.push(format!(".{word}")),
    });
    assert_eq!(words, expected, "in {text:?}");
}

#[test]
fn search_splits_identifiers_into_words() {
    check_words("create_issue-now.v", &["create", "issue", "now", "v"]);
    check_words("getHTTPServer", &["get", "http", "server", "=gethttpserver"]);
    check_words("URLs and PRs", &["urls", "and", "prs"]);
    check_words("base64Url", &["base", "64", "url", "=base64url"]);
    check_words("Größe ÄB", &["größe", "äb"]);
    check_words("用a户名", &["用", "a", ".户", ".名", "户名"]);
    check_words(&"x".repeat(65), &[]);
}

fn check_pieces(schema: &str, expected: &[Piece<'_>]) {
    let mut found = Vec::new();
    properties::walk(schema, |piece| found.push(format!("{piece:?}")));
    let expected: Vec<String> = expected.iter().map(|piece| format!("{piece:?}")).collect();
    assert_eq!(found, expected, "in {schema:.100}");
}

#[test]
fn schema_property_names_and_texts_are_indexed_in_order() {
    check_pieces(
        r#"{"type": "object", "title": "no", "properties": {
            "kind": {"enum": ["a", 1, "b"]},
            "description": {"type": "array", "items": {"anyOf": [{"description": "x"}]}}},
            "$defs": {"no": {"properties": {"inner": true}}}}"#,
        &[
            Piece::Name("kind"),
            Piece::Text("a"),
            Piece::Text("b"),
            Piece::Name("description"),
            Piece::Text("x"),
            Piece::Name("inner"),
        ],
    );
}

#[test]
fn invalid_schema_has_no_searchable_text() {
    for schema in ["", "{", "7", "[]", r#"{"properties": 1, "description": {}}"#] {
        check_pieces(schema, &[]);
    }
    let deep = r#"{"items":"#.repeat(100) + r#"{"description": "x"}"# + &"}".repeat(100);
    check_pieces(&deep, &[]);
}

#[test]
fn malformed_schema_is_searchable_up_to_the_error() {
    check_pieces(
        r#"{"description": "x", "properties": {"y": {"#,
        &[Piece::Text("x"), Piece::Name("y")],
    );
}

#[test]
fn tool_names_stay_searchable_beyond_the_index_limit() {
    let words =
        |from: usize| (from..from + 900).map(|word| format!(" w{word}x")).collect::<String>();
    let flood = |number: usize| tool_of("a", &format!("tool{number}"), &words(number * 900));
    let mut tools: Vec<Tool> = (0..400).map(flood).collect();
    tools.push(tool_of("a", "last", "unread"));
    let listing = [tools];
    assert_eq!(ranking(&listing, "w7x")[0].0, "a/tool0");
    assert_eq!(ranking(&listing, "last")[0].0, "a/last");
    assert_eq!(ranking(&listing, "unread"), []);
}

#[test]
fn each_of_many_listings_is_indexed_once() {
    let listings: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
    for tools in [0, 100_000] {
        index_all(&listings, tools, |listing, _| {
            listing.fetch_add(1, Ordering::Relaxed);
        });
    }
    assert!(listings.iter().all(|listing| listing.load(Ordering::Relaxed) == 2));
}

#[test]
fn regex_search_matches_names_texts_and_keywords() {
    let matched = |pattern: &str| -> Vec<String> {
        let pattern = Pattern::compile(pattern, Case::Ignored).unwrap();
        let matches = |tool: &Tool| tool.document().matches(&pattern);
        tools().into_iter().filter(matches).map(|tool| tool.name).collect()
    };
    assert_eq!(matched("^LIST_"), ["list_issues"]);
    assert_eq!(matched("tab\\.$"), ["browserNavigate"]);
    assert_eq!(matched("^land$"), ["merge_pull_request"]);
}

/// Random words of a small set, so that ties, common beginnings and misspellings occur.
fn phrase() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "issue",
        "issues",
        "isue",
        "create",
        "creat",
        "screenshot",
        "screensh",
        "GitHub",
        "get",
        "the",
        "余票",
        "票",
        "v2",
        "file",
    ]);
    prop::collection::vec(word, 1..5).prop_map(|words| words.join(" "))
}

fn some_tools() -> impl Strategy<Value = Vec<Tool>> {
    let tool = ("[abc]", phrase(), phrase());
    prop::collection::vec(tool, 1..12).prop_map(|tools| {
        let numbered = tools.into_iter().enumerate();
        let made = numbered.map(|(number, (server, name, description))| {
            tool_of(&server, &format!("{name} {number}"), &description)
        });
        made.collect()
    })
}

fn tool_of(server: &str, name: &str, description: &str) -> Tool {
    tool(&format!("{server}/{name}"), description)
}

proptest! {
    #[test]
    fn ranking_pages_concatenate_to_the_whole_ranking(length in 0_usize..40, limit in 0_usize..15) {
        let ranking: Vec<usize> = (0..length).collect();
        let mut read = Vec::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let page = RankingPage::of(&ranking, offset, limit);
            prop_assert_eq!((page.offset, page.total), (offset, length));
            read.extend_from_slice(page.items);
            next = page.next;
        }
        prop_assert_eq!(read, ranking);
    }

    #[test]
    fn ranking_is_independent_of_listing_order(
        (tools, shuffled) in some_tools().prop_flat_map(|tools| {
            let listings = listings(&tools);
            (Just(listings.clone()), Just(listings).prop_shuffle())
        }),
        query in phrase(),
    ) {
        prop_assert_eq!(ranking(&tools, &query), ranking(&shuffled, &query));
    }

    #[test]
    fn shared_indexer_ranks_like_one_indexer_per_listing(tools in some_tools(), query in phrase()) {
        let listings = listings(&tools);
        let alone = |tools: &Vec<Tool>| Indexer::default().index(tools.iter().map(Tool::document));
        let postings: Vec<Postings> = listings.iter().map(alone).collect();
        prop_assert_eq!(ranking(&listings, &query), ranking_by(&listings, &postings, &query));
    }

    #[test]
    fn keyword_added_to_a_tool_never_lowers_its_rank(
        mut tools in some_tools(),
        chosen in any::<prop::sample::Index>(),
        keyword in phrase(),
    ) {
        let chosen = chosen.index(tools.len());
        let name = format!("{}/{}", tools[chosen].server, tools[chosen].name);
        let position = |tools: &[Tool]| {
            ranking(&listings(tools), &keyword).iter().position(|(found, _)| *found == name)
        };
        let before = position(&tools);
        tools[chosen].keywords.push(keyword.clone());
        let after = position(&tools).unwrap();
        prop_assert!(before.is_none_or(|before| after <= before), "{before:?} to {after}");
    }

    #[test]
    fn search_of_arbitrary_text_never_panics(
        server in any::<String>(),
        name in any::<String>(),
        description in any::<String>(),
        schema in r#"(\{"properties":)?[\{\["a:,1\]\}]{0,40}"#,
        keywords in prop::collection::vec(any::<String>(), 0..3),
        query in any::<String>(),
    ) {
        let annotations = Annotations::default();
        let tool = Tool { server, name, description, schema, keywords, annotations };
        let names = Indexer::default().index([tool.document()]);
        rank(&[&names], &query);
        rank(&[&names, &Postings::default()], &tool.description);
    }

    #[test]
    fn tool_is_found_by_each_word_of_its_name(tool in phrase(), query in phrase()) {
        let tools = [vec![tool_of("a", &tool, "")], vec![tool_of("b", "other", "")]];
        let shared = tool.split(' ').any(|word| query.split(' ').any(|typed| typed == word && word != "the"));
        let found = ranking(&tools, &query);
        prop_assert!(!shared || found.iter().any(|(name, _)| name.starts_with("a/")));
    }
}
