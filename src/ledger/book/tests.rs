use std::time::Duration;

use super::*;
use crate::ledger::Part;

fn ms(ms: u64) -> Mono {
    Mono(Duration::from_millis(ms))
}

fn edit(at: u64, urgency: Urgency) -> Edit {
    Edit { now: ms(at), at: Point::default(), urgency }
}

fn secret(name: &str) -> SecretId {
    SecretId { namespace: "ns".into(), name: name.into() }
}

fn written(book: &mut Book, at: u64) -> Vec<String> {
    let writes = book.writes(ms(at), None);
    for write in &writes {
        book.written(&write.name, Version(at));
    }
    writes.into_iter().map(|write| write.name).collect()
}

#[test]
fn an_edit_is_durable_with_all_that_was_required_before_it() {
    let mut book = Book::new(Uid(1), "s".to_owned(), Point::default());
    let large = |record: &mut SecretRecord| {
        let text = "x".repeat(PAGE_BYTES);
        record.more.insert("text".to_owned(), text.into());
    };
    book.edit_secret(&secret("s"), edit(0, Urgency::Now), large).unwrap();
    assert_eq!(written(&mut book, 1), [page_name("ns", 0)]);
    // The change lies on a sheet that isn't due yet, the intent on one that is written at once.
    let history = crate::ledger::History::new(crate::ledger::Entry {
        value: crate::ledger::Value::Absent,
        since: crate::ledger::Since::Beginning,
    });
    let change = |record: &mut SecretRecord| record.begin(&Part::All, history);
    book.edit_secret(&secret("s"), edit(2, Urgency::Soon), change).unwrap();
    let write_intent = |book: &mut Book, at, urgency| {
        book.edit_marks(&"ns".into(), Uid(7), edit(at, urgency), Marks::default, |_| {}).unwrap()
    };
    let intent = write_intent(&mut book, 3, Urgency::Now);
    assert_eq!(written(&mut book, 3), [page_name("ns", 1)]);
    assert!(!book.is_durable(&intent), "its change isn't in the store");
    assert_eq!(written(&mut book, 200), [page_name("ns", 0)]);
    assert!(book.is_durable(&intent));
    // What came after it, or need not be written soon, isn't waited for.
    book.edit_secret(&secret("s"), edit(300, Urgency::WithNext), |_| {}).unwrap();
    let intent = write_intent(&mut book, 300, Urgency::Now);
    book.edit_secret(&secret("s"), edit(301, Urgency::Soon), |_| {}).unwrap();
    assert_eq!(written(&mut book, 301), [page_name("ns", 1)]);
    assert!(book.is_durable(&intent));
}
