//! Every fact of a schema about its parameters is in the text of `describe`.

use std::cell::Cell;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use switchboard_core::budget::weight;
use switchboard_core::schema::parameters;

use crate::facts::lost;

/// Below this, nothing is cut.
const SMALL: usize = 12_000;

/// A schema without its texts; they are generated so that each is unique.
#[derive(Clone, Debug)]
enum Node {
    Plain(&'static str),
    Options(usize),
    Constant,
    List(Box<Described>),
    Tuple(Vec<Described>),
    Object(Vec<(Described, bool)>),
    Map(Box<Described>),
    Either(&'static str, Vec<Described>),
    Reference(usize),
}

#[derive(Clone, Debug)]
struct Described {
    node: Node,
    about: bool,
    default: bool,
}

fn any_schema() -> impl Strategy<Value = Described> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["string", "integer", "number", "boolean", "null"])
            .prop_map(Node::Plain),
        (1_usize..9).prop_map(Node::Options),
        Just(Node::Constant),
        (0_usize..4).prop_map(Node::Reference),
    ];
    described(leaf).prop_recursive(4, 40, 5, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let node = prop_oneof![
            boxed.clone().prop_map(Node::List),
            prop::collection::vec(inner.clone(), 1..3).prop_map(Node::Tuple),
            object(inner.clone()),
            boxed.prop_map(Node::Map),
            (
                prop::sample::select(vec!["anyOf", "oneOf"]),
                prop::collection::vec(inner.clone(), 1..4)
            )
                .prop_map(|(key, branches)| Node::Either(key, branches)),
        ];
        described(node)
    })
}

fn object(inner: impl Strategy<Value = Described>) -> impl Strategy<Value = Node> {
    prop::collection::vec((inner, any::<bool>()), 0..5).prop_map(Node::Object)
}

fn described(node: impl Strategy<Value = Node>) -> impl Strategy<Value = Described> {
    (node, any::<bool>(), prop::bool::weighted(0.3)).prop_map(|(node, about, default)| Described {
        node,
        about,
        default,
    })
}

struct Words {
    next: Cell<usize>,
    definitions: usize,
}

impl Words {
    fn word(&self, kind: &str) -> String {
        self.next.set(self.next.get() + 1);
        format!("{kind}{}x", self.next.get())
    }

    fn schema(&self, described: &Described) -> Value {
        let mut schema = self.keywords(&described.node);
        if described.about {
            schema.insert(
                "description".to_owned(),
                json!(format!("is {}\n  so", self.word("about"))),
            );
        }
        if described.default {
            schema.insert("default".to_owned(), json!(self.word("default")));
        }
        Value::Object(schema)
    }

    fn keywords(&self, node: &Node) -> Map<String, Value> {
        let keywords = match node {
            Node::Plain(name) => json!({"type": name}),
            Node::Options(count) => {
                let options: Vec<String> = (0..*count).map(|_| self.word("option")).collect();
                json!({"type": "string", "enum": options})
            }
            Node::Constant => json!({"const": self.word("constant")}),
            Node::List(item) => json!({"type": "array", "items": self.schema(item)}),
            Node::Tuple(items) => json!({"type": "array", "prefixItems": self.schemas(items)}),
            Node::Map(value) => {
                json!({"type": "object", "additionalProperties": self.schema(value)})
            }
            Node::Either(key, branches) => json!({*key: self.schemas(branches)}),
            Node::Reference(_) if self.definitions == 0 => json!({}),
            Node::Reference(number) => {
                json!({"$ref": format!("#/$defs/d{}", number % self.definitions)})
            }
            Node::Object(fields) => {
                let mut properties = Map::new();
                let mut required = Vec::new();
                for (field, needed) in fields {
                    let name = self.word("name");
                    properties.insert(name.clone(), self.schema(field));
                    required.extend(needed.then_some(name));
                }
                json!({"type": "object", "properties": properties, "required": required})
            }
        };
        keywords.as_object().cloned().unwrap_or_default()
    }

    fn schemas(&self, all: &[Described]) -> Vec<Value> {
        all.iter().map(|described| self.schema(described)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn outline_of_a_small_schema_states_every_constraint(
        parameters_of_it in object(any_schema()),
        definitions in prop::collection::vec(any_schema(), 0..3),
    ) {
        let words = Words { next: Cell::new(0), definitions: definitions.len() };
        let mut schema = words.keywords(&parameters_of_it);
        let definitions = definitions.iter().enumerate();
        let definitions: Map<String, Value> =
            definitions.map(|(at, it)| (format!("d{at}"), words.schema(it))).collect();
        schema.insert("$defs".to_owned(), Value::Object(definitions));
        let schema = Value::Object(schema);
        let text = parameters(&schema);
        prop_assume!(weight(&text) < SMALL);
        prop_assert_eq!(lost(&schema, &text), Vec::new(), "{}\n{}", schema, text);
    }
}

#[test]
fn outline_check_detects_each_omitted_fact() {
    let schema = json!({
        "required": ["a"],
        "properties": {
            "a": {"enum": ["x", "y"], "default": "x", "description": "The  first"},
            "b": {"type": "string"}
        }
    });
    let whole = "a: \"x\"|\"y\" = \"x\" - The first\nb?: string";
    assert_eq!(lost(&schema, whole), []);
    for (kept, lacking) in
        [("a: ", "a?: "), ("b?: ", "b: "), ("\"y\"", "…"), (" = \"x\"", ""), ("The", "A")]
    {
        assert_eq!(lost(&schema, &whole.replace(kept, lacking)).len(), 1, "{kept}");
    }
}
