//! Lists of Secret names in annotations.

use std::collections::BTreeSet;

use super::Problem;
use crate::facts::{Name, is_source, text::shown};

/// The most names that an annotation may list.
pub const MAX_NAMES: usize = 64;

/// A list as it was read: what is right in it counts, also where something else in it is wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub names: BTreeSet<Name>,
    /// A `*` was among them.
    pub all: bool,
    pub problem: Option<Problem>,
}

/// Reads names separated by commas; spaces around them and empty items don't count. `*` is only right where
/// `star` says so.
pub(super) fn parse(of: &'static str, text: &str, star: bool) -> Listed {
    let mut listed = Listed::default();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        if star && item == "*" {
            listed.all = true;
        } else if !is_source(item) {
            let problem = || Problem::new(of, format!("{} can't be a Secret's name", shown(item)));
            listed.problem.get_or_insert_with(problem);
        } else if listed.names.len() < MAX_NAMES || listed.names.contains(item) {
            listed.names.insert(Name::from(item));
        } else {
            listed.problem = Some(Problem::new(of, format!("it lists more than {MAX_NAMES} names")));
            break;
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        parse("x", text, false).names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn spaces_and_empty_items_do_not_count() {
        assert_eq!(names(" db , ,tls.internal,,db"), ["db", "tls.internal"]);
        assert_eq!(parse("x", " , ", false), Listed::default());
    }

    #[rstest]
    #[case("[")]
    #[case("*")]
    #[case("DB")]
    #[case("-a")]
    #[case("a.-b")]
    #[case("a..b")]
    #[case("a b")]
    #[case("é")]
    fn what_cannot_be_a_name_is_a_problem_and_the_others_count(#[case] bad: &str) {
        let listed = parse("x", &format!("a,{bad},b"), false);
        assert_eq!(listed.names.len(), 2);
        assert_eq!(
            listed.problem.unwrap().message.as_ref(),
            format!("{} can't be a Secret's name", shown(bad))
        );
    }

    #[test]
    fn a_star_is_everything_where_it_is_allowed() {
        let listed = parse("x", "a, *", true);
        assert!(listed.all && listed.problem.is_none());
    }

    #[test]
    fn more_names_than_may_be_are_a_problem() {
        let most: Vec<String> = (0..MAX_NAMES).map(|n| format!("s{n}")).collect();
        let listed = parse("x", &format!("{},s0", most.join(",")), false);
        assert_eq!((listed.names.len(), listed.problem), (MAX_NAMES, None));
        let listed = parse("x", &format!("{},one-more,and-more", most.join(",")), false);
        assert_eq!(listed.names.len(), MAX_NAMES);
        assert_eq!(listed.problem.unwrap().message.as_ref(), "it lists more than 64 names");
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in any::<String>(), star: bool) {
            let listed = parse("x", &text, star);
            prop_assert!(listed.names.iter().all(|name| is_source(name)));
        }
    }
}
