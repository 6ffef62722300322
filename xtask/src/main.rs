//! Developer commands: each is one arm of this match.

mod answers;
mod bench;
mod command;
mod conformance;
mod dependencies;
mod docs;
mod hosts;
mod npm;
mod packages;
mod pi;
mod printer;
mod real_hosts;
mod sample;
mod search_run;
mod soak;
mod test;
mod tidy;

use std::process::ExitCode;

use crate::printer::exit_code;

const USAGE: &str = "usage: cargo xtask test [--quick] | tidy | sample SEED | docs [--check] | npm | real-hosts
       cargo xtask deny [--advisories] | msrv
       cargo xtask bench [SECTION…] | bench ranking|tokens [FOLDER…] | soak [--long] | pi [--long] [NAME…]
       cargo xtask hosts [--all] [HOST…] [SCENARIO…]
       cargo xtask search-run CORPUS QUERIES OUT | search-words WORDS OUT
       cargo xtask answers CORPUS QUERIES TOOLLISTS
       cargo xtask conformance [--server] [--client] [--stdio] [--direct] [--revision REVISION]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test::run(test::Depth::Full),
        ["test", "--quick"] => test::run(test::Depth::Quick),
        ["tidy"] => tidy::run(),
        ["sample", seed] => match seed.parse() {
            Ok(seed) => exit_code(sample::run(seed)),
            Err(_) => {
                printer::complain("error: SEED must be a whole number");
                ExitCode::from(2)
            }
        },
        ["bench", sections @ ..] => bench::run(sections),
        ["docs"] => docs::run(docs::DocsMode::Write),
        ["docs", "--check"] => docs::run(docs::DocsMode::Check),
        ["deny"] => dependencies::deny(dependencies::Advisories::Skip),
        ["deny", "--advisories"] => dependencies::deny(dependencies::Advisories::Check),
        ["msrv"] => dependencies::msrv(),
        ["npm"] => npm::run(),
        ["real-hosts"] => real_hosts::run(),
        ["hosts", words @ ..] => hosts::run(words),
        ["pi", "--long", names @ ..] => pi::run(pi::Sessions::Many, names),
        ["pi", names @ ..] => pi::run(pi::Sessions::Few, names),
        ["conformance", options @ ..] => conformance::run(options),
        ["soak"] => soak::run(soak::Length::Short),
        ["soak", "--long"] => soak::run(soak::Length::Long),
        ["search-run", corpus, queries, out] => {
            exit_code(search_run::run(corpus.as_ref(), queries.as_ref(), out.as_ref()))
        }
        ["answers", corpus, queries, lists] => {
            exit_code(answers::run(corpus.as_ref(), queries.as_ref(), lists.as_ref()))
        }
        ["search-words", words, out] => exit_code(search_run::words(words.as_ref(), out.as_ref())),
        _ => {
            printer::complain(USAGE);
            ExitCode::from(2)
        }
    }
}
