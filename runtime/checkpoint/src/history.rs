//! What became of the last checkpoints (D17, F2, A9): bounded, for people. It decides nothing.

use serde::{Deserialize, Serialize};

/// Checkpoints that are remembered.
const LONGEST: usize = 200;
pub(crate) const LARGEST: u64 = 4 << 20;

/// What became of a checkpoint that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryEntry {
    /// Its number.
    pub number: u64,
    /// When its barrier was sent, in microseconds since 1970.
    pub at_micros: i64,
    /// From the barrier to the manifest, or until it was given up, in milliseconds.
    pub duration_ms: u64,
    /// The longest that a task held an input back for it, in milliseconds.
    pub alignment_ms: u64,
    /// The longest that a task stood still to hand over its state, in microseconds.
    #[serde(default)]
    pub stop_micros: u64,
    /// Bytes of state written for it.
    pub state_bytes: u64,
    /// Bytes of rows spooled for it.
    pub spool_bytes: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a checkpoint ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Its manifest is there.
    Taken,
    /// It was given up, because of this.
    Abandoned(String),
}

/// The last checkpoints, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Checkpoints that were begun since the state began; some no longer among the entries.
    pub begun: u64,
    /// Those of them that were taken.
    pub taken: u64,
    /// The last of them.
    pub entries: Vec<HistoryEntry>,
    /// Why the job last stopped in the middle, if it ever did: what was said, and when, in microseconds since 1970.
    pub failure: Option<(i64, String)>,
}

impl History {
    pub(crate) fn add(&mut self, entry: HistoryEntry) {
        self.begun += 1;
        self.taken += u64::from(entry.outcome == Outcome::Taken);
        if self.entries.len() >= LONGEST {
            self.entries.drain(..=self.entries.len() - LONGEST);
        }
        self.entries.push(entry);
    }

    /// The last one that was given up, with the reason.
    pub fn last_abandoned(&self) -> Option<(&HistoryEntry, &str)> {
        self.entries.iter().rev().find_map(|entry| match &entry.outcome {
            Outcome::Abandoned(why) => Some((entry, why.as_str())),
            Outcome::Taken => None,
        })
    }

    /// Milliseconds that the remembered taken ones took: the middle one and the longest.
    pub fn durations(&self) -> Option<(u64, u64)> {
        let taken = self.of_taken(|entry| entry.duration_ms);
        Some((*taken.get(taken.len() / 2)?, *taken.last()?))
    }

    /// Microseconds that a task stood still for the remembered taken ones, at most: the middle one, that of which one in a hundred is longer,
    /// and the longest.
    pub fn stops(&self) -> Option<(u64, u64, u64)> {
        let taken = self.of_taken(|entry| entry.stop_micros);
        Some((*taken.get(taken.len() / 2)?, *taken.get((taken.len() * 99).div_ceil(100) - 1)?, *taken.last()?))
    }

    /// The share of the time in which a checkpoint was being taken, and the milliseconds that one took: the middle one of each, as between two
    /// runs there is time of no run. `None`: there are too few to say.
    pub fn share(&self) -> Option<(f64, u64)> {
        let starts = self.entries.windows(2).map(|pair| pair[1].at_micros.saturating_sub(pair[0].at_micros));
        let mut apart: Vec<i64> = starts.filter(|micros| *micros > 0).collect();
        apart.sort_unstable();
        let (each, _) = self.durations()?;
        let apart = apart.get(apart.len() / 2).filter(|_| apart.len() >= 3)?;
        Some(((each as f64 * 1000.0 / *apart as f64).min(1.0), each))
    }

    /// Something of all taken ones, ascending.
    fn of_taken(&self, what: impl Fn(&HistoryEntry) -> u64) -> Vec<u64> {
        let mut taken: Vec<u64> =
            self.entries.iter().filter(|entry| entry.outcome == Outcome::Taken).map(what).collect();
        taken.sort_unstable();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_counts_on() {
        let mut history = History::default();
        for number in 1..=1000 {
            let outcome = if number % 4 == 0 { Outcome::Abandoned(format!("reason {number}")) } else { Outcome::Taken };
            let entry = HistoryEntry {
                number,
                at_micros: (number * 2_000_000) as i64,
                duration_ms: number,
                alignment_ms: 0,
                stop_micros: number,
                state_bytes: 0,
                spool_bytes: 0,
                outcome,
            };
            history.add(entry);
        }
        assert_eq!((history.begun, history.taken, history.entries.len()), (1000, 750, LONGEST));
        assert_eq!(history.entries.last().unwrap().number, 1000);
        assert_eq!(history.last_abandoned().unwrap().1, "reason 1000");
        assert_eq!(history.durations(), Some((901, 999)));
        assert_eq!(history.stops(), Some((901, 998, 999)));
        assert_eq!(history.share(), Some((0.4505, 901)));
        assert_eq!(History::default().share(), None);
        assert_eq!((History::default().durations(), History::default().stops()), (None, None));
    }
}
