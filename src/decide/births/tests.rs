use super::*;
use crate::ledger::Digest;

const A: Value = Value::Present(Digest(1));
const B: Value = Value::Present(Digest(2));

fn time(second: i64) -> Time {
    Time(second * 1000)
}

fn at(version: u64, second: i64) -> Point {
    Point { version: Version(version), time: time(second) }
}

fn seen(value: Value, version: u64, second: i64) -> Entry {
    Entry { value, since: Since::Seen(at(version, second)) }
}

fn beginning(value: Value) -> Entry {
    Entry { value, since: Since::Beginning }
}

fn history(entries: &[Entry]) -> History {
    let mut history = History::new(entries[0]);
    entries[1..].iter().for_each(|entry| history.push(*entry));
    history
}

fn born(second: i64) -> Birth {
    Birth { uid: Uid(7), born: time(second), version: Version(1000), stamped: None }
}

fn exact(version: u64, pods: &[u128]) -> ExactLists {
    ExactLists::from([(Version(version), Exact::Pods(pods.iter().map(|bits| Uid(*bits)).collect()))])
}

fn holds(birth: Birth, history: &History, exact: &ExactLists) -> Holds {
    Births { exact, comparable: true }.holds(&birth, history, true, None)
}

#[test]
fn who_was_not_changed_since_was_there_and_nobody_has_to_be_asked() {
    let history = history(&[beginning(A), seen(B, 10, 1000)]);
    let none = ExactLists::new();
    let unchanged = Birth { version: Version(10), ..born(1010) };
    assert_eq!(holds(unchanged, &history, &none), Holds::Other, "its own time is wrong");
    let changed = Birth { version: Version(11), ..born(1010) };
    assert_eq!(holds(changed, &history, &none), Holds::Ask(Version(10)));
}

#[test]
fn far_births_need_no_list() {
    let changed = history(&[beginning(A), seen(B, 10, 1000)]);
    let none = ExactLists::new();
    assert_eq!(holds(born(939), &changed, &none), Holds::Other);
    assert_eq!(holds(born(1061), &changed, &none), Holds::Current);
    assert_eq!(holds(born(1000), &changed, &none), Holds::Ask(Version(10)));
}

#[test]
fn the_exact_list_decides_whatever_the_clocks_say() {
    let changed = history(&[beginning(A), seen(B, 10, 1000)]);
    assert_eq!(holds(born(1050), &changed, &exact(10, &[7])), Holds::Other, "a slow admission");
    assert_eq!(holds(born(950), &changed, &exact(10, &[8])), Holds::Current, "a clock behind");
}

#[test]
fn without_a_list_the_clock_decides_and_a_tie_is_stale() {
    let changed = history(&[beginning(A), seen(B, 10, 1000)]);
    let unavailable = ExactLists::from([(Version(10), Exact::Unavailable)]);
    assert_eq!(holds(born(1002), &changed, &unavailable), Holds::Other);
    assert_eq!(holds(born(1003), &changed, &unavailable), Holds::Current);
    let none = ExactLists::new();
    let separate = Births { exact: &none, comparable: false };
    assert_eq!(separate.holds(&born(1002), &changed, true, None), Holds::Other);
    assert_eq!(separate.holds(&born(1003), &changed, true, None), Holds::Current);
    let back = history(&[beginning(A), seen(B, 10, 1000), seen(A, 20, 1020)]);
    assert_eq!(
        separate.holds(&born(1000), &back, true, None),
        Holds::Other,
        "it may hold what stood shortly"
    );
    assert_eq!(separate.holds(&born(997), &back, true, None), Holds::Current);
}

#[test]
fn a_trusted_stamp_of_the_version_or_later_is_younger() {
    let changed = history(&[beginning(A), seen(B, 10, 1000)]);
    let none = ExactLists::new();
    let forged = Birth { stamped: Some(Version(10)), ..born(900) };
    assert_eq!(holds(forged, &changed, &none), Holds::Other, "long before what it names");
    for (stamped, expected) in [(9, Holds::Ask(Version(10))), (10, Holds::Current), (11, Holds::Current)] {
        let birth = Birth { stamped: Some(Version(stamped)), ..born(1000) };
        assert_eq!(holds(birth, &changed, &none), expected, "{stamped}");
    }
}

#[test]
fn a_stamp_is_believed_of_no_pod_that_is_older_than_the_look_it_names() {
    let none = ExactLists::new();
    let stamped = |second| Birth { stamped: Some(Version(20)), ..born(second) };
    let between = Since::Between { after: at(10, 1000), by: at(20, 2000) };
    let changed = history(&[beginning(A), Entry { value: B, since: between }]);
    assert_eq!(holds(stamped(1939), &changed, &none), Holds::Other);
    assert_eq!(holds(stamped(1940), &changed, &none), Holds::Current);
    let first = Since::FirstSight { written: Some(time(1990)), by: at(20, 2000) };
    let base = history(&[Entry { value: A, since: first }]);
    assert_eq!(holds(stamped(1939), &base, &none), Holds::FirstSight);
    assert_eq!(holds(stamped(1940), &base, &none), Holds::Current);
}

#[test]
fn a_value_that_came_back_leaves_its_first_pods_fresh() {
    let back = history(&[beginning(A), seen(B, 10, 1000), seen(A, 20, 2000)]);
    let none = ExactLists::new();
    assert_eq!(holds(born(500), &back, &none), Holds::Current);
    assert_eq!(holds(born(1500), &back, &none), Holds::Other);
    assert_eq!(holds(born(2500), &back, &none), Holds::Current);
}

#[test]
fn a_required_absence_is_no_value_and_an_optional_one_is() {
    let arrived = history(&[beginning(Value::Absent), seen(A, 10, 1000)]);
    let none = ExactLists::new();
    let births = Births { exact: &none, comparable: true };
    assert_eq!(births.holds(&born(500), &arrived, true, None), Holds::Current);
    assert_eq!(births.holds(&born(500), &arrived, false, None), Holds::Other);
    let recreated = history(&[beginning(A), seen(Value::Absent, 10, 1000), seen(B, 20, 2000)]);
    assert_eq!(births.holds(&born(500), &recreated, true, None), Holds::Other);
    assert_eq!(births.holds(&born(1500), &recreated, true, None), Holds::Current);
    let equal = history(&[beginning(A), seen(Value::Absent, 10, 1000), seen(A, 20, 2000)]);
    assert_eq!(births.holds(&born(500), &equal, true, None), Holds::Current);
}

#[test]
fn a_birth_in_a_blind_interval_counts_as_stale() {
    let between = Since::Between { after: at(10, 1000), by: at(20, 2000) };
    let none = ExactLists::new();
    for value in [A, B] {
        let blind = history(&[beginning(A), Entry { value, since: between }]);
        assert_eq!(holds(born(1500), &blind, &none), Holds::Other);
        assert_eq!(holds(born(2061), &blind, &none), Holds::Current);
        assert_eq!(holds(born(2030), &blind, &none), Holds::Ask(Version(20)));
        assert_eq!(holds(born(1990), &blind, &exact(20, &[8])), Holds::Current, "a clock behind");
        assert_eq!(holds(born(2030), &blind, &exact(20, &[7])), Holds::Other, "a clock ahead");
        let unavailable = ExactLists::from([(Version(20), Exact::Unavailable)]);
        assert_eq!(holds(born(2002), &blind, &unavailable), Holds::Other);
        assert_eq!(holds(born(2003), &blind, &unavailable), Holds::Current);
    }
    let same = history(&[beginning(A), Entry { value: A, since: between }]);
    assert_eq!(holds(born(900), &same, &none), Holds::Current);
    assert_eq!(holds(born(990), &same, &none), Holds::Ask(Version(10)));
    assert_eq!(holds(born(990), &same, &exact(10, &[8])), Holds::Other, "a clock behind");
    assert_eq!(holds(born(1010), &same, &exact(10, &[7])), Holds::Current, "a clock ahead");
}

#[test]
fn what_is_older_than_all_that_is_known_is_stale_or_first_sight() {
    let first = Entry { value: A, since: Since::FirstSight { written: Some(time(1000)), by: at(10, 5000) } };
    let none = ExactLists::new();
    assert_eq!(holds(born(900), &history(&[first]), &none), Holds::FirstSight);
    assert_eq!(holds(born(1001), &history(&[first]), &none), Holds::Current);
    assert_eq!(
        holds(born(900), &history(&[first, seen(B, 20, 6000), seen(A, 30, 7000)]), &none),
        Holds::FirstSight,
        "the first sight's value again"
    );
    assert_eq!(holds(born(900), &history(&[first, seen(B, 20, 6000)]), &none), Holds::Other);
    assert_eq!(
        holds(born(1000), &history(&[first]), &none),
        Holds::Current,
        "made in one second with its Secret"
    );
    // What stood before a Secret's creation is known, and yet a pod's place is told by `managedFields` alone.
    let created = history(&[beginning(Value::Absent), first]);
    let births = Births { exact: &none, comparable: true };
    assert_eq!(births.holds(&born(900), &created, false, None), Holds::FirstSight);
    assert_eq!(births.holds(&born(900), &created, true, None), Holds::Current, "it waited for its Secret");
    let removed = history(&[beginning(Value::Absent), first, seen(Value::Absent, 20, 6000)]);
    assert_eq!(births.holds(&born(900), &removed, false, None), Holds::Other, "it may hold what was removed");
    let ahead = Entry { value: A, since: Since::FirstSight { written: Some(time(5020)), by: at(10, 5000) } };
    assert_eq!(holds(born(5010), &history(&[ahead]), &none), Holds::Ask(Version(10)));
    assert_eq!(
        holds(born(5010), &history(&[ahead]), &exact(10, &[8])),
        Holds::Current,
        "born after the look"
    );
    assert_eq!(holds(born(5010), &history(&[ahead]), &exact(10, &[7])), Holds::FirstSight);
    let trimmed = history(&[seen(A, 10, 1000), seen(B, 20, 2000), seen(A, 30, 3000)]);
    assert_eq!(holds(born(100), &trimmed, &none), Holds::Other);
    let never_written = Entry { value: A, since: Since::FirstSight { written: None, by: at(10, 5000) } };
    assert_eq!(holds(born(1), &history(&[never_written]), &none), Holds::Current);
}

#[test]
fn nothing_after_the_version_in_question_counts() {
    let changed = history(&[beginning(A), seen(B, 10, 1000), seen(A, 20, 2000)]);
    let none = ExactLists::new();
    let births = Births { exact: &none, comparable: true };
    assert_eq!(births.holds(&born(1500), &changed, true, Some(Version(10))), Holds::Current);
    assert_eq!(births.holds(&born(500), &changed, true, Some(Version(10))), Holds::Other);
}

#[test]
fn where_the_clocks_cant_tell_a_pod_may_hold_either_value() {
    // A, B and A again; the pod was born with B's change, and nothing but the clocks tells.
    let back = history(&[beginning(A), seen(B, 10, 1000), seen(A, 20, 1100)]);
    let none = ExactLists::new();
    let separate = Births { exact: &none, comparable: false };
    assert_eq!(separate.holds(&born(997), &back, true, None), Holds::Current);
    for second in 998..=1102 {
        assert_eq!(separate.holds(&born(second), &back, true, None), Holds::Other, "{second}");
    }
    assert_eq!(separate.holds(&born(1103), &back, true, None), Holds::Current);
}
