//! Prompts of all servers, under names that only one of them can have.

use std::sync::Arc;

use super::{Catalog, Prompt, ResolveError, Shelf};
use crate::exact::Args;
use crate::name::{ServerName, ToolId, ToolName, fold, shown_names};

/// A prompt together with the name that clients get it by.
#[derive(Clone, Debug)]
pub struct PromptItem<'a> {
    pub server: &'a ServerName,
    pub shown: &'a Arc<str>,
    pub prompt: &'a Prompt,
}

impl PromptItem<'_> {
    /// As an element of `prompts/list`.
    pub fn definition(&self) -> String {
        match Args::parse(&self.prompt.raw) {
            Ok(mut members) if *self.prompt.name != **self.shown => {
                members.insert("name", serde_json::Value::from(&**self.shown));
                members.to_string()
            }
            Ok(_) | Err(_) => self.prompt.raw.to_string(),
        }
    }
}

impl Catalog {
    /// Names for the prompts of the servers that may be used, in the order of their lists.
    pub(super) fn name_prompts(&mut self) {
        let mut ids = Vec::new();
        for (server, shelf) in &self.shelves {
            let names = listed(shelf).filter_map(|prompt| ToolName::new(&prompt.name).ok());
            let named = |tool| (ToolId { server: server.clone(), tool }, shelf.prefix);
            ids.extend(names.map(named));
        }
        for ((id, _), shown) in ids.iter().zip(shown_names(&ids, &self.prefixes)) {
            let names = self.prompt_names.entry(id.server.clone()).or_default();
            names.push(Arc::from(shown.name));
        }
    }

    /// The prompts of one server, in its own order.
    pub fn prompts_of(&self, server: &ServerName) -> impl Iterator<Item = PromptItem<'_>> {
        let found = self.shelves.get_key_value(server).zip(self.prompt_names.get(server));
        found.into_iter().flat_map(|((server, shelf), names)| {
            let prompts = listed(shelf).zip(names);
            prompts.map(move |(prompt, shown)| PromptItem { server, shown, prompt })
        })
    }

    pub fn prompts(&self) -> impl Iterator<Item = PromptItem<'_>> {
        self.shelves.keys().flat_map(|server| self.prompts_of(server))
    }

    /// The prompt that `name` means, as it is shown or as its server has it. A name with the prefix
    /// of a server is a name of that server alone.
    pub fn find_prompt(
        &self,
        name: &str,
        within: Option<&ServerName>,
    ) -> Result<Option<PromptItem<'_>>, ResolveError> {
        let owner = match within {
            Some(server) => Some(server.clone()),
            None => self.owner(name)?,
        };
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
                let choices = found.iter().take(10).map(|item| item.shown.to_string()).collect();
                return Err(ResolveError::Ambiguous { name: super::resolve::clip(name), choices });
            }
            if let Some(only) = found.pop() {
                return Ok(Some(only.clone()));
            }
        }
        Ok(None)
    }
}

/// Without those whose names cannot be asked for.
fn listed(shelf: &Shelf) -> impl Iterator<Item = &Prompt> {
    let listing = shelf.listing.as_ref().filter(|_| shelf.is_active());
    let prompts = listing.into_iter().flat_map(|listing| &listing.prompts);
    prompts.filter(|prompt| ToolName::new(&prompt.name).is_ok())
}

#[cfg(test)]
mod tests;
