#!/usr/bin/env python3
"""Says what became of the changed lines: how many a test noticed, and which nobody did. Fails if fewer than nine of ten
were noticed."""
import json
import pathlib
import sys

LEAST = 0.9


def main():
    outcomes = json.loads((pathlib.Path(sys.argv[1]) / "outcomes.json").read_text())
    tried = [o for o in outcomes["outcomes"] if isinstance(o["scenario"], dict)]
    by = {}
    for outcome in tried:
        by.setdefault(outcome["summary"], []).append(outcome["scenario"]["Mutant"]["name"])
    # A change that never ends was noticed; one that doesn't compile is none.
    killed = len(by.get("CaughtMutant", [])) + len(by.get("Timeout", []))
    survivors = by.get("MissedMutant", [])
    for name in survivors:
        print(f"nobody noticed: {name}")
    every = killed + len(survivors)
    rate = killed / every if every else 0
    print(f"{killed} of {every} changes were noticed: {rate:.1%} ({len(by.get('Unviable', []))} don't compile)")
    return 0 if every and rate >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
