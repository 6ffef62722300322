//! The fields of MCP results. Their values are unparsed JSON.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::block::Span;

/// The maximum number of blocks. Further blocks are shown as one piece of JSON, because a block can
/// be as short as 2 bytes.
const MAX_BLOCKS: usize = 10_000;

#[derive(Deserialize)]
#[serde(bound(deserialize = "C: Deserialize<'de>, 'de: 'a"))]
pub(super) struct CallFields<'a, C> {
    pub(super) content: Option<C>,
    #[serde(borrow, rename = "structuredContent")]
    pub(super) structured: Option<&'a RawValue>,
    #[serde(borrow, rename = "isError")]
    pub(super) is_error: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    pub(super) meta: Option<&'a RawValue>,
}

impl<'a> CallFields<'a, &'a RawValue> {
    pub(super) fn with_odd_content(self) -> CallFields<'a, Items<'a>> {
        let CallFields { content, structured, is_error, meta } = self;
        let content = content.map(|odd| Items { first: vec![odd], rest: None });
        CallFields { content, structured, is_error, meta }
    }
}

#[derive(Deserialize)]
pub(super) struct BlockFields<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
    #[serde(borrow, rename = "mimeType")]
    pub(super) mime: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) resource: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) uri: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct ResourceFields<'a> {
    #[serde(borrow)]
    pub(super) uri: Option<&'a RawValue>,
    #[serde(borrow, rename = "mimeType")]
    pub(super) mime: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) blob: Option<&'a RawValue>,
}

/// The first items of a JSON array, and the first and last of the remaining items.
#[derive(Default)]
pub(super) struct Items<'a> {
    pub(super) first: Vec<&'a RawValue>,
    pub(super) rest: Option<(&'a RawValue, &'a RawValue)>,
}

impl Items<'_> {
    /// The byte range in `raw` from the first item to the last, without the brackets.
    pub(super) fn span(&self, raw: &str) -> Option<Span> {
        let first = self.first.first()?;
        let last = self.rest.map(|(_, last)| last).or(self.first.last().copied())?;
        let start = Span::within(raw, first.get()).start;
        Some(Span { start, end: Span::within(raw, last.get()).end })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Items<'a>, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Items<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items<'de>, A::Error> {
                let mut items = Items::default();
                while let Some(item) = list.next_element::<&'de RawValue>()? {
                    if items.first.len() < MAX_BLOCKS {
                        items.first.push(item);
                    } else {
                        let begin = items.rest.map_or(item, |(begin, _)| begin);
                        items.rest = Some((begin, item));
                    }
                }
                Ok(items)
            }
        }
        deserializer.deserialize_seq(Collect)
    }
}
