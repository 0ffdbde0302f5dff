//! Several watches of a kind (one a namespace) as one sequence.
//!
//! The engine's words are about a whole kind: `Relist … Complete` names all there is, and from then on nothing
//! is missed. So when one part has to list afresh, all of them do: a *round*. Each part has a round number
//! that it must have reached; what it says under an older one is dropped.

use crate::{
    engine::{InventoryFault, Watched},
    facts::Version,
};

/// Joins parts. With one part it changes nothing.
pub struct Merge {
    parts: Vec<Part>,
    /// The fault that was told last, until the inventory is complete again.
    fault: Option<InventoryFault>,
    /// The version that was told last.
    told: Option<Version>,
    /// Whether a round has begun.
    begun: bool,
}

#[derive(Clone, Default)]
struct Part {
    round: u64,
    state: State,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Has said nothing in this round yet.
    #[default]
    Awaited,
    Listing,
    Complete(Version),
    /// Has spoken in this round, and broke off.
    Broken,
}

impl Merge {
    /// Of so many parts.
    #[must_use]
    pub fn new(parts: usize) -> Self {
        Self { parts: vec![Part::default(); parts], fault: None, told: None, begun: false }
    }

    /// The round that the part must list in: it lists afresh when this is above the one it is in.
    #[must_use]
    pub fn round(&self, part: usize) -> u64 {
        self.parts[part].round
    }

    /// What the kind says when a part says this, in that round of its own.
    pub fn take<T, Id>(&mut self, part: usize, round: u64, said: Watched<T, Id>) -> Option<Watched<T, Id>> {
        if round < self.parts[part].round {
            return None;
        }
        match said {
            Watched::Relist => self.relist(part).then_some(Watched::Relist),
            Watched::Complete(version) => {
                self.parts[part].state = State::Complete(version);
                let whole = self.whole()?;
                self.fault = None;
                self.told = Some(whole);
                Some(Watched::Complete(whole))
            }
            Watched::Progress(version) => {
                let state = &mut self.parts[part].state;
                if !matches!(state, State::Complete(_)) {
                    return None;
                }
                *state = State::Complete(version);
                let whole = self.whole().filter(|&whole| Some(whole) != self.told)?;
                self.told = Some(whole);
                Some(Watched::Progress(whole))
            }
            Watched::Broken(fault) => self.broken(part, fault).map(Watched::Broken),
            Watched::Apply(_) | Watched::Delete(..) => Some(said),
        }
    }

    /// Whether the part's list begins a new round.
    fn relist(&mut self, part: usize) -> bool {
        let joins = self.begun && self.parts[part].state == State::Awaited;
        self.parts[part].state = State::Listing;
        if joins {
            return false;
        }
        self.begun = true;
        for (at, other) in self.parts.iter_mut().enumerate() {
            if at != part && other.state != State::Awaited {
                *other = Part { round: other.round + 1, state: State::Awaited };
            }
        }
        true
    }

    fn broken(&mut self, part: usize, fault: InventoryFault) -> Option<InventoryFault> {
        let state = &mut self.parts[part].state;
        if *state != State::Awaited {
            *state = State::Broken;
        }
        if self.fault.as_ref() == Some(&fault) {
            return None;
        }
        self.fault = Some(fault.clone());
        Some(fault)
    }

    /// Up to which version all has been delivered, if all parts are complete.
    fn whole(&self) -> Option<Version> {
        let versions = self.parts.iter().map(|part| match part.state {
            State::Complete(version) => Some(version),
            _ => None,
        });
        versions.collect::<Option<Vec<_>>>()?.into_iter().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Said = Watched<&'static str, &'static str>;

    /// What is said, in the part's current round.
    fn say(merge: &mut Merge, part: usize, said: Said) -> String {
        let round = merge.round(part);
        show(merge.take(part, round, said))
    }

    #[allow(clippy::needless_pass_by_value)] // Reads better where it is called.
    fn show(said: Option<Said>) -> String {
        match said {
            None => String::new(),
            Some(Watched::Broken(_)) => "broken".to_owned(),
            Some(Watched::Relist) => "relist".to_owned(),
            Some(Watched::Apply(item)) => format!("+{item}"),
            Some(Watched::Delete(id, _)) => format!("-{id}"),
            Some(Watched::Complete(version)) => format!("complete {version}"),
            Some(Watched::Progress(version)) => format!("progress {version}"),
        }
    }

    fn fault(words: &str) -> Said {
        Watched::Broken(InventoryFault::Unavailable(words.to_owned()))
    }

    /// Two parts, both complete.
    fn complete() -> Merge {
        let mut merge = Merge::new(2);
        assert_eq!(say(&mut merge, 0, Watched::Relist), "relist");
        assert_eq!(say(&mut merge, 0, Watched::Apply("a")), "+a");
        assert_eq!(say(&mut merge, 0, Watched::Complete(Version(5))), "");
        assert_eq!(say(&mut merge, 1, Watched::Relist), "");
        assert_eq!(say(&mut merge, 1, Watched::Complete(Version(7))), "complete 5");
        merge
    }

    #[test]
    fn it_is_complete_only_when_all_parts_are() {
        complete();
    }

    #[test]
    fn one_part_passes_through() {
        let mut merge = Merge::new(1);
        assert_eq!(say(&mut merge, 0, Watched::Relist), "relist");
        assert_eq!(say(&mut merge, 0, Watched::Complete(Version(5))), "complete 5");
        assert_eq!(say(&mut merge, 0, Watched::Progress(Version(6))), "progress 6");
        assert_eq!(say(&mut merge, 0, Watched::Delete("a", Version(7))), "-a");
        assert_eq!(say(&mut merge, 0, Watched::Progress(Version(3))), "progress 3", "passed on as it is");
        assert_eq!(say(&mut merge, 0, fault("x")), "broken");
        assert_eq!(say(&mut merge, 0, Watched::Relist), "relist");
        assert_eq!(say(&mut merge, 0, Watched::Complete(Version(3))), "complete 3");
        assert_eq!(merge.round(0), 0);
    }

    #[test]
    fn progress_is_that_of_the_slowest() {
        let mut merge = complete();
        assert_eq!(say(&mut merge, 1, Watched::Progress(Version(9))), "");
        assert_eq!(say(&mut merge, 0, Watched::Progress(Version(8))), "progress 8");
    }

    #[test]
    fn one_part_that_lists_afresh_makes_all_do_so() {
        let mut merge = complete();
        assert_eq!(say(&mut merge, 0, Watched::Relist), "relist");
        assert_eq!((merge.round(0), merge.round(1)), (0, 1));
        assert_eq!(say(&mut merge, 0, Watched::Complete(Version(20))), "");
        let old = merge.take(1, 0, Watched::Apply("old"));
        assert_eq!(show(old), "", "said before the new round");
        assert_eq!(say(&mut merge, 1, Watched::Relist), "");
        assert_eq!(say(&mut merge, 1, Watched::Complete(Version(21))), "complete 20");
    }

    #[test]
    fn two_that_list_afresh_at_once_agree_on_one_round() {
        let mut merge = complete();
        assert_eq!(show(merge.take(0, 0, Watched::<&str, &str>::Relist)), "relist");
        assert_eq!(
            show(merge.take(1, 0, Watched::<&str, &str>::Relist)),
            "",
            "it doesn't know of the round yet"
        );
        assert_eq!(say(&mut merge, 0, Watched::Complete(Version(9))), "");
        assert_eq!(say(&mut merge, 1, Watched::Relist), "");
        assert_eq!(say(&mut merge, 1, Watched::Complete(Version(9))), "complete 9");
        assert_eq!(merge.round(0), 0);
    }

    #[test]
    fn a_part_that_breaks_within_a_round_begins_another() {
        let mut merge = complete();
        say(&mut merge, 0, Watched::Relist);
        say(&mut merge, 1, Watched::Relist);
        assert_eq!(say(&mut merge, 1, fault("x")), "broken");
        assert_eq!(say(&mut merge, 0, Watched::Complete(Version(9))), "");
        assert_eq!(say(&mut merge, 1, Watched::Relist), "relist", "what it named before may be gone");
        assert_eq!(merge.round(0), 1);
    }

    #[test]
    fn the_same_fault_is_told_once() {
        let mut merge = Merge::new(2);
        assert_eq!(say(&mut merge, 0, fault("refused")), "broken");
        assert_eq!(say(&mut merge, 1, fault("refused")), "");
        assert_eq!(say(&mut merge, 1, fault("other")), "broken");
    }

    #[test]
    fn a_broken_part_makes_no_progress() {
        let mut merge = complete();
        assert_eq!(say(&mut merge, 0, fault("x")), "broken");
        assert_eq!(say(&mut merge, 1, Watched::Progress(Version(30))), "");
    }
}
