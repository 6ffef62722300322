//! Reports the hidden text of a server: the number of definitions that contain some, and the names
//! of a few.

use std::fmt;

use crate::hidden::Hidden;
use crate::render::words::{clean_line, list, plural};

/// The maximum number of definitions that the message names.
const NAMED: usize = 3;

/// The maximum length of a resource's URI in the message.
const NAME: usize = 100;

/// The kind of definition that contains hidden text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceKind {
    Instructions,
    Prompt,
    Tool,
    Resource,
}

/// All definitions of one server with hidden text. Those with most hidden characters come first, so
/// that harmless characters (such as an emoji) do not displace them.
#[derive(Clone, Debug)]
pub struct HiddenPlaces {
    places: Vec<(PlaceKind, String, Hidden)>,
}

impl HiddenPlaces {
    /// Sorts the definitions with hidden text, given by kind, shown name and hidden text. `None` if
    /// there are no definitions.
    pub fn of(
        places: impl IntoIterator<Item = (PlaceKind, String, Hidden)>,
    ) -> Option<HiddenPlaces> {
        let mut places: Vec<_> = places.into_iter().collect();
        let weight = |hidden: &Hidden| (hidden.left_out(), hidden.characters);
        places.sort_by_key(|(kind, _, hidden)| (std::cmp::Reverse(weight(hidden)), *kind));
        (!places.is_empty()).then_some(HiddenPlaces { places })
    }

    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The number of definitions of each kind, such as `its instructions, 2 prompts and 3 tools`.
    fn kinds(&self) -> String {
        let of = |kind| self.places.iter().filter(|(other, _, _)| *other == kind).count();
        let counted = |count, noun| (count > 0).then(|| plural(count, noun));
        let instructions = of(PlaceKind::Instructions) > 0;
        let kinds = [
            instructions.then(|| "its instructions".to_owned()),
            counted(of(PlaceKind::Prompt), "prompt"),
            counted(of(PlaceKind::Tool), "tool"),
            counted(of(PlaceKind::Resource), "resource"),
        ];
        let kinds: Vec<String> = kinds.into_iter().flatten().collect();
        list(&kinds, kinds.len())
    }
}

impl fmt::Display for HiddenPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.places.iter().map(|(kind, name, hidden)| match kind {
            PlaceKind::Instructions => format!("{hidden} in its instructions"),
            PlaceKind::Prompt => format!("{hidden} in the prompt `{name}`"),
            PlaceKind::Resource => format!("{hidden} in the resource `{}`", clean_line(name, NAME)),
            PlaceKind::Tool => format!("{hidden} in the definition of `{name}`"),
        });
        let named: Vec<String> = named.collect();
        let left_out = self.places.iter().filter(|(_, _, hidden)| hidden.is_left_out()).count();
        let has_excess = self.places.iter().any(|(_, _, hidden)| hidden.excess > 0);
        let outcome = match left_out {
            0 if has_excess => "these characters stay, as scripts need them",
            0 => "characters of private use stay",
            _ => "models do not see it",
        };
        write!(f, "hidden text in {}: {}; {outcome}", self.kinds(), list(&named, NAMED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hidden::find;

    #[test]
    fn longest_hidden_text_is_reported_first() {
        let place = |kind, name: &str, text: &str| (kind, name.to_owned(), find(text).unwrap());
        let decoys = (0..30).map(|n| place(PlaceKind::Tool, &format!("t{n}"), "\u{200b}"));
        let attack = place(PlaceKind::Prompt, "p", "\u{e0065}\u{e0076}\u{e0069}\u{e006c}");
        let instructions = place(PlaceKind::Instructions, "", "\u{e0041}\u{e0042}");
        let all = HiddenPlaces::of(decoys.chain([attack, instructions])).unwrap();
        assert_eq!(all.count(), 32);
        assert_eq!(
            all.to_string(),
            "hidden text in its instructions, 1 prompt and 30 tools: `evil` (4 characters) in the \
             prompt `p`, `AB` (2 characters) in its instructions, `<U+200B>` (1 character) in the \
             definition of `t0` and 29 more; models do not see it"
        );
        assert!(HiddenPlaces::of([]).is_none());
        let icons = HiddenPlaces::of([place(PlaceKind::Tool, "t", "\u{f8ff}")]).unwrap();
        assert_eq!(
            icons.to_string(),
            "hidden text in 1 tool: `<U+F8FF>` (1 character) in the definition of `t`; characters \
             of private use stay"
        );
    }
}
