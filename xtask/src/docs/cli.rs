//! The page about the command line, from the tree that parses it.

use std::fmt::Write;

use clap::{Arg, Command};

use super::{DocsError, cell};

pub(super) fn page() -> Result<String, DocsError> {
    let mut root = switchboard_cli::command();
    root.build();
    let mut out = String::from("# Command line\n\n");
    let about = root.get_long_about().or(root.get_about()).map(ToString::to_string);
    let _ = writeln!(out, "{}\n", about.unwrap_or_default());
    out.push_str(
        "Data is written to standard output, all other text to standard error.\n\
         With `--json`, a failure is `{ \"error\": { \"code\", \"message\", \"hints\" } }` on standard output; \
         [errors.md](errors.md) lists the codes and exit codes.\n\n",
    );
    out.push_str("## Options of every command\n\n");
    arguments(&mut out, root.get_arguments().filter(|arg| arg.is_global_set()));
    for command in shown(&root) {
        describe(&mut out, "switchboard", command);
    }
    Ok(out)
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

fn describe(out: &mut String, parent: &str, command: &Command) {
    let name = format!("{parent} {}", command.get_name());
    if shown(command).next().is_some() {
        shown(command).for_each(|sub| describe(out, &name, sub));
        return;
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = write!(out, "\n## {name}\n\n{about}\n\n```text\n{}\n```\n", usage.trim());
    let own = || {
        command.get_arguments().filter(|arg| {
            !arg.is_global_set() && !arg.is_hide_set() && !["help", "version"].contains(&id(arg))
        })
    };
    if own().next().is_some() {
        out.push('\n');
        arguments(out, own());
    }
    if let Some(after) = command.get_after_help() {
        let _ = write!(out, "\n```text\n{}\n```\n", after.to_string().trim());
    }
}

fn id(arg: &Arg) -> &str {
    arg.get_id().as_str()
}

fn arguments<'a>(out: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    out.push_str("| argument | meaning |\n|---|---|\n");
    for arg in arguments {
        let mut about = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let possible: Vec<String> = arg
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !possible.is_empty() && takes_value(arg) {
            let _ = write!(about, ": {}", possible.join(", "));
        }
        let defaults: Vec<_> = arg.get_default_values().iter().filter_map(|v| v.to_str()).collect();
        if !defaults.is_empty() && takes_value(arg) {
            let _ = write!(about, " (default `{}`)", defaults.join(" "));
        }
        let _ = writeln!(out, "| `{}` | {} |", cell(&spelling(arg)), cell(&about));
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// The argument as a user types it: `-n, --lines <N>`, or `<TOOL>` for a positional argument.
fn spelling(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = match names.first() {
        Some(name) => format!("<{name}>"),
        None => format!("<{}>", id(arg).to_uppercase()),
    };
    if arg.is_positional() {
        return value;
    }
    let mut spelling = String::new();
    if let Some(short) = arg.get_short() {
        let _ = write!(spelling, "-{short}, ");
    }
    let _ = write!(spelling, "--{}", arg.get_long().unwrap_or_default());
    if takes_value(arg) {
        let _ = write!(spelling, " {value}");
    }
    spelling
}
