#!/usr/bin/env python3
"""Plants bugs in a copy of the engine, one after the other, and expects the simulation to find each of them.

The source itself has no switches. A bug is one replacement of text; where the text isn't found any more, the bug has to
be planted anew, and this fails.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "target" / "planted"
# Its own: cargo names what it builds of the copy as it names what it builds of the original.
TARGET = ROOT / "target" / "planted-build"
SEEDS = sys.argv[1] if len(sys.argv) > 1 else "20000"
ONLY = sys.argv[2:]

BUGS = [
    ("the stamp comes before the intent is durable", "src/engine/stamping.rs",
     "Phase::Intended { ticket, at, .. } => *at <= now && self.book.is_durable(ticket),",
     "Phase::Intended { at, .. } => *at <= now,"),
    ("a recreated Secret is ignored", "src/ledger/sighting.rs",
     "Some(known) => known.see(facts, moment),",
     "Some(known) if known.present => known.see(facts, moment),\n            Some(known) => known.clone(),"),
    ("deletions in a fresh list are forgotten", "src/ledger/sighting.rs",
     "filter(|(id, s)| s.present && !named.contains(id))",
     "filter(|(id, s)| false && s.present && !named.contains(id))"),
    ("managedFields are taken for truth", "src/ledger/history.rs",
     "if (differs || moved) && !known {", "if moved && !known {"),
    ("undecided pods are fresh", "src/decide/judge.rs",
     "is = worse(is, PodIs::Undecided);\n            continue;", "continue;"),
    ("a foreign stamp is trusted", "src/decide/judge.rs",
     "return marks.has_stamped(secret, version).then_some(version);", "return Some(version);"),
    ("terminating pods count", "src/decide/judge.rs",
     "!pod.ended && !pod.deleting", "!pod.ended"),
    ("up to where was seen is lost", "src/ledger/book.rs",
     "own.max(self.cover.seen_until)", "let _ = own;\n        Point { version: Version(u64::MAX / 2), time: crate::facts::Time(i64::MAX / 2) }"),
    ("nobody looks again after an outcome", "src/engine/follow.rs",
     "        self.release_slot(id);\n        self.queue.at_latest(id, self.now.mono);\n    }\n\n    /// A failed or blocked",
     "        self.release_slot(id);\n        self.queue.remove(id);\n    }\n\n    /// A failed or blocked"),
    ("a stopped watch is thought unbroken", "src/ledger/sighting.rs",
     "Some(Relist { after, .. }) => Moment::Gap { after: after.unwrap_or_default(), by },",
     "Some(Relist { .. }) => Moment::Unbroken(by),"),
    ("the exact list is read the wrong way round", "src/decide/births.rs",
     "Some(Exact::Pods(older)) if older.binary_search(&birth.uid).is_ok() => Order::Older,",
     "Some(Exact::Pods(older)) if older.binary_search(&birth.uid).is_err() => Order::Older,"),
    ("what changes during a rollout is forgotten", "src/engine/look.rs",
     "let after = match &before {\n            Some(before) if upto.is_some() => joined(before, &clean),",
     "let upto: Option<&Versions> = None;\n        let after = match &before {\n            Some(before) if upto.is_some() => joined(before, &clean),"),
    ("a failed attempt is tried again for ever", "src/engine/look.rs",
     ".is_some_and(|attempt| attempt.has_failed_for(&versions))", ".is_some_and(|attempt| false && attempt.has_failed_for(&versions))"),
    ("the resourceVersion alone counts", "src/ledger/history.rs",
     "Moment::Unbroken(_) => Vec::new(),",
     "Moment::Unbroken(point) => vec![Entry { value: sight.value, since: Since::Seen(point) }],"),
    ("each version is another value", "src/engine/intake.rs",
     "if self.config.trigger == Trigger::ResourceVersion {", "if self.config.trigger == Trigger::Data {"),
    ("a slot isn't given back", "src/engine/follow.rs",
     "            self.stale.remove(id);\n        }\n        self.release_slot(id);", "            self.stale.remove(id);\n        }"),
    ("a running rollout isn't waited for", "src/engine/look.rs",
     "running: self.is_rolling(workload),", "running: false && self.is_rolling(workload),"),
    ("an outcome is taken from the status alone", "src/engine/follow.rs",
     "let clean = verdict.is_clean();", "let clean = true || verdict.is_clean();"),
    ("a ledger write whose answer is lost is thought done", "src/engine/start.rs",
     "            Err(fault) => {\n                self.book.not_written(name, self.now.mono);",
     "            Err(fault) => {\n                self.book.written(name, Version(1));"),
    ("a proof holds for all references", "src/engine/consumption.rs",
     "marks.filter(|marks| marks.clean_for == Some(references_hash(workload)))", "marks.filter(|_| true)"),
    ("the first sight is proof", "src/decide/births.rs",
     "    } else if entry.value == current {\n        Holds::FirstSight", "    } else if entry.value == current {\n        Holds::Other"),
    ("an intent is never adopted after a crash", "src/engine/follow.rs",
     "attempt.is_running() && (attempt.stamped.is_some() || self.bears_stamp(workload))",
     "attempt.is_running() && attempt.stamped.is_some()"),
]


def main():
    missed = []
    for name, path, old, new in BUGS:
        if ONLY and not any(word in name for word in ONLY):
            continue
        if COPY.exists():
            shutil.rmtree(COPY)
        COPY.mkdir(parents=True)
        for what in ("Cargo.toml", "Cargo.lock", "src", "tests"):
            source = ROOT / what
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, COPY / what)
        file = COPY / path
        text = file.read_text()
        if text.count(old) != 1:
            print(f"{name}: its place isn't found once in {path}", flush=True)
            missed.append(name)
            continue
        file.write_text(text.replace(old, new))
        env = {**os.environ, "SEEDS": SEEDS, "CARGO_TARGET_DIR": str(TARGET), "RUSTFLAGS": os.environ.get("RUSTFLAGS", ""), "WHOLE": "1"}
        run = subprocess.run(
            ["cargo", "test", "--quiet", "--profile", "simulation", "--test", "simulation"],
            cwd=COPY, env=env, capture_output=True, text=True)
        found = re.search(r"^seed (\d+) fails: (.*)$", run.stdout, re.M)
        if found:
            print(f"{name}: found by seed {found[1]}: {found[2][:110]}", flush=True)
        elif run.returncode == 0:
            print(f"{name}: NOT FOUND in {SEEDS} histories", flush=True)
            missed.append(name)
        else:
            print(f"{name}: doesn't run: {run.stderr[-600:]}", flush=True)
            missed.append(name)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
