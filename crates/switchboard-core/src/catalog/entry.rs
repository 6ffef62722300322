//! One tool: its definition exactly as its server wrote it, and the fields that are parsed from it.

use std::ops::Range;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::hidden::{self, Hidden};
use crate::name::look::folded;
use crate::name::{NameError, ServerName, ToolId, ToolName};
use crate::schema::{SchemaError, Validator};

/// The size limit of a tool's definition. A tool with a larger definition is skipped.
pub(super) const LARGEST_DEFINITION: usize = 512 * 1024;

const ANY_PARAMETERS: &str = "{}";

const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// A tool, or a resource or prompt in the form of a tool.
#[derive(Debug)]
pub struct Entry {
    pub name: ToolName,
    pub title: Option<String>,
    pub description: String,
    pub annotations: Annotations,
    pub kind: EntryKind,
    /// The hidden text of the tool's definition. It was removed from all fields but the name.
    pub hidden: Option<Box<Hidden>>,
    /// The definition of the tool, with hidden text removed.
    raw: Box<str>,
    /// The definition of the tool exactly as the server wrote it; `None` if it has no hidden text.
    original: Option<Box<str>>,
    input_schema: Range<usize>,
    output_schema: Option<Range<usize>>,
    raw_annotations: Option<Range<usize>>,
    /// The validator of the input schema; compiled when the tool is first called.
    validator: OnceLock<Result<Validator, SchemaError>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Tool,
    Resource {
        uri: String,
        /// Further names of the resource that rules match, such as the name made from the URI.
        aliases: Box<[ToolName]>,
    },
    /// A prompt. It is requested by its name and never listed among the tools.
    Prompt,
}

/// The annotations that a server declares for a tool. They can make a call need approval, but are
/// never an approval themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

/// Why a definition in a `tools/list` result was skipped.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    #[error("the definition is not a valid tool")]
    Malformed(#[source] serde_json::Error),
    #[error("the input schema is not an object")]
    NoSchema,
    #[error("the definition is larger than {LARGEST_DEFINITION} bytes")]
    TooLarge,
    #[error(transparent)]
    Name(#[from] NameError),
}

impl Entry {
    /// Parses the definition of a tool, which is one element of a `tools/list` result.
    pub fn tool(definition: &RawValue) -> Result<Entry, EntryError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ToolDefinition<'a> {
            name: String,
            #[serde(default)]
            title: Option<String>,
            #[serde(default)]
            description: Option<String>,
            #[serde(borrow)]
            input_schema: &'a RawValue,
            #[serde(borrow, default)]
            output_schema: Option<&'a RawValue>,
            #[serde(borrow, default)]
            annotations: Option<&'a RawValue>,
        }
        let original = definition.get();
        if original.len() > LARGEST_DEFINITION {
            return Err(EntryError::TooLarge);
        }
        let hidden = hidden::find_json(original);
        let raw = &*hidden::strip_json(original);
        let read: ToolDefinition<'_> = serde_json::from_str(raw).map_err(EntryError::Malformed)?;
        if !read.input_schema.get().starts_with('{') {
            return Err(EntryError::NoSchema);
        }
        Ok(Entry {
            name: match hidden {
                None => ToolName::new(&read.name)?,
                // Calls use the name exactly as the server wrote it, with hidden characters.
                Some(_) => ToolName::new(&own_name(original).unwrap_or(read.name))?,
            },
            title: read.title.filter(|title| !title.trim().is_empty()),
            description: read.description.unwrap_or_default(),
            annotations: read.annotations.map(Annotations::read).unwrap_or_default(),
            kind: EntryKind::Tool,
            original: hidden.is_some().then(|| original.into()),
            hidden: hidden.map(Box::new),
            input_schema: within(raw, read.input_schema.get()),
            output_schema: read.output_schema.map(|schema| within(raw, schema.get())),
            raw_annotations: read.annotations.map(|annotations| within(raw, annotations.get())),
            raw: raw.into(),
            validator: OnceLock::new(),
        })
    }

    /// A tool without parameters that reads the resource `uri`.
    pub(super) fn resource(
        names: Vec<ToolName>,
        uri: String,
        description: Option<String>,
    ) -> Option<Entry> {
        let mut names = names.into_iter();
        let name = names.next()?;
        let description = description.unwrap_or_else(|| format!("Read resource: {uri}"));
        let kind = EntryKind::Resource { uri, aliases: names.collect() };
        Some(Entry::read_only(name, description, kind, NO_PARAMETERS))
    }

    /// An entry for a prompt. Its schema accepts any arguments, because the server checks them.
    pub(super) fn prompt(name: &str) -> Result<Entry, NameError> {
        Ok(Entry::read_only(ToolName::new(name)?, String::new(), EntryKind::Prompt, ANY_PARAMETERS))
    }

    /// An entry for a resource or prompt, which has no tool definition.
    fn read_only(name: ToolName, description: String, kind: EntryKind, schema: &str) -> Entry {
        Entry {
            name,
            title: None,
            description,
            annotations: Annotations { read_only: Some(true), ..Annotations::default() },
            kind,
            hidden: None,
            original: None,
            raw: schema.into(),
            input_schema: 0..schema.len(),
            output_schema: None,
            raw_annotations: None,
            validator: OnceLock::new(),
        }
    }

    pub(super) fn id(&self, server: &ServerName) -> ToolId {
        ToolId { server: server.clone(), tool: self.name.clone() }
    }

    /// Every name that rules match. The original name is first.
    pub(super) fn names(&self) -> Vec<ToolName> {
        [&self.name].into_iter().chain(self.aliases()).cloned().collect()
    }

    /// The names that rules match in addition to the original name.
    pub(crate) fn aliases(&self) -> &[ToolName] {
        match &self.kind {
            EntryKind::Resource { aliases, .. } => aliases,
            EntryKind::Tool | EntryKind::Prompt => &[],
        }
    }

    pub fn input_schema(&self) -> &str {
        self.part(&self.input_schema)
    }

    pub fn output_schema(&self) -> Option<&str> {
        self.output_schema.as_ref().map(|range| self.part(range))
    }

    /// The annotations as JSON, exactly as the server wrote them, including vendor-specific ones.
    pub fn raw_annotations(&self) -> Option<&str> {
        self.raw_annotations.as_ref().map(|range| self.part(range))
    }

    /// The input schema as JSON, for display.
    pub fn input_value(&self) -> Value {
        serde_json::from_str(self.input_schema()).unwrap_or_default()
    }

    /// The definition exactly as the server wrote it, byte for byte.
    pub fn definition(&self) -> &str {
        self.original.as_ref().unwrap_or(&self.raw)
    }

    /// Whether the definitions of both entries are equal byte for byte.
    pub fn same_definition(&self, other: &Entry) -> bool {
        self.definition() == other.definition() && self.kind == other.kind
    }

    /// The validator of this tool's arguments; `None` if the input schema is invalid.
    pub fn validator(&self) -> Option<&Validator> {
        self.validator.get_or_init(|| Validator::compile(&self.input_value())).as_ref().ok()
    }

    fn part(&self, range: &Range<usize>) -> &str {
        self.raw.get(range.clone()).unwrap_or_default()
    }
}

impl Annotations {
    /// Whether the annotations declare that a repeated call has no further effect.
    pub fn is_harmless(self) -> bool {
        self.read_only == Some(true) || self.idempotent == Some(true)
    }

    /// Whether the annotations declare the tool read-only and not destructive.
    pub fn only_reads(self) -> bool {
        self.read_only == Some(true) && self.destructive != Some(true)
    }

    /// Whether the annotations declare the tool neither destructive nor open-world.
    pub fn only_adds(self) -> bool {
        self.destructive == Some(false) && self.open_world == Some(false)
    }

    fn read(raw: &RawValue) -> Annotations {
        let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let hint = |name: &str| value.get(name).and_then(Value::as_bool);
        Annotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }
}

/// The `name` in a definition, with its hidden characters.
pub(super) fn own_name(definition: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct NameOnly {
        name: String,
    }
    serde_json::from_str::<NameOnly>(definition).ok().map(|named| named.name)
}

/// The byte range of `part` in `whole`; `part` is a slice of `whole`.
fn within(whole: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    start..start + part.len()
}

/// The part of a tool's name that is made from a resource's name. Lookalikes of ASCII letters
/// become ASCII letters, so that a rule for `read_secret` also matches names that look the same.
pub(super) fn resource_slug(name: &str) -> String {
    let mut slug = String::new();
    for c in folded(name).chars().take(64) {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.ends_with('_') && !slug.is_empty() {
            slug.push('_');
        }
    }
    let slug = slug.trim_end_matches('_');
    match slug.chars().next() {
        None => "resource".to_owned(),
        Some('0'..='9') => format!("resource_{slug}"),
        Some(_) => slug.to_owned(),
    }
}
