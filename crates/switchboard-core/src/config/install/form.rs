//! How a host's file takes our entry: where it stands, what is in it, and what lets it be used.

use serde_json::{Map, Value as Json};

/// What differs between hosts.
#[derive(Debug)]
pub(in crate::config) struct Form {
    /// The key of the file under which its servers stand.
    pub(in crate::config) holder: &'static str,
    pub(in crate::config) listing: Listing,
    pub(in crate::config) off: Off,
    /// What our entry begins with.
    pub(in crate::config) first: &'static [(&'static str, Word)],
    pub(in crate::config) launch: Launch,
    /// What it has besides. An entry that is there already gets what it lacks of it.
    pub(in crate::config) then: &'static [Extra],
    pub(in crate::config) passing: Passing,
    /// What else the file says about us.
    pub(in crate::config) grants: &'static [Grant],
    /// The same for the host's second file, its settings.
    pub(in crate::config) settings: &'static [Grant],
}

impl Form {
    /// What most hosts take.
    pub(in crate::config) const USUAL: Form = Form {
        holder: "mcpServers",
        listing: Listing::ByName,
        off: Off::TakenOut,
        first: &[],
        launch: Launch::CommandAndArgs,
        then: &[],
        passing: Passing::Everything,
        grants: &[],
        settings: &[],
    };

    /// Our entry in the host's form.
    pub(super) fn entry(&self, command: &str, args: &[&str], variables: &[String]) -> Json {
        let words = |words: &[(&str, Word)]| -> Vec<(String, Json)> {
            words.iter().map(|(key, word)| ((*key).to_owned(), word.json())).collect()
        };
        let mut entry = Map::from_iter(words(self.first));
        match self.launch {
            Launch::CommandAndArgs => {
                entry.insert("command".to_owned(), command.into());
                entry.insert("args".to_owned(), args.into());
            }
            Launch::OneList => {
                let line: Vec<&str> = [command].into_iter().chain(args.iter().copied()).collect();
                entry.insert("command".to_owned(), line.into());
            }
            Launch::Nested(key) => {
                let inner = [
                    ("type".to_owned(), "stdio".into()),
                    ("command".to_owned(), command.into()),
                    ("args".to_owned(), args.into()),
                ];
                entry.insert(key.to_owned(), Json::Object(Map::from_iter(inner)));
            }
        }
        entry.extend(self.then.iter().map(|extra| (extra.key.to_owned(), extra.value.json())));
        match self.passing {
            Passing::Listed(key) if !variables.is_empty() => {
                entry.insert(key.to_owned(), variables.into());
            }
            Passing::Named { key, .. } if !variables.is_empty() => {
                let pairs = variables.iter().map(|name| {
                    (name.clone(), self.passing.value(name).unwrap_or_default().into())
                });
                entry.insert(key.to_owned(), Json::Object(pairs.collect()));
            }
            Passing::Listed(_)
            | Passing::Named { .. }
            | Passing::Everything
            | Passing::Literals => {}
        }
        Json::Object(entry)
    }
}

/// How a file keeps its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Listing {
    /// Under their names.
    ByName,
    /// In an array of tables, each with a `name`.
    Array,
}

/// How a host is told not to start a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Off {
    /// By a key of its entry.
    Flag(&'static str, bool),
    /// It knows no such key in this file: the entry is taken out.
    TakenOut,
}

/// How an entry says what to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Launch {
    CommandAndArgs,
    /// `command` has the arguments, too.
    OneList,
    /// Inside an object under this key, with a `type`.
    Nested(&'static str),
}

/// Which environment variables a host hands to the servers that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Passing {
    Everything,
    /// A few, and those whose names stand under this key.
    Listed(&'static str),
    /// A few, and those under this key, whose values are references such as `$NAME`.
    Named {
        key: &'static str,
        opening: &'static str,
        closing: &'static str,
    },
    /// A few, and what its file has as plain text, where a secret does not belong.
    Literals,
}

impl Passing {
    /// What stands for the value of a variable.
    pub(super) fn value(self, name: &str) -> Option<String> {
        match self {
            Passing::Named { opening, closing, .. } => Some(format!("{opening}{name}{closing}")),
            Passing::Everything | Passing::Listed(_) | Passing::Literals => None,
        }
    }
}

/// A value of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Word {
    True,
    Text(&'static str),
    Texts(&'static [&'static str]),
}

impl Word {
    pub(super) fn json(self) -> Json {
        match self {
            Word::True => true.into(),
            Word::Text(text) => text.into(),
            Word::Texts(texts) => texts.into(),
        }
    }
}

/// A key of our entry, and what it is good for.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Extra {
    pub(in crate::config) key: &'static str,
    pub(in crate::config) value: Word,
    pub(in crate::config) why: &'static str,
}

/// Something in a host's file, outside our entry, that lets our tools be used.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Grant {
    pub(in crate::config) at: &'static [&'static str],
    pub(in crate::config) what: Granted,
    pub(in crate::config) needs: Needs,
    pub(in crate::config) why: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::config) enum Granted {
    /// An item of an array.
    Item(&'static str),
    /// A value, unless there is one.
    Value(Word),
}

/// When a grant is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Needs {
    Nothing,
    /// What it adds to is there.
    Present,
    /// The host is known to be of this version or a later one.
    Version([u32; 2]),
}

impl Grant {
    pub(in crate::config) const fn item(
        at: &'static [&'static str],
        item: &'static str,
        why: &'static str,
    ) -> Grant {
        Grant { at, what: Granted::Item(item), needs: Needs::Nothing, why }
    }

    pub(in crate::config) const fn value(
        at: &'static [&'static str],
        value: Word,
        why: &'static str,
    ) -> Grant {
        Grant { at, what: Granted::Value(value), needs: Needs::Nothing, why }
    }
}
