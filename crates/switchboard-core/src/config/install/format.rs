//! The format of our entry in each host's file: its position, its keys, and the permissions for our
//! tools.

use serde_json::{Map, Value as Json};

/// How our entry is written in the file of one host.
#[derive(Debug)]
pub(in crate::config) struct EntryFormat {
    /// The key that holds the servers in the file.
    pub(in crate::config) holder: &'static str,
    pub(in crate::config) listing: ServerList,
    pub(in crate::config) off: Off,
    /// The keys of our entry before the command.
    pub(in crate::config) first: &'static [(&'static str, Word)],
    pub(in crate::config) launch: Launch,
    /// The keys after the command. `install` adds those that an existing entry of ours lacks.
    pub(in crate::config) then: &'static [Extra],
    pub(in crate::config) passing: Passing,
    /// The permissions for our tools in the file that contains our entry.
    pub(in crate::config) grants: &'static [Grant],
    /// The permissions for our tools in the host's settings file.
    pub(in crate::config) settings: &'static [Grant],
}

impl EntryFormat {
    /// The format of most hosts.
    pub(in crate::config) const USUAL: EntryFormat = EntryFormat {
        holder: "mcpServers",
        listing: ServerList::ByName,
        off: Off::TakenOut,
        first: &[],
        launch: Launch::CommandAndArgs,
        then: &[],
        passing: Passing::Everything,
        grants: &[],
        settings: &[],
    };

    /// Our entry in the host's format.
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

/// How a host's file lists its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum ServerList {
    /// An object whose keys are the names of the servers.
    ByName,
    /// An array of tables, each with a `name`.
    Array,
}

/// How a server is disabled in a host's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Off {
    /// The key in the server's entry that disables it, and the value to set.
    Flag(&'static str, bool),
    /// The entry is removed, because no key disables a server.
    TakenOut,
}

/// How an entry writes its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Launch {
    CommandAndArgs,
    /// `command` is a list of the program and its arguments.
    OneList,
    /// The command is inside an object under this key, together with a `type`.
    Nested(&'static str),
}

/// Which environment variables a host passes to the servers that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Passing {
    Everything,
    /// The host passes a few defaults, and the variables that the list under this key names.
    Listed(&'static str),
    /// The host passes a few defaults, and the variables under `key`, whose values are references
    /// such as `$NAME`.
    Named {
        key: &'static str,
        opening: &'static str,
        closing: &'static str,
    },
    /// The host passes a few defaults, and literal values from its file. We write no values,
    /// because the file must not contain secrets.
    Literals,
}

impl Passing {
    /// The reference to a variable, such as `$NAME`; `None` if the host has no references.
    pub(super) fn value(self, name: &str) -> Option<String> {
        match self {
            Passing::Named { opening, closing, .. } => Some(format!("{opening}{name}{closing}")),
            Passing::Everything | Passing::Listed(_) | Passing::Literals => None,
        }
    }
}

/// The value of a key that we write into a host's file.
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

/// A key of our entry in addition to the command, with the reason for it.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Extra {
    pub(in crate::config) key: &'static str,
    pub(in crate::config) value: Word,
    pub(in crate::config) why: &'static str,
}

/// A permission for our tools that is written outside our entry.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Grant {
    pub(in crate::config) at: &'static [&'static str],
    pub(in crate::config) what: Granted,
    pub(in crate::config) needs: Needs,
    pub(in crate::config) why: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::config) enum Granted {
    /// The item that is added to an array.
    Item(&'static str),
    /// The value that a key is set to, unless the key already has a value.
    Value(Word),
}

/// The condition under which a grant is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Needs {
    Nothing,
    /// The array for the permission must already exist.
    Present,
    /// The host's version must be known, and be this one or a later one.
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
