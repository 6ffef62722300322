//! Splits a command line into words by quotes and backslashes, without a shell.

/// Splits a command line. All characters within single quotes are literal. Within double quotes, a
/// backslash escapes `"` and `\`; outside quotes, any character.
pub fn split(line: &str) -> Result<Vec<String>, OpenQuote> {
    let mut words = Vec::new();
    // The current word: `None` between two words, `Some("")` inside an empty quoted word.
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(inner) => word.push(inner),
                        None => return Err(OpenQuote),
                    }
                }
            }
            '"' => quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next().unwrap_or('\\')),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a quote is not closed")]
pub struct OpenQuote;

fn quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), OpenQuote> {
    loop {
        match chars.next() {
            Some('"') => return Ok(()),
            Some('\\') => match chars.next() {
                Some(escaped @ ('"' | '\\')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => return Err(OpenQuote),
            },
            Some(inner) => word.push(inner),
            None => return Err(OpenQuote),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<&[&str], OpenQuote>) {
        let expected = expected.map(|words| words.iter().map(ToString::to_string).collect());
        assert_eq!(split(line), expected, "{line}");
    }

    #[test]
    fn command_line_splits_at_unquoted_spaces() {
        check("", Ok(&[]));
        check("  npx  -y\tserver ", Ok(&["npx", "-y", "server"]));
        check(r#"sh 'a "b" \' "c 'd' \" \\ \n""#, Ok(&["sh", r#"a "b" \"#, r#"c 'd' " \ \n"#]));
        check(r"a\ b \'c\' d\", Ok(&["a b", "'c'", r"d\"]));
        check(r#"one'two'"three" '' """#, Ok(&["onetwothree", "", ""]));
        check("$HOME `id` $(id); &", Ok(&["$HOME", "`id`", "$(id);", "&"]));
    }

    #[test]
    fn command_line_with_unclosed_quote_is_an_error() {
        check("a 'b", Err(OpenQuote));
        check("a \"b", Err(OpenQuote));
        check("a \"b\\", Err(OpenQuote));
    }
}
