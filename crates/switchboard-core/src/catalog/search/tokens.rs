//! Splits text into lower-case words. Identifiers are also split into their parts.

/// The maximum length of a word. Longer runs of letters are encoded data.
const LONGEST_WORD: usize = 64;

/// How a word occurred in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordForm {
    /// A separate word, or one part of an identifier such as `HTTPServer`.
    Part,
    /// A whole identifier that was also split into parts, so that `GitHub` is found by `github`
    /// too.
    Whole,
    /// One character of a longer Chinese, Japanese or Korean phrase.
    Character,
}

/// Calls `emit` with each lower-case word of `text`, in order.
pub(super) fn split(text: &str, mut emit: impl FnMut(&str, WordForm)) {
    let mut lower = String::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|char| kind(char) == CharKind::Separator);
        let Some(first) = rest.chars().next() else { break };
        let run = if kind(first) == CharKind::Ideograph {
            let run = run_of(rest, |kind| kind == CharKind::Ideograph);
            bigrams(run, &mut emit);
            run
        } else if let Some(word) = plain_word(rest) {
            emit_lower(word, WordForm::Part, &mut lower, &mut emit);
            word
        } else {
            let run =
                run_of(rest, |kind| !matches!(kind, CharKind::Separator | CharKind::Ideograph));
            parts(run, &mut lower, &mut emit);
            run
        };
        rest = rest.get(run.len()..).unwrap_or_default();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Lower,
    Upper,
    Digit,
    /// A Chinese, Japanese or Korean character. A run of them is a phrase, not a word.
    Ideograph,
    Separator,
}

fn kind(char: char) -> CharKind {
    match ASCII.get(char as usize) {
        Some(kind) => *kind,
        None => kind_of_other(char),
    }
}

/// The kinds of the ASCII characters, in a lookup table because nearly all text is ASCII.
static ASCII: [CharKind; 128] = {
    let mut kinds = [CharKind::Separator; 128];
    let mut char = 0;
    while char < 128 {
        kinds[char] = match char as u8 {
            b'a'..=b'z' => CharKind::Lower,
            b'A'..=b'Z' => CharKind::Upper,
            b'0'..=b'9' => CharKind::Digit,
            _ => CharKind::Separator,
        };
        char += 1;
    }
    kinds
};

fn kind_of_other(char: char) -> CharKind {
    match char {
        '\u{1100}'..='\u{11FF}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30FF}'
        | '\u{3130}'..='\u{318F}'
        | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}'
        | '\u{20000}'..='\u{3FFFF}' => CharKind::Ideograph,
        _ if char.is_numeric() => CharKind::Digit,
        _ if char.is_uppercase() => CharKind::Upper,
        _ if char.is_alphanumeric() => CharKind::Lower,
        _ => CharKind::Separator,
    }
}

/// The longest beginning of `text` for whose characters `belongs` is true.
fn run_of(text: &str, belongs: impl Fn(CharKind) -> bool) -> &str {
    let end = text.find(|char| !belongs(kind(char))).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// The word at the beginning of `text`, if no letter after the first is upper case. Most words are
/// like this and need not be split.
fn plain_word(text: &str) -> Option<&str> {
    let mut bytes = text.bytes();
    bytes.next().filter(u8::is_ascii_alphabetic)?;
    let end = 1 + bytes.position(|byte| !byte.is_ascii_lowercase()).unwrap_or(text.len() - 1);
    let next = text.as_bytes().get(end);
    let alone = next.is_none_or(|byte| ASCII.get(usize::from(*byte)) == Some(&CharKind::Separator));
    text.get(..end).filter(|_| alone)
}

/// Splits a phrase without spaces. Each pair of neighbouring characters becomes a word, and so does
/// each single character, for queries of one character.
fn bigrams(run: &str, emit: &mut impl FnMut(&str, WordForm)) {
    let starts = || run.char_indices().map(|(index, _)| index);
    let ends = |characters| starts().skip(characters).chain([run.len()]);
    let single = if starts().nth(1).is_none() { WordForm::Part } else { WordForm::Character };
    for (start, end) in starts().zip(ends(1)) {
        emit(run.get(start..end).unwrap_or_default(), single);
    }
    for (start, end) in starts().zip(ends(2)).take_while(|_| single == WordForm::Character) {
        emit(run.get(start..end).unwrap_or_default(), WordForm::Part);
    }
}

/// Splits a run of letters and digits where the letter case or the kind of character changes.
fn parts(run: &str, lower: &mut String, emit: &mut impl FnMut(&str, WordForm)) {
    let mut start = 0;
    let mut chars = run.char_indices();
    let mut before = chars.next().map_or(CharKind::Separator, |(_, char)| kind(char));
    while let Some((index, char)) = chars.next() {
        let here = kind(char);
        let apart = match (before, here) {
            (CharKind::Lower, CharKind::Upper) => true,
            (CharKind::Upper, CharKind::Upper) => starts_a_word(chars.as_str()),
            (CharKind::Digit, other) | (other, CharKind::Digit) => other != CharKind::Digit,
            _ => false,
        };
        if apart {
            emit_lower(run.get(start..index).unwrap_or_default(), WordForm::Part, lower, emit);
            start = index;
        }
        before = here;
    }
    emit_lower(run.get(start..).unwrap_or_default(), WordForm::Part, lower, emit);
    if start > 0 {
        emit_lower(run, WordForm::Whole, lower, emit);
    }
}

/// Whether the last capital letter begins the next word, as in `HTTPServer`, but not in `URLs`.
fn starts_a_word(rest: &str) -> bool {
    let mut rest = rest.chars();
    match (rest.next(), rest.next().map(kind)) {
        (Some('s'), following) => following == Some(CharKind::Lower),
        (Some(next), _) => kind(next) == CharKind::Lower,
        (None, _) => false,
    }
}

fn emit_lower(
    word: &str,
    form: WordForm,
    lower: &mut String,
    emit: &mut impl FnMut(&str, WordForm),
) {
    if word.len() > LONGEST_WORD {
        return;
    }
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return emit(word, form);
    }
    lower.clear();
    if word.is_ascii() {
        lower.push_str(word);
        lower.make_ascii_lowercase();
    } else {
        lower.extend(word.chars().flat_map(char::to_lowercase));
    }
    emit(lower, form);
}
