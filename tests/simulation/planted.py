#!/usr/bin/env python3
"""Plants bugs in a copy of the engine, and expects the simulation to find each of them.

The source itself has no switches. A bug is one replacement of text, made in the copy; where its place isn't found any
more, it has to be planted anew, and this fails. All are built at once, each asleep until the environment wakes it: in what
is planted, PLANTED says whether this bug is awake.

`planted.py SEEDS [WORD…]`: so many histories at most for each bug whose name has one of the words.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "target" / "planted"
# Its own: cargo names what it builds of the copy as it names what it builds of the original.
TARGET = ROOT / "target" / "planted-build"
SEEDS = sys.argv[1] if len(sys.argv) > 1 else "20000"
ONLY = sys.argv[2:]

AWAKE = """
/// Whether this planted bug is awake.
#[must_use]
pub fn planted(number: u32) -> bool {
    static AWAKE: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    let read = || std::env::var("PLANT").ok().and_then(|number| number.parse().ok());
    *AWAKE.get_or_init(read) == Some(number)
}
"""

# What is wrong, where, what stands there, and what is planted.
BUGS = [
    ("the stamp comes before the intent is durable", "src/engine/stamping.rs",
     "Phase::Intended { ticket, at, .. } => *at <= now && self.book.is_durable(ticket),",
     "Phase::Intended { ticket, at, .. } => *at <= now && (PLANTED || self.book.is_durable(ticket)),"),
    ("a recreated Secret is ignored", "src/ledger/sighting.rs",
     "Some(known) => known.see(facts, moment),",
     "Some(known) if PLANTED && !known.present => known.clone(),\n            Some(known) => known.see(facts, moment),"),
    ("deletions in a fresh list are forgotten", "src/ledger/sighting.rs",
     "filter(|(id, s)| s.present && !named.contains(id))",
     "filter(|(id, s)| !PLANTED && s.present && !named.contains(id))"),
    ("managedFields are taken for truth", "src/ledger/history.rs",
     "if (differs || moved) && !known {", "if (differs && !PLANTED || moved) && !known {"),
    ("undecided pods are fresh", "src/decide/judge.rs",
     "is = worse(is, PodIs::Undecided);\n            continue;",
     "if !PLANTED {\n                is = worse(is, PodIs::Undecided);\n            }\n            continue;"),
    ("a foreign stamp is trusted", "src/decide/judge.rs",
     "return marks.has_stamped(secret, version).then_some(version);",
     "return (PLANTED || marks.has_stamped(secret, version)).then_some(version);"),
    ("terminating pods count", "src/decide/judge.rs",
     "!pod.ended && !pod.deleting", "!pod.ended && (PLANTED || !pod.deleting)"),
    ("up to where was seen is lost", "src/ledger/book.rs",
     "        own.later(self.cover.seen_until)",
     "        if PLANTED {\n            return Point { version: Version(u64::MAX / 2), time: Time(i64::MAX / 2) };\n        }\n"
     "        own.later(self.cover.seen_until)"),
    ("nobody looks again after an outcome", "src/engine/follow.rs",
     "self.look_at_followers(id);\n        self.queue.at_latest(id, self.now.mono);",
     "self.look_at_followers(id);\n        if PLANTED {\n            self.queue.remove(id);\n        } else {\n"
     "            self.queue.at_latest(id, self.now.mono);\n        }"),
    ("a stopped watch is thought unbroken", "src/ledger/sighting.rs",
     "Some(Relist { after, .. }) => Moment::Gap",
     "Some(Relist { .. }) if PLANTED => Moment::Unbroken(by),\n            Some(Relist { after, .. }) => Moment::Gap"),
    ("the exact list is read the wrong way round", "src/decide/births.rs",
     "older.binary_search(&birth.uid).is_ok() => Order::Older,",
     "older.binary_search(&birth.uid).is_ok() != PLANTED => Order::Older,"),
    ("what changes during a rollout is forgotten", "src/engine/look.rs",
     "        if let Some(upto) = upto {\n            clean.retain(",
     "        if let Some(upto) = upto.filter(|_| !PLANTED) {\n            clean.retain("),
    ("a failed attempt is tried again for ever", "src/engine/look.rs",
     ".is_some_and(|attempt| attempt.has_failed_for(&versions))",
     ".is_some_and(|attempt| !PLANTED && attempt.has_failed_for(&versions))"),
    ("the resourceVersion alone counts", "src/ledger/history.rs",
     "Moment::Unbroken(_) => Vec::new(),",
     "Moment::Unbroken(point) if PLANTED => vec![Entry { value: sight.value, since: Since::Seen(point) }],\n"
     "        Moment::Unbroken(_) => Vec::new(),"),
    ("each version is another value", "src/engine/intake.rs",
     "if self.config.trigger == Trigger::ResourceVersion {",
     "if PLANTED || self.config.trigger == Trigger::ResourceVersion {"),
    ("a slot isn't given back", "src/engine/stamping.rs",
     "        for next in self.slots.release(id) {",
     "        if PLANTED {\n            return;\n        }\n        for next in self.slots.release(id) {"),
    ("a running rollout isn't waited for", "src/engine/look.rs",
     "running: self.is_rolling(workload),", "running: !PLANTED && self.is_rolling(workload),"),
    ("an outcome is taken from the status alone", "src/engine/follow.rs",
     "let clean = verdict.is_clean();", "let clean = PLANTED || verdict.is_clean();"),
    ("a ledger write whose answer is lost is thought done", "src/engine/start.rs",
     "                self.book.not_written(name, self.now.mono);\n                self.findings_fault",
     "                if PLANTED {\n                    self.book.written(name, Version(1));\n                } else {\n"
     "                    self.book.not_written(name, self.now.mono);\n                }\n                self.findings_fault"),
    ("a proof holds for all references", "src/engine/consumption.rs",
     ".filter(|marks| marks.clean_for == Some(references_hash(workload)))",
     ".filter(|marks| PLANTED || marks.clean_for == Some(references_hash(workload)))"),
    ("the installed base is stale", "src/decide/births.rs",
     "    } else if entry.value == current {\n",
     "    } else if PLANTED && entry.value == current {\n        Holds::Other\n    } else if entry.value == current {\n"),
    ("an intent is never adopted after a crash", "src/engine/follow.rs",
     "attempt.stamped.is_some() || self.bears_stamp(workload)",
     "attempt.stamped.is_some() || !PLANTED && self.bears_stamp(workload)"),
    ("the breaker never opens", "src/engine/look.rs",
     "breaker: self.breaker_holds(workload),", "breaker: !PLANTED && self.breaker_holds(workload),"),
    ("a release isn't heard", "src/engine/breaker.rs",
     "            !released\n                && self", "            (PLANTED || !released)\n                && self"),
    ("a value is blamed for what people do", "src/engine/breaker.rs",
     "let blamed = matches!(outcome,", "let blamed = PLANTED || matches!(outcome,"),
    ("the canary isn't alone", "src/engine/look.rs",
     "canary: self.canary_holds(workload),", "canary: !PLANTED && self.canary_holds(workload),"),
    ("a claim is thought good for longer than it is", "src/leader/candidacy.rs",
     "self.expiry = Some(sent + self.timing.duration);",
     "let more = if PLANTED { self.timing.duration } else { Duration::ZERO };\n"
     "        self.expiry = Some(sent + self.timing.duration + more);"),
    ("a foreign claim isn't waited for", "src/leader/candidacy.rs",
     "                Some(end) if now < end => Step::Read,", "                Some(end) if now < end && !PLANTED => Step::Read,"),
    ("a restored store isn't noticed", [
        ("src/engine/intake.rs",
         "if self.sightings.is_complete() && version < self.sightings.seen().version {",
         "if !PLANTED && self.sightings.is_complete() && version < self.sightings.seen().version {"),
        ("src/ledger/sighting.rs",
         "        self.is_relisting() && self.secrets", "        !PLANTED && self.is_relisting() && self.secrets"),
        ("src/engine/start.rs", "        if has_gone_back {", "        if has_gone_back && !PLANTED {"),
        ("src/engine/start.rs",
         "record.parts().filter_map(|part| record.history(&part)).any(is_newer).then_some(version)",
         "(!PLANTED && record.parts().filter_map(|part| record.history(&part)).any(is_newer)).then_some(version)"),
    ]),
    ("proofs outlive a restore", "src/ledger/marks.rs",
     "        self.clean.clear();", "        if !PLANTED {\n            self.clean.clear();\n        }"),
]


def plant():
    """Makes the copy with all bugs in it; gives the names of those whose place isn't found."""
    if COPY.exists():
        shutil.rmtree(COPY)
    COPY.mkdir(parents=True)
    for what in ("Cargo.toml", "Cargo.lock", "src", "tests"):
        source = ROOT / what
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, COPY / what)
    lost = []
    for number, (name, *places) in enumerate(BUGS):
        for path, old, new in places[0] if len(places) == 1 else [places]:
            file = COPY / path
            text = file.read_text()
            if text.count(old) != 1:
                print(f"{name}: its place isn't found once in {path}", flush=True)
                lost.append(name)
                continue
            file.write_text(text.replace(old, new.replace("PLANTED", f"crate::planted({number})")))
    library = COPY / "src" / "lib.rs"
    library.write_text(library.read_text() + AWAKE)
    return lost


def build():
    """Builds the copy; gives the program."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(TARGET)}
    if not TARGET.exists() and (ROOT / "target" / "simulation").exists():
        # What it depends on was built already.
        ignore = shutil.ignore_patterns("incremental", "libuptake*", "uptake*", "simulation-*")
        shutil.copytree(ROOT / "target" / "simulation", TARGET / "simulation", ignore=ignore, symlinks=True)
    command = ["cargo", "test", "--no-run", "--message-format=json", "--profile", "simulation", "--test", "simulation"]
    run = subprocess.run(command, cwd=COPY, env=env, stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit("the planted bugs don't compile")
    messages = (json.loads(line) for line in run.stdout.splitlines() if line.startswith("{"))
    programs = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "simulation"]
    return programs[-1]


def main():
    lost = plant()
    program = build()
    missed, found_all = [], 0
    for number, (name, *_) in enumerate(BUGS):
        if name in lost or ONLY and not any(word in name for word in ONLY):
            continue
        start = time.monotonic()
        env = {**os.environ, "SEEDS": SEEDS, "PLANT": str(number), "BRIEF": "1"}
        run = subprocess.run([program], env=env, capture_output=True, text=True)
        took = time.monotonic() - start
        found = re.search(r"^seed (\d+) fails: (.*)$", run.stdout, re.M)
        if found:
            print(f"{name}: found by seed {found[1]} in {took:.1f} s: {found[2][:110]}", flush=True)
            found_all += 1
        else:
            end = "NOT FOUND" if run.returncode == 0 else f"doesn't run: {run.stderr[-600:]}"
            print(f"{name}: {end} in {SEEDS} histories, {took:.1f} s", flush=True)
            missed.append(name)
    print(f"{found_all} of {found_all + len(missed) + len(lost)} planted bugs were found", flush=True)
    return 1 if missed or lost else 0


if __name__ == "__main__":
    sys.exit(main())
