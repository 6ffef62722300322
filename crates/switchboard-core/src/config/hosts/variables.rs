//! Variables in the syntax of a host: translates them into ours, or reports those that only the
//! host can expand.

use jsonc_parser::ast::Value;

use super::Host;
use crate::config::diagnostic::DiagnosticKind;
use crate::config::reader::{ConfigReader, Member, join};
use crate::config::server::ServerEntry;
use crate::config::values::{Template, TemplateMap};

/// The variable syntax of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Ours,
    /// `${workspaceFolder}`, `${userHome}`, `${input:x}` and similar names, as in VS Code.
    Editor,
    /// The syntax `$VAR` and `${VAR}`.
    Dollar,
    /// `$VAR`, `${VAR}`, and `$(command)`, which only the host runs.
    Shell,
    /// `{env:VAR}`, and `{file:path}`, which only the host reads.
    Braces,
}

#[derive(Clone, Copy)]
pub(super) struct Variables<'p> {
    pub(super) host: Host,
    pub(super) project: &'p str,
}

impl Variables<'_> {
    /// Whether the value can be expanded without the host. Reports the first variable that cannot.
    pub(super) fn check(&self, reader: &mut ConfigReader<'_>, member: &Member<'_>) -> bool {
        let Some((offset, variable)) = self.needs_host(member.value) else {
            return true;
        };
        let (key, variable) = (member.key.clone(), join("", variable));
        reader.warn(offset, DiagnosticKind::OnlyInHost { key, variable, host: self.host });
        false
    }

    /// The first variable that only the host can expand, with its offset. Recursion is safe,
    /// because the parser limits the depth.
    fn needs_host<'v>(&self, value: &'v Value<'_>) -> Option<(usize, &'v str)> {
        match value {
            Value::StringLit(text) => {
                self.foreign(&text.value).map(|variable| (text.range.start, variable))
            }
            Value::Array(array) => array.elements.iter().find_map(|value| self.needs_host(value)),
            Value::Object(object) => {
                object.properties.iter().find_map(|property| self.needs_host(&property.value))
            }
            Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => None,
        }
    }

    fn foreign<'v>(&self, text: &'v str) -> Option<&'v str> {
        let openings: &[&str] = match self.host.row().dialect {
            Dialect::Ours | Dialect::Dollar => &[],
            Dialect::Shell => &["$("],
            Dialect::Editor => &["${input:", "${command:", "${config:", "${file"],
            Dialect::Braces => &["{file:"],
        };
        let start = openings.iter().filter_map(|opening| text.find(opening)).min()?;
        let rest = text.get(start..)?;
        let end = rest.find('}').map_or(rest.len(), |end| end + 1);
        rest.get(..end)
    }

    /// Translates all templates of an entry into our syntax.
    pub(super) fn translate(&self, entry: &mut ServerEntry) {
        if matches!(self.host.row().dialect, Dialect::Ours | Dialect::Braces) {
            return;
        }
        let single = [&mut entry.command, &mut entry.cwd, &mut entry.url].into_iter().flatten();
        let args = entry.args.iter_mut().flatten();
        let maps = [&mut entry.env, &mut entry.headers].into_iter().flatten();
        let values = maps.flat_map(|TemplateMap(pairs)| pairs.iter_mut().map(|(_, value)| value));
        for template in single.chain(args).chain(values) {
            *template = Template::new(self.translated(template.source()));
        }
    }

    fn translated(&self, text: &str) -> String {
        if matches!(self.host.row().dialect, Dialect::Dollar | Dialect::Shell) {
            return with_braces(text);
        }
        // The path of the project is not inserted if it contains characters of a variable, which
        // would be expanded.
        let folder = Some(self.project).filter(|path| !path.contains(['$', '{', '}']));
        let mut text = text.replace("${userHome}", "${HOME}");
        text = text.replace("${pathSeparator}", "/").replace("${/}", "/");
        if let Some(folder) = folder {
            let name = folder.rsplit('/').next().unwrap_or_default();
            text = text.replace("${workspaceFolderBasename}", name);
            text = text.replace("${workspaceFolder}", folder);
        }
        text
    }
}

/// Adds braces to variables: `$VAR` becomes `${VAR}`.
fn with_braces(text: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
        let (name, tail) = after.split_at(end);
        if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            out.push_str(&format!("${{{name}}}"));
        } else {
            out.push('$');
            out.push_str(name);
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}
