//! Splits Rust source into code and comments, so that a rule about one is not misled by the other.

/// The code and the comments of a source, as two texts with the same lines. In each text, blanks
/// replace the other text.
pub(super) struct Source {
    /// The code without comments and without the contents of string and character literals.
    pub(super) code: String,
    pub(super) comments: String,
}

impl Source {
    pub(super) fn split(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut source = Self { code: String::new(), comments: String::new() };
        let mut at = 0;
        while at < chars.len() {
            let (kind, end) = piece(&chars, at);
            source.push(kind, &chars[at..end]);
            at = end;
        }
        source
    }

    fn push(&mut self, kind: Kind, piece: &[char]) {
        for &c in piece {
            let blank = if c == '\n' { '\n' } else { ' ' };
            self.code.push(if kind == Kind::Code { c } else { blank });
            self.comments.push(if kind == Kind::Comment { c } else { blank });
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// The kind of the token at `at`, and its end. The token has at least one character.
fn piece(chars: &[char], at: usize) -> (Kind, usize) {
    let rest = &chars[at..];
    match rest {
        ['/', '/', ..] => {
            let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
            (Kind::Comment, at + length)
        }
        ['/', '*', ..] => (Kind::Comment, at + block_comment(rest)),
        ['"', ..] => match raw_hashes(&chars[..at]) {
            Some(hashes) => (Kind::Literal, at + raw_string(rest, hashes)),
            None => (Kind::Literal, at + quoted(rest, '"')),
        },
        // A character literal: a quote that closes after one character, or an escape. Any other
        // quote begins a lifetime.
        ['\'', '\\', ..] | ['\'', _, '\'', ..] => (Kind::Literal, at + quoted(rest, '\'')),
        _ => (Kind::Code, at + 1),
    }
}

/// The length of a block comment, which may contain other block comments.
fn block_comment(rest: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
            }
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a literal that begins and ends with `quote` and has backslash escapes.
fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The number of hashes if `before` ends with the beginning of a raw string; else `None`.
fn raw_hashes(before: &[char]) -> Option<usize> {
    let hashes = before.iter().rev().take_while(|c| **c == '#').count();
    let prefix = &before[..before.len() - hashes];
    match prefix {
        [.., c, 'r'] if c.is_alphanumeric() && *c != 'b' && *c != 'c' => None,
        [.., 'r'] => Some(hashes),
        _ => None,
    }
}

/// The length of a raw string. Its opening quote is the first character of `rest`.
fn raw_string(rest: &[char], hashes: usize) -> usize {
    let closes = |at: usize| {
        rest[at] == '"' && rest[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes
    };
    (1..rest.len()).find(|at| closes(*at)).map_or(rest.len(), |at| at + 1 + hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares both texts, with each run of blanks replaced by one blank.
    #[track_caller]
    fn check(text: &str, code: &str, comments: &str) {
        let source = Source::split(text);
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            (squeezed(&source.code).as_str(), squeezed(&source.comments).as_str()),
            (code, comments)
        );
        let lengths =
            |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
        assert_eq!(lengths(&source.code), lengths(text));
        assert_eq!(lengths(&source.comments), lengths(text));
    }

    #[test]
    fn line_comments_end_with_the_line() {
        check("a // b\nc", "a c", "// b");
    }

    #[test]
    fn nested_block_comment_is_one_comment() {
        check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
    }

    #[test]
    fn comment_markers_in_strings_are_not_comments() {
        check(r#"f("// \" /*") // x"#, "f( )", "// x");
        check(r#"f("\\") // x"#, "f( )", "// x");
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        check(r###"f(r#"a " // "#, br"\", "//") // x"###, "f(r# , br , )", "// x");
    }

    #[test]
    fn lifetimes_are_not_character_literals() {
        check("fn f<'a>(x: &'a str) { '\"' } // x", "fn f<'a>(x: &'a str) { }", "// x");
    }

    #[test]
    fn escaped_quote_is_one_character_literal() {
        check(r"('\'', '\u{41}', 'ä') // y", "( , , )", "// y");
    }

    #[test]
    fn unterminated_literals_and_comments_extend_to_file_end() {
        check("a \"b\nc", "a", "");
        check("a /* b\nc", "a", "/* b c");
        check("a r#\"b\"\nc", "a r#", "");
        check("a '\\", "a", "");
    }
}
