//! The prompts of all servers, with unique shown names.

use std::sync::Arc;

use super::listing::PromptArgument;
use super::pin::Pin;
use super::resolve::clip;
use super::{Catalog, Prompt, ResolveError, Shelf};
use crate::exact::Args;
use crate::name::{ServerName, ToolId, ToolName, fold, shown_names};
use crate::render::caution;
use crate::render::words::clean_line;

/// The maximum number of arguments that an error about a prompt lists.
const MOST_EXPECTED: usize = 50;

/// A prompt with its shown name.
#[derive(Clone, Debug)]
pub struct PromptItem<'a> {
    pub server: &'a ServerName,
    pub shown: &'a Arc<str>,
    pub prompt: &'a Prompt,
    pub pin: Pin,
}

impl PromptItem<'_> {
    /// The definition of the prompt, as an element of `prompts/list`.
    pub fn definition(&self) -> String {
        match Args::parse(&self.prompt.raw) {
            Ok(mut members) if *self.prompt.name != **self.shown || self.is_marked() => {
                members.insert("name", serde_json::Value::from(&**self.shown));
                if let Some(description) = self.description() {
                    members.insert("description", serde_json::Value::from(description));
                }
                members.to_string()
            }
            Ok(_) | Err(_) => self.prompt.raw.to_string(),
        }
    }

    fn is_marked(&self) -> bool {
        self.pin != Pin::Same || self.prompt.hidden.is_some()
    }

    /// The server's description of the prompt, preceded by Switchboard's warnings.
    pub fn description(&self) -> Option<String> {
        let hidden = self.prompt.hidden.as_deref();
        let cautions: String = caution::sentences(self.pin, None, hidden)
            .iter()
            .map(|caution| format!("({caution}) "))
            .collect();
        let about = self.prompt.description.as_deref();
        let described = format!("{cautions}{}", about.unwrap_or_default());
        (about.is_some() || !cautions.is_empty()).then(|| described.trim_end().to_owned())
    }
}

impl Catalog {
    /// Assigns unique shown names to the prompts of all active servers, in listing order.
    pub(super) fn name_prompts(&mut self) {
        let mut ids = Vec::new();
        for (server, shelf) in &self.shelves {
            let names = listed(shelf).filter_map(|(prompt, _)| ToolName::new(&prompt.name).ok());
            let named = |tool| (ToolId { server: server.clone(), tool }, shelf.prefix);
            ids.extend(names.map(named));
        }
        for ((id, _), shown) in ids.iter().zip(shown_names(&ids, &self.prefixes)) {
            let names = self.prompt_names.entry(id.server.clone()).or_default();
            names.push(Arc::from(shown.name));
        }
    }

    /// The prompts of one server, in the order of its listing.
    pub fn prompts_of(&self, server: &ServerName) -> impl Iterator<Item = PromptItem<'_>> {
        let found = self.shelves.get_key_value(server).zip(self.prompt_names.get(server));
        found.into_iter().flat_map(|((server, shelf), names)| {
            let prompts = listed(shelf).zip(names);
            prompts.map(move |((prompt, pin), shown)| PromptItem { server, shown, prompt, pin })
        })
    }

    pub fn prompts(&self) -> impl Iterator<Item = PromptItem<'_>> {
        self.shelves.keys().flat_map(|server| self.prompts_of(server))
    }

    /// The prompt with this shown or original name. A name with the prefix of a server means only a
    /// prompt of that server.
    pub fn find_prompt(
        &self,
        name: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<PromptItem<'_>>, ResolveError> {
        let owner = self.owner_within(name, within)?;
        let items: Vec<PromptItem<'_>> = match &owner {
            Some(server) => self.prompts_of(server).collect(),
            None => self.prompts().collect(),
        };
        let folded = fold(name);
        let spellings: [&dyn Fn(&PromptItem<'_>) -> bool; 3] =
            [&|item| **item.shown == *name, &|item| item.prompt.name == name, &|item| {
                fold(item.shown) == folded || fold(&item.prompt.name) == folded
            }];
        for fits in spellings {
            let mut found: Vec<&PromptItem<'_>> = items.iter().filter(|item| fits(item)).collect();
            if found.len() > 1 {
                return Err(ResolveError::ambiguous(name, found.iter().map(|item| item.shown)));
            }
            if let Some(only) = found.pop() {
                return Ok(Some(only.clone()));
            }
        }
        Ok(None)
    }
}

/// Why the arguments of a prompt are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptArgsError {
    #[error("the prompt `{prompt}` needs the argument `{name}`")]
    Missing { prompt: String, name: String },
    #[error("the prompt `{prompt}` has no argument `{name}`")]
    Unknown { prompt: String, name: String },
}

impl Prompt {
    /// Checks that all required arguments are present, and that all arguments are declared.
    pub fn check(&self, args: &Args) -> Result<(), PromptArgsError> {
        let prompt = || clip(&self.name);
        let is_declared = |name: &&String| self.arguments.iter().any(|known| known.name == **name);
        if let Some(name) = args.values().keys().find(|name| !is_declared(name)) {
            return Err(PromptArgsError::Unknown { prompt: prompt(), name: clip(name) });
        }
        let is_missing =
            |known: &&PromptArgument| known.required && !args.values().contains_key(&known.name);
        match self.arguments.iter().find(is_missing) {
            Some(PromptArgument { name, .. }) => {
                Err(PromptArgsError::Missing { prompt: prompt(), name: clip(name) })
            }
            None => Ok(()),
        }
    }

    /// The arguments of the prompt, one per line, for an error message.
    pub fn expected(&self) -> String {
        let line = |argument: &PromptArgument| {
            let required = if argument.required { " (required)" } else { "" };
            let description = argument.description.iter().map(|text| format!(": {text}"));
            let name = &argument.name;
            clean_line(&format!("{name}{required}{}", description.collect::<String>()), 200)
                .into_owned()
        };
        let lines: Vec<String> = self.arguments.iter().take(MOST_EXPECTED).map(line).collect();
        lines.join("\n")
    }
}

/// The listed prompts with valid names, each compared with its pin.
fn listed(shelf: &Shelf) -> impl Iterator<Item = (&Prompt, Pin)> {
    let listing = shelf.listing.as_ref().filter(|_| shelf.is_active());
    let prompts = listing.into_iter().flat_map(|listing| &listing.prompts);
    let prompts = prompts.zip(shelf.word_pins.0.iter().copied());
    prompts.filter(|(prompt, _)| ToolName::new(&prompt.name).is_ok())
}

#[cfg(test)]
mod tests;
