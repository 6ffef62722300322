//! Parses command lines that install a package and then run it, such as `npx -y PACKAGE`, so that
//! the installed program can be run without the launcher.

pub mod package;
pub mod python;
pub mod probe;

use package::Package;

/// The launchers, grouped by the cache into which they install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LauncherKind {
    Npm,
    Bun,
    Pnpm,
    Uv,
}

/// The command line of a launcher whose program can also be run without the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub kind: LauncherKind,
    pub package: Package,
    /// The name of the program, if the command line has it besides the package.
    pub bin: Option<String>,
    /// The arguments for the program.
    pub args: Vec<String>,
    /// The subcommand with which the command is a launcher, such as `exec` of `npm`.
    mode: &'static [&'static str],
}

/// The syntax of one launcher's command line.
struct LauncherSyntax {
    command: &'static str,
    mode: &'static [&'static str],
    kind: LauncherKind,
    /// The flags without a value. They do not affect which program runs.
    switches: &'static [&'static str],
    /// The flags whose value is the package. The first word after the flags is then the program.
    package: &'static [&'static str],
    flags_end: FlagsEnd,
}

/// What ends the flags of a launcher, after which those of the program begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlagsEnd {
    AtFirstWord,
    AtDashes,
}

#[rustfmt::skip]
const SYNTAXES: [LauncherSyntax; 8] = [
    LauncherSyntax { command: "npx", mode: &[], kind: LauncherKind::Npm, switches: &["-y", "--yes"], package: &["-p", "--package"], flags_end: FlagsEnd::AtFirstWord },
    LauncherSyntax { command: "npm", mode: &["exec"], kind: LauncherKind::Npm, switches: &["-y", "--yes"], package: &["--package"], flags_end: FlagsEnd::AtDashes },
    LauncherSyntax { command: "npm", mode: &["x"], kind: LauncherKind::Npm, switches: &["-y", "--yes"], package: &["--package"], flags_end: FlagsEnd::AtDashes },
    LauncherSyntax { command: "bunx", mode: &[], kind: LauncherKind::Bun, switches: &[], package: &["-p", "--package"], flags_end: FlagsEnd::AtFirstWord },
    LauncherSyntax { command: "bun", mode: &["x"], kind: LauncherKind::Bun, switches: &[], package: &["-p", "--package"], flags_end: FlagsEnd::AtFirstWord },
    LauncherSyntax { command: "pnpm", mode: &["dlx"], kind: LauncherKind::Pnpm, switches: &[], package: &["--package"], flags_end: FlagsEnd::AtFirstWord },
    LauncherSyntax { command: "uvx", mode: &[], kind: LauncherKind::Uv, switches: &[], package: &["--from"], flags_end: FlagsEnd::AtFirstWord },
    LauncherSyntax { command: "uv", mode: &["tool", "run"], kind: LauncherKind::Uv, switches: &[], package: &["--from"], flags_end: FlagsEnd::AtFirstWord },
];

/// The launcher that a command line starts, whatever its flags.
pub fn kind_of(command: &str, args: &[String]) -> Option<LauncherKind> {
    let program = program_of(command);
    let has_mode = |syntax: &&LauncherSyntax| {
        let words = args.iter().take_while(|arg| *arg != "--").filter(|arg| !arg.starts_with('-'));
        // Flags with values may stand between the words, as in `uv tool --directory DIR run`.
        syntax.mode.iter().all(|mode| words.clone().any(|word| word == mode))
    };
    SYNTAXES
        .iter()
        .filter(|syntax| syntax.command == program)
        .find(has_mode)
        .map(|syntax| syntax.kind)
}

/// Parses a command line; `None` if it starts no launcher, or if it has an unsupported flag.
pub fn parse(command: &str, args: &[String]) -> Option<Launch> {
    let program = program_of(command);
    let (syntax, words) =
        SYNTAXES.iter().filter(|syntax| syntax.command == program).find_map(|syntax| {
            let (mode, words) = args.split_at_checked(syntax.mode.len())?;
            (mode == syntax.mode).then_some((syntax, words))
        })?;
    let (package, named) = syntax.read(words)?;
    let mut named = named.into_iter();
    let (spec, bin) = match package {
        Some(package) => (package, Some(named.next().filter(|bin| is_file_name(bin))?)),
        None => (named.next()?, None),
    };
    let package = Package::parse(syntax.kind, &spec)?;
    // The URL of a package does not contain the name of its program.
    if bin.is_none() && package.name.is_empty() {
        return None;
    }
    Some(Launch { kind: syntax.kind, package, bin, args: named.collect(), mode: syntax.mode })
}

impl LauncherSyntax {
    /// The package that a flag names, and all words that are neither flags nor values of flags.
    fn read(&self, words: &[String]) -> Option<(Option<String>, Vec<String>)> {
        let mut package = None;
        let mut named: Vec<String> = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" && self.kind == LauncherKind::Npm {
                named.extend(words.by_ref().cloned());
                break;
            }
            if !word.starts_with('-') {
                named.push(word.clone());
                if self.flags_end == FlagsEnd::AtFirstWord {
                    named.extend(words.by_ref().cloned());
                }
                continue;
            }
            if self.switches.contains(&word.as_str()) {
                continue;
            }
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, value.to_owned()),
                Some(_) | None => (word.as_str(), words.next().cloned()?),
            };
            // Other flags, and several packages, are supported only by the launcher itself.
            if !self.package.contains(&flag) || package.is_some() {
                return None;
            }
            package = Some(value);
        }
        Some((package, named))
    }
}

/// The file name of the program; empty for a relative path, where any program may have that name.
fn program_of(command: &str) -> &str {
    match command.rsplit_once('/') {
        Some((folder, name)) if folder.is_empty() || folder.starts_with('/') => name,
        Some(_) => "",
        None => command,
    }
}

/// Whether a name is only a file name, not a path or a flag.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '-']) && !name.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests;
