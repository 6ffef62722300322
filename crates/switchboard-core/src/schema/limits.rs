//! Size limits of a schema, both as it is written and with its references expanded.

use std::collections::HashMap;

use serde_json::Value;

use super::refs;

/// Why a schema is not used to check arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("the schema is nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("the schema has more than {limit} nodes")]
    TooManyNodes { limit: usize },
    #[error("the schema is larger than {limit} bytes")]
    TooLarge { limit: usize },
    /// The schema is small, but its references expand to so many nodes that a check would not end.
    #[error("the references of the schema expand to more than {limit} nodes")]
    Expands { limit: usize },
    /// The schema is invalid but harmless. The tool can be called without a check.
    #[error("the schema is not a valid JSON Schema")]
    Invalid,
}

/// The limits of a schema as the server sent it.
pub(super) const SCHEMA: JsonLimits = JsonLimits { depth: 64, nodes: 10_000, bytes: 256 * 1024 };

/// The limits of arguments. JSON parsers accept no deeper nesting.
pub(super) const ARGUMENTS: JsonLimits =
    JsonLimits { depth: 256, nodes: usize::MAX, bytes: usize::MAX };

/// The maximum number of nodes of a schema with all references expanded. A cycle is expanded once.
const MAX_EXPANDED_NODES: usize = 100_000;

/// The maximum number of levels of a schema with all references expanded.
const MAX_EXPANDED_DEPTH: usize = 256;

/// How often one value may be visited while arguments are checked.
const MAX_VISITS_OF_A_VALUE: usize = 4_096;

/// The maximum number of comparisons of a value with a schema node. If a check needs more,
/// arguments are not checked.
const MAX_COMPARISONS: usize = 20_000_000;

/// The maximum number of comparisons for which all mismatches are collected. Each comparison can
/// produce a mismatch of 500 bytes, and the validator creates all mismatches before it returns the
/// first.
const MAX_COLLECTED: usize = 200_000;

#[derive(Clone, Copy)]
pub(super) struct JsonLimits {
    pub(super) depth: usize,
    pub(super) nodes: usize,
    pub(super) bytes: usize,
}

/// The measured size of a value.
pub(super) struct Measured {
    nodes: usize,
    depth: usize,
}

impl JsonLimits {
    /// Measures a value and checks the limits. Not recursive, because the depth is not yet known.
    pub(super) fn admit(&self, value: &Value) -> Result<Measured, SchemaError> {
        let (mut nodes, mut bytes, mut deepest) = (1_usize, 0_usize, 0_usize);
        let mut pending = vec![(value, 1_usize)];
        while let Some((value, depth)) = pending.pop() {
            deepest = deepest.max(depth);
            if depth > self.depth {
                return Err(SchemaError::TooDeep { limit: self.depth });
            }
            match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => bytes += 8,
                Value::String(text) => bytes += text.len() + 2,
                Value::Array(items) => {
                    nodes += items.len();
                    bytes += items.len() + 2;
                }
                Value::Object(fields) => {
                    nodes += fields.len();
                    bytes += 2 + fields.keys().map(|key| key.len() + 4).sum::<usize>();
                }
            }
            if nodes > self.nodes {
                return Err(SchemaError::TooManyNodes { limit: self.nodes });
            }
            if bytes > self.bytes {
                return Err(SchemaError::TooLarge { limit: self.bytes });
            }
            match value {
                Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
                Value::Object(fields) => {
                    pending.extend(fields.values().map(|field| (field, depth + 1)));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        Ok(Measured { nodes, depth: deepest })
    }
}

/// The work of checking arguments against a schema.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Effort {
    /// The maximum depth of arguments that are checked. With a recursive schema, a check of deeper
    /// arguments might not end.
    depth: usize,
    /// The number of nodes of the schema with its references expanded.
    nodes: usize,
    /// The factor by which each level of nesting multiplies the checks of a value.
    loops: usize,
}

impl Effort {
    /// Whether these arguments can be checked in limited time.
    pub(super) fn admits(self, args: &Value) -> bool {
        self.within(args, MAX_COMPARISONS)
    }

    /// Whether all mismatches of these arguments can be collected in limited memory.
    pub(super) fn collects(self, args: &Value) -> bool {
        self.within(args, MAX_COLLECTED)
    }

    fn within(self, args: &Value, most: usize) -> bool {
        let Ok(extent) = ARGUMENTS.admit(args) else { return false };
        let levels = u32::try_from(extent.depth).unwrap_or(u32::MAX);
        let comparisons = extent.nodes.saturating_mul(self.nodes);
        let comparisons = comparisons.saturating_mul(self.loops.max(1).saturating_pow(levels));
        extent.depth <= self.depth && comparisons <= most
    }
}

/// Measures the work of checking arguments. Rejects a schema whose references expand to too many
/// nodes or levels.
///
/// The schema must be within [`SCHEMA`].
pub(super) fn admit_expansion(root: &Value) -> Result<Effort, SchemaError> {
    let extent = Expansion { root, measured: HashMap::new() }.referenced(root, 0)?;
    if extent.nodes > MAX_EXPANDED_NODES {
        return Err(SchemaError::Expands { limit: MAX_EXPANDED_NODES });
    }
    let (mut depth, mut visits) = (0, 1_usize);
    while depth < ARGUMENTS.depth && visits <= MAX_VISITS_OF_A_VALUE {
        visits = visits.saturating_mul(extent.loops);
        depth += 1;
    }
    Ok(Effort { depth, nodes: extent.nodes, loops: extent.loops })
}

/// The size of a schema with its references expanded.
#[derive(Clone, Copy)]
struct Extent {
    nodes: usize,
    /// How often a cycle of references leads back to the same value. With 2, a value nested 30
    /// levels deep would be checked 2^30 times.
    loops: usize,
}

impl Extent {
    fn add(&mut self, other: Extent) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.loops = self.loops.saturating_add(other.loops);
    }
}

struct Expansion<'s> {
    root: &'s Value,
    /// The size of each referenced schema. `None` while it is being measured, so that a cycle ends.
    measured: HashMap<*const Value, Option<Extent>>,
}

impl<'s> Expansion<'s> {
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Result<Extent, SchemaError> {
        if depth > MAX_EXPANDED_DEPTH {
            return Err(SchemaError::TooDeep { limit: MAX_EXPANDED_DEPTH });
        }
        let mut extent = Extent { nodes: 1, loops: 0 };
        match schema {
            Value::Array(items) => {
                for item in items {
                    extent.add(self.schema(item, depth + 1)?);
                }
            }
            Value::Object(keywords) => {
                for (key, value) in keywords {
                    extent.add(self.keyword(key, value, depth + 1)?);
                }
                if let Some(target) = refs::target(self.root, schema) {
                    extent.add(self.referenced(target, depth + 1)?);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(extent)
    }

    fn keyword(
        &mut self,
        key: &str,
        value: &'s Value,
        depth: usize,
    ) -> Result<Extent, SchemaError> {
        let by_name = refs::SCHEMAS_BY_NAME.contains(&key);
        let Some(schemas) = value.as_object().filter(|_| by_name) else {
            return self.schema(value, depth);
        };
        let mut extent = Extent { nodes: 1, loops: 0 };
        let mut most_loops = 0;
        for schema in schemas.values() {
            let each = self.schema(schema, depth + 1)?;
            most_loops = most_loops.max(each.loops);
            extent.add(each);
        }
        match key {
            // Each property has a value of its own, so the visits do not add up.
            "properties" => extent.loops = most_loops,
            // Definitions are measured where they are referenced.
            "$defs" | "definitions" => extent.loops = 0,
            _ => {}
        }
        Ok(extent)
    }

    fn referenced(&mut self, target: &'s Value, depth: usize) -> Result<Extent, SchemaError> {
        match self.measured.get(&std::ptr::from_ref(target)) {
            Some(Some(extent)) => return Ok(*extent),
            Some(None) => return Ok(Extent { nodes: 1, loops: 1 }),
            None => {}
        }
        self.measured.insert(target, None);
        let extent = self.schema(target, depth)?;
        self.measured.insert(target, Some(extent));
        Ok(extent)
    }
}
