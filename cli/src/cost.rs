//! What checkpoints cost, as measured (A6): the share of the time in which one was being taken, and an interval that would make it small.

use std::time::Duration;

use crate::summary::{count, duration};

/// From this share on it is worth a word.
const MUCH: f64 = 0.2;
/// What an interval is proposed for.
const LITTLE: f64 = 0.05;
/// Checkpoints from which on there is something to go by.
const ENOUGH: usize = 5;

/// The checkpoints of a run.
#[derive(Debug, Default)]
pub struct Cost {
    taken: Vec<Duration>,
}

impl Cost {
    /// One was taken.
    pub fn add(&mut self, took: Duration) {
        self.taken.push(took);
    }

    /// What is to be said at the end of a run that took `elapsed`.
    pub fn note(&self, elapsed: Duration) -> Option<String> {
        let busy: Duration = self.taken.iter().sum();
        let share = busy.as_secs_f64() / elapsed.as_secs_f64().max(1e-6);
        let each = busy / u32::try_from(self.taken.len()).ok().filter(|n| *n > 0)?;
        let advice = advice(share, each).filter(|_| self.taken.len() >= ENOUGH)?;
        let number = count(self.taken.len() as u64);
        Some(format!(
            "note: in {:.0} % of the time a checkpoint was being taken ({number} of them, {} each): {advice}",
            share * 100.0,
            duration(each)
        ))
    }
}

/// The interval that would make it little; `None`: it isn't much.
pub fn advice(share: f64, each: Duration) -> Option<String> {
    let wanted = each.mul_f64(1.0 / LITTLE - 1.0);
    let interval = match wanted.as_secs() {
        0..=1 => format!("{}ms", wanted.as_millis().next_multiple_of(10)),
        seconds => format!("{}s", seconds + 1),
    };
    (share >= MUCH).then(|| format!("`interval: {interval}` would make it about {:.0} %", LITTLE * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_much_is_said() {
        let mut cost = Cost::default();
        (0..4).for_each(|_| cost.add(Duration::from_millis(830)));
        assert_eq!(cost.note(Duration::from_secs(10)), None, "too few to go by");
        cost.add(Duration::from_millis(830));
        assert_eq!(
            cost.note(Duration::from_secs(10)).as_deref(),
            Some(
                "note: in 42 % of the time a checkpoint was being taken (5 of them, 830 ms each): `interval: 16s` would make it about 5 %"
            )
        );
        assert_eq!(cost.note(Duration::from_secs(50)), None);
        assert_eq!(Cost::default().note(Duration::ZERO), None);
        assert!(advice(0.9, Duration::from_millis(3)).is_some_and(|text| text.contains("`interval: 60ms`")));
    }
}
