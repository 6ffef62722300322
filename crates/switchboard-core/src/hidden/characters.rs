//! Which characters are hidden: invisible ones, and those that change how other text is displayed.

/// Whether a character is invisible, reorders the text around it, or controls a terminal.
pub fn is_hidden(c: char) -> bool {
    is_control(c) || is_invisible(c) || is_bidi(c)
}

/// Whether a character is for private use. Its glyph depends on the font and is mostly a box. Such
/// characters are reported but not removed: icon fonts use them, and users see a glyph. A model may
/// have learned a meaning that users do not know.
pub(crate) fn is_private(c: char) -> bool {
    matches!(c,
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

/// Whether a character is a control character: C0, DEL or C1. These characters move the cursor,
/// erase or hide text. Line breaks and tabs are excluded. U+2028 and U+2029 are included, because
/// some programs break lines there and others ignore them.
fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether a character is a mark, embedding, override or isolate of the bidirectional algorithm.
pub(crate) fn is_bidi(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is invisible: default-ignorable code points, the category Cf, noncharacters
/// and invisible fillers. Planes 4 to 13 are unassigned, and the rest of plane 14 is reserved for
/// similar characters. Other unassigned code points are displayed as a box.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
        | '\u{16fe4}' | '\u{1bc9d}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{40000}'..='\u{effff}')
        || is_number_sign(c)
        || is_noncharacter(c)
}

/// Whether a character (Cf) encloses or precedes the digits of its script.
fn is_number_sign(c: char) -> bool {
    matches!(
        c,
        '\u{600}'
            ..='\u{605}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'
                | '\u{891}'
                | '\u{8e2}'
                | '\u{110bd}'
                | '\u{110cd}'
    )
}

fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// Whether the neighbours of a character need it. A removed character is not a neighbour, so that a
/// character in a row of several is never needed.
pub(super) fn is_needed(before: Option<char>, c: char, after: Option<char>) -> bool {
    match c {
        // A line break of Windows is CR and LF.
        '\r' => return after == Some('\n'),
        _ if is_number_sign(c) => {
            let of_script = |c: char| is_right_to_left(c) || matches!(c, '\u{11080}'..='\u{110cc}');
            return [before, after].into_iter().flatten().any(|c| of_script(c) && !is_hidden(c));
        }
        _ => {}
    }
    let Some(before) = before else { return false };
    match c {
        '\u{fe0e}' | '\u{fe0f}' if is_keycap(before) => after == Some('\u{20e3}'),
        // Variation selectors request the text or emoji form of a symbol: ☀︎ and ☀️.
        '\u{fe0e}' | '\u{fe0f}' => is_emoji(before),
        '\u{200d}' if is_emoji(before) || before == '\u{fe0f}' => after.is_some_and(is_emoji),
        '\u{200c}' | '\u{200d}' => joins(before) && after.is_some_and(joins),
        '\u{200e}' | '\u{200f}' | '\u{61c}' => {
            is_right_to_left(before) || after.is_some_and(is_right_to_left)
        }
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, '\u{1820}'..='\u{18aa}'),
        _ => false,
    }
}

/// The length in bytes of the tag flag at the beginning of a text; 0 if there is none. Only the
/// flags of England, Scotland and Wales are written with tags.
pub(super) fn flag_length(text: &str) -> usize {
    let Some(tags) = text.strip_prefix('\u{1f3f4}') else { return 0 };
    let tags_of = |name: &str| {
        let tags = name.bytes().filter_map(|byte| char::from_u32(0xe0000 + u32::from(byte)));
        tags.chain(['\u{e007f}']).collect::<String>()
    };
    let flags = ["gbeng", "gbsct", "gbwls"].map(tags_of);
    let flag = flags.iter().find(|flag| tags.starts_with(flag.as_str()));
    flag.map_or(0, |flag| text.len() - tags.len() + flag.len())
}

/// Whether a character can be a keycap, as in 1️⃣.
fn is_keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

/// Whether a character is an emoji, or a symbol with an emoji form.
pub(super) fn is_emoji(c: char) -> bool {
    matches!(c,
        '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{21aa}'
        | '\u{231a}'..='\u{23fa}' | '\u{24c2}' | '\u{25aa}'..='\u{27bf}' | '\u{2934}' | '\u{2935}'
        | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

/// Whether a character is a letter of a script in which a joiner changes the shape of a word.
fn joins(c: char) -> bool {
    let is_virama = matches!(
        c,
        '\u{93c}'
            | '\u{94d}'
            | '\u{9cd}'
            | '\u{a4d}'
            | '\u{acd}'
            | '\u{b4d}'
            | '\u{bcd}'
            | '\u{c4d}'
            | '\u{ccd}'
            | '\u{d4d}'
            | '\u{dca}'
    );
    let is_of_script =
        matches!(c, '\u{600}'..='\u{1cff}' | '\u{a840}'..='\u{abff}' | '\u{10a00}'..='\u{11fff}');
    // The Hangul fillers are letters in Unicode. They are removed here, so they do not need a
    // joiner.
    is_virama || is_of_script && c.is_alphabetic() && !is_hidden(c)
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{5d0}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        && !is_hidden(c)
}
