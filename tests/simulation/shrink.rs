//! A failing history is shortened as long as it still fails.

use crate::{history::Script, planted::Bug, run};

/// The shortest script found that still fails.
pub fn shrink(script: &Script, bug: Option<Bug>) -> Script {
    let mut best = script.clone();
    let fails = |script: &Script| run(script.clone(), bug, false).checks.violation.is_some();
    let mut step = best.lines.len().div_ceil(2);
    while step > 0 {
        let mut from = 0;
        while from < best.lines.len() {
            let mut shorter = best.clone();
            let to = (from + step).min(shorter.lines.len());
            shorter.lines.drain(from..to);
            if fails(&shorter) {
                best = shorter;
            } else {
                from += step;
            }
        }
        step /= 2;
    }
    for calm in [
        |script: &mut Script| script.knobs.faults = 0,
        |script: &mut Script| script.knobs.late = 0,
        |script: &mut Script| script.knobs.skew = [0; 3],
        |script: &mut Script| script.knobs.slow_admission = false,
        |script: &mut Script| script.knobs.workloads = 1,
    ] {
        let mut calmer = best.clone();
        calm(&mut calmer);
        if fails(&calmer) {
            best = calmer;
        }
    }
    best
}
