//! Text that users wrote, made fit for messages.

/// How much of a user's text a message shows. It is enough to recognise a typo; an annotation may hold 256 KiB.
const SHOWN: usize = 60;

/// A user's text in quotes as messages show it: what doesn't print is escaped, what is long is cut.
#[must_use]
pub fn shown(text: &str) -> String {
    format!("\"{}\"", printable(text, SHOWN))
}

/// A user's text, what doesn't print escaped, cut to at most so many characters (and a sign of the cut).
#[must_use]
pub fn printable(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in text.chars() {
        let before = out.len();
        match c {
            // They print, though `escape_debug` makes them fit for a literal.
            '"' | '\'' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
        length += out[before..].chars().count();
        if length > most {
            out.truncate(before);
            out.push('…');
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_does_not_print_is_escaped() {
        assert_eq!(shown("TRUE "), "\"TRUE \"");
        assert_eq!(shown("a\n\u{202e}\u{0}"), r#""a\n\u{202e}\0""#);
        assert_eq!(printable(r#"it's "é" \ here"#, SHOWN), r#"it's "é" \ here"#);
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(printable(&"x".repeat(60), SHOWN), "x".repeat(60));
        assert_eq!(printable(&"x".repeat(200_000), SHOWN), format!("{}…", "x".repeat(60)));
        assert_eq!(printable("é\u{0}é", 3), "é\\0…");
    }

    proptest! {
        #[test]
        fn nothing_is_longer_than_asked_nor_breaks_a_line(text in any::<String>(), most in 0_usize..80) {
            let out = printable(&text, most);
            prop_assert!(out.chars().count() <= most + 1);
            prop_assert!(!out.chars().any(char::is_control));
        }
    }
}
