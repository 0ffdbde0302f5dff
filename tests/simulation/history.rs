//! A history's script: what the cluster is like, and what people, tools and accidents do to it, and when.
//!
//! It is drawn from the seed before anything runs, so that a failing one can be shortened.

use crate::rng::Rng;

/// Milliseconds.
pub type Ms = i64;

/// What the cluster is like.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a property of its own.
pub struct Knobs {
    /// By how much each API server's clock is wrong.
    pub skew: [Ms; 3],
    /// Whether pods may be admitted slowly: their creation time is older than their place in the store.
    pub slow_admission: bool,
    /// Whether pods lie in a store of their own.
    pub separate_stores: bool,
    /// Whether old versions are compacted away quickly.
    pub compacts: bool,
    /// Out of a thousand calls, how many fail.
    pub faults: u64,
    /// Out of a thousand events, how many are late by seconds.
    pub late: u64,
    pub max_concurrent: usize,
    pub first_sight_rolls: bool,
    pub canary: bool,
    /// How many Uptakes there are, and whether they elect a leader.
    pub replicas: u8,
    pub elects: bool,
    pub workloads: usize,
    pub secrets: u8,
}

/// Who or what a stream of events is about.
pub const SECRETS: usize = 0;
pub const NAMESPACES: usize = 4;
pub const STREAMS: usize = 5;

/// When the operator dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    Now,
    /// Before its n-th call from now is done.
    Before(u32),
    /// After it was done, before its answer comes.
    Done(u32),
    /// After its answer was taken in.
    Answered(u32),
    /// It is asked to end, and ends when it is quiet.
    Asked,
}

/// What happens. Numbers choose an object among those that there are then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    SetKey {
        secret: u64,
        key: u8,
        silent: bool,
    },
    /// A value with which no program becomes ready.
    BadValue {
        secret: u64,
        key: u8,
    },
    /// The value that stood before.
    SetBack {
        secret: u64,
        key: u8,
        silent: bool,
    },
    /// It changes many times in a short while.
    Storm {
        secret: u64,
        key: u8,
    },
    Label {
        secret: u64,
        moves_time: bool,
    },
    DeleteSecret {
        secret: u64,
    },
    CreateSecret {
        secret: u64,
        same: bool,
    },
    Recreate {
        secret: u64,
        same: bool,
    },
    RemoveKey {
        secret: u64,
        key: u8,
    },
    SecretMode {
        secret: u64,
        mode: u8,
    },
    NewWorkload {
        draw: u64,
    },
    EditReferences {
        workload: u64,
        draw: u64,
    },
    Image {
        workload: u64,
        bad: bool,
    },
    NeverReady {
        workload: u64,
        on: bool,
    },
    Scale {
        workload: u64,
        to: u32,
    },
    Restart {
        workload: u64,
    },
    Undo {
        workload: u64,
    },
    Pause {
        workload: u64,
        on: bool,
    },
    DeleteWorkload {
        workload: u64,
        slow: bool,
    },
    RecreateWorkload {
        workload: u64,
    },
    Evict {
        pod: u64,
    },
    DeletePod {
        pod: u64,
    },
    Mode {
        workload: u64,
        mode: u8,
    },
    NamespaceMode {
        namespace: u8,
        mode: u8,
    },
    OperatorPause {
        on: bool,
    },
    ForeignStamp {
        workload: u64,
        draw: u64,
    },
    GitOps {
        workload: u64,
    },
    GitOpsAlways {
        workload: u64,
        on: bool,
    },
    Deny {
        workload: u64,
        on: bool,
    },
    Strip {
        workload: u64,
        on: bool,
    },
    Quota {
        workload: u64,
        on: bool,
    },
    Crash {
        point: CrashPoint,
        down: Ms,
    },
    /// The process is stopped for a while, and goes on.
    Freeze {
        pause: Ms,
    },
    Break {
        stream: usize,
        relist: bool,
        pause: Ms,
    },
    Outage {
        stream: usize,
        pause: Ms,
    },
    LedgerOutage {
        pause: Ms,
    },
    LedgerOverwritten,
    LedgerDeleted {
        draw: u64,
    },
    /// etcd is restored from a backup.
    Restore {
        draw: u64,
    },
    Compact,
}

/// One line of the script.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// After the start of the history.
    pub at: Ms,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub struct Script {
    pub seed: u64,
    pub knobs: Knobs,
    pub lines: Vec<Line>,
    /// When the active phase ends.
    pub until: Ms,
}

pub fn script(seed: u64) -> Script {
    let mut rng = Rng::new(seed);
    let knobs = knobs(&mut rng);
    let until = rng.between(120_000, 900_000);
    let count = rng.between(18, 39);
    let mut lines = Vec::new();
    let mut at = rng.between(500, 20_000);
    for _ in 0..count {
        let action = action(&mut rng);
        lines.push(Line { at, action });
        // What happens close together is what goes wrong together.
        at += match rng.below(10) {
            0..=3 => rng.between(0, 800),
            4..=6 => rng.between(500, 6_000),
            7..=8 => rng.between(3_000, 30_000),
            _ => rng.between(20_000, 200_000),
        };
    }
    if rng.permille(350) {
        let start = rng.between(0, until - 60_000);
        lines.extend(course(&mut rng).into_iter().map(|(after, action)| Line { at: start + after, action }));
        lines.sort_by_key(|line| line.at);
    }
    lines.retain(|line| line.at < until);
    Script { seed, knobs, lines, until }
}

/// A course of events that chance alone brings together too seldom.
fn course(rng: &mut Rng) -> Vec<(Ms, Action)> {
    let (secret, workload, draw) = (rng.below(64), rng.below(64), rng.next());
    let key = rng.pick(&[0, 0, 1]);
    let set = Action::SetKey { secret, key, silent: false };
    let unwatched = |pause| Action::Break { stream: SECRETS, relist: true, pause };
    match rng.below(4) {
        // A Secret goes while nobody watches.
        0 => vec![(0, unwatched(rng.between(2_000, 8_000))), (500, Action::DeleteSecret { secret })],
        // A value comes and goes while nobody watches, and pods are born with it.
        1 => vec![
            (0, unwatched(rng.between(9_000, 20_000))),
            (300, set),
            (600, Action::Restart { workload }),
            (rng.between(5_000, 9_000), Action::SetBack { secret, key, silent: false }),
        ],
        // What a workload consumes is another for a while, and its pods stay.
        2 => vec![
            (0, Action::Pause { workload, on: true }),
            (rng.pick(&[200, 200, 30_000]), set),
            (rng.between(3_000, 20_000), Action::EditReferences { workload, draw }),
            (rng.between(40_000, 120_000), Action::Undo { workload }),
        ],
        // What was rolled for never was.
        _ => {
            let restore = rng.between(20_000, 60_000);
            vec![
                (0, set),
                (restore, Action::Restore { draw: rng.below(3) }),
                (restore + rng.between(500, 30_000), Action::SetKey { secret, key, silent: false }),
            ]
        }
    }
}

fn knobs(rng: &mut Rng) -> Knobs {
    let exact = rng.permille(700);
    let skewed = exact && rng.permille(500);
    let mut skew = [0; 3];
    if skewed {
        for skew in &mut skew {
            *skew = rng.between(-10_000, 10_000);
        }
    }
    let quiet = rng.permille(300);
    let among = rng.below(1000);
    Knobs {
        skew,
        slow_admission: exact && rng.permille(400),
        separate_stores: !exact && rng.permille(500),
        compacts: !exact && rng.permille(700),
        faults: if quiet { 0 } else { rng.pick(&[10, 30, 80]) },
        late: if quiet { 0 } else { rng.pick(&[5, 30, 100]) },
        max_concurrent: rng.pick(&[0, 1, 1, 2, 20]),
        first_sight_rolls: rng.permille(200),
        canary: rng.permille(200),
        replicas: if among < 230 { 2 } else { 1 },
        elects: among < 180,
        workloads: usize::try_from(rng.between(1, 4)).unwrap_or(1),
        secrets: rng.pick(&[1, 2, 3]),
    }
}

#[allow(clippy::too_many_lines)] // One table of weights, which is read as one.
fn action(rng: &mut Rng) -> Action {
    let (secret, workload, draw) = (rng.below(64), rng.below(64), rng.next());
    let key = rng.pick(&[0, 0, 0, 1, 2]);
    let silent = rng.permille(250);
    let on = rng.permille(600);
    match rng.below(1000) {
        0..=209 => Action::SetKey { secret, key, silent },
        210..=229 => Action::BadValue { secret, key },
        230..=264 => Action::SetBack { secret, key, silent },
        265..=276 => Action::Label { secret, moves_time: on },
        285..=299 => Action::DeleteSecret { secret },
        300..=324 => Action::CreateSecret { secret, same: on },
        325..=344 => Action::Recreate { secret, same: on },
        345..=364 => Action::RemoveKey { secret, key },
        365..=374 => Action::SecretMode { secret, mode: rng.pick(&[0, 0, 1, 2, 3, 4]) },
        375..=394 => Action::NewWorkload { draw },
        395..=414 => Action::EditReferences { workload, draw },
        415..=434 => Action::Image { workload, bad: rng.permille(400) },
        435..=440 => Action::NeverReady { workload, on },
        441..=443 => Action::Storm { secret, key },
        277..=284 | 444..=476 | 749..=908 => Action::Crash { point: crash_point(rng), down: down(rng) },
        477..=501 => Action::Scale { workload, to: rng.pick(&[0, 1, 2, 3]) },
        502..=531 => Action::Restart { workload },
        532..=556 => Action::Undo { workload },
        557..=576 => Action::Pause { workload, on },
        577..=586 => Action::DeleteWorkload { workload, slow: on },
        587..=596 => Action::RecreateWorkload { workload },
        597..=616 => Action::Evict { pod: draw },
        617..=641 => Action::DeletePod { pod: draw },
        642..=661 => Action::Mode { workload, mode: rng.pick(&[0, 0, 1, 2, 3, 4]) },
        662..=669 => Action::NamespaceMode { namespace: rng.pick(&[0, 1]), mode: rng.pick(&[0, 0, 1, 2, 3]) },
        670..=681 => Action::OperatorPause { on: rng.permille(400) },
        682..=696 => Action::ForeignStamp { workload, draw },
        697..=711 => Action::GitOps { workload },
        712..=721 => Action::GitOpsAlways { workload, on },
        722..=731 => Action::Deny { workload, on },
        732..=738 => Action::Strip { workload, on: rng.permille(400) },
        739..=748 => Action::Quota { workload, on },
        909..=912 => Action::Freeze { pause: rng.pick(&[2_000, 10_000, 20_000, 60_000]) },
        913..=948 => Action::Break {
            stream: rng.pick(&[0, 0, 1, 2, 3, 4]),
            relist: rng.permille(600),
            pause: rng.between(0, 8_000),
        },
        949..=963 => Action::Outage { stream: rng.pick(&[0, 1, 2, 3, 4]), pause: rng.between(1_000, 60_000) },
        964..=975 => Action::LedgerOutage { pause: rng.between(500, 60_000) },
        976..=982 => Action::LedgerOverwritten,
        983..=987 => Action::LedgerDeleted { draw },
        988..=991 => Action::Restore { draw },
        _ => Action::Compact,
    }
}

fn crash_point(rng: &mut Rng) -> CrashPoint {
    let nth = rng.pick(&[0, 0, 1, 2, 3, 5, 8, 13]);
    match rng.below(10) {
        0..=1 => CrashPoint::Now,
        2..=4 => CrashPoint::Before(nth),
        5..=7 => CrashPoint::Done(nth),
        8 => CrashPoint::Answered(nth),
        _ => CrashPoint::Asked,
    }
}

fn down(rng: &mut Rng) -> Ms {
    match rng.below(10) {
        0..=4 => rng.between(50, 2_000),
        5..=7 => rng.between(1_000, 15_000),
        8 => rng.between(10_000, 90_000),
        _ => rng.between(60_000, 300_000),
    }
}
