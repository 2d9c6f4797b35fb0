//! The simulated run: threads that hand one baton on. Whoever has it goes on until it next waits or passes; then the seed says who has it.
//!
//! Time stands still but for a little at each turn; when all wait it goes on to the first who waits for time. When nobody waits for time
//! either, or there is no end, the run is stuck: every thread panics.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::Planted;

/// What a simulated run is.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// From which everything that chance decides follows.
    pub seed: u64,
    /// The fault that is planted in it.
    pub planted: Option<Planted>,
    /// After so many turns it counts as one that has no end.
    pub most_turns: u64,
}

/// How a simulated run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simulated {
    /// Turns it took.
    pub turns: u64,
    /// Who had them, as a check sum: equal for equal runs.
    pub trace: u64,
}

struct Sim {
    state: Mutex<State>,
    planted: Option<Planted>,
    most_turns: u64,
    start: Instant,
}

struct State {
    random: u64,
    now: Duration,
    /// Time that a turn takes at most, in nanoseconds.
    pace: u64,
    /// One in so many passes gives the baton away.
    eager: u64,
    seats: Vec<Seat>,
    /// Who has the baton.
    has: usize,
    /// Raised whenever somebody has gone on: who waits for a change looks again.
    version: u64,
    turns: u64,
    trace: u64,
    stuck: bool,
}

struct Seat {
    wants: Wants,
    called: Arc<Condvar>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    /// To go on.
    Turn,
    /// Time to pass.
    Time(Duration),
    /// A change since this version, or time to pass.
    Change(u64, Option<Duration>),
    /// Nothing any more.
    Gone,
}

thread_local! {
    static HERE: RefCell<Option<(Arc<Sim>, usize)>> = const { RefCell::new(None) };
}

fn here() -> Option<(Arc<Sim>, usize)> {
    HERE.with_borrow(Clone::clone)
}

impl Simulation {
    /// A run of this seed.
    pub fn new(seed: u64) -> Simulation {
        Simulation { seed, planted: None, most_turns: 200_000 }
    }

    /// Does the work, which waits and starts threads only through [`crate::turns`].
    ///
    /// Panics, as the work and its threads do, when the run gets stuck.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> (T, Simulated) {
        let mut state = State {
            random: self.seed,
            now: Duration::ZERO,
            pace: 0,
            eager: 0,
            seats: vec![Seat { wants: Wants::Turn, called: Arc::default() }],
            has: 0,
            version: 0,
            turns: 0,
            trace: 0,
            stuck: false,
        };
        state.pace = [2_000, 20_000, 200_000, 1_000_000][state.below(4) as usize];
        state.eager = [1, 2, 4, 16][state.below(4) as usize];
        let sim = Arc::new(Sim {
            state: Mutex::new(state),
            planted: self.planted,
            most_turns: self.most_turns,
            start: Instant::now(),
        });
        // Also when it panics the thread is its own again.
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                HERE.with_borrow_mut(|here| *here = None);
            }
        }
        let leave = Leave;
        HERE.with_borrow_mut(|here| *here = Some((sim.clone(), 0)));
        let done = work();
        drop(leave);
        let state = sim.lock();
        (done, Simulated { turns: state.turns, trace: state.trace })
    }
}

impl Sim {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Gives the baton away and waits until it comes back.
    fn wait(&self, seat: usize, wants: Wants) {
        if std::thread::panicking() {
            return;
        }
        let mut state = self.lock();
        state.seats[seat].wants = wants;
        state.hand_on(self.most_turns);
        self.await_baton(state, seat);
    }

    fn await_baton(&self, mut state: MutexGuard<'_, State>, seat: usize) {
        let called = state.seats[seat].called.clone();
        while state.has != seat && !state.stuck {
            state = called.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        state.seats[seat].wants = Wants::Turn;
        let stuck = state.stuck;
        let turns = state.turns;
        drop(state);
        assert!(!stuck, "the simulated run is stuck after {turns} turns");
    }
}

impl State {
    fn below(&mut self, of: u64) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % of.max(1)
    }

    fn may_go_on(&self, wants: Wants) -> bool {
        match wants {
            Wants::Turn => true,
            Wants::Time(at) => at <= self.now,
            Wants::Change(seen, until) => self.version > seen || until.is_some_and(|until| until <= self.now),
            Wants::Gone => false,
        }
    }

    fn hand_on(&mut self, most_turns: u64) {
        self.turns += 1;
        let took = self.below(self.pace);
        self.now += Duration::from_nanos(took);
        let mut ready = self.ready();
        if ready.is_empty() {
            let times = self.seats.iter().filter_map(|seat| match seat.wants {
                Wants::Time(at) | Wants::Change(_, Some(at)) => Some(at),
                Wants::Turn | Wants::Change(_, None) | Wants::Gone => None,
            });
            if let Some(first) = times.min() {
                self.now = self.now.max(first);
                ready = self.ready();
            }
        }
        let over = self.seats.iter().all(|seat| seat.wants == Wants::Gone);
        if (ready.is_empty() && !over) || self.turns > most_turns {
            self.stuck = true;
            self.seats.iter().for_each(|seat| seat.called.notify_all());
            return;
        }
        if !ready.is_empty() {
            let next = self.below(ready.len() as u64) as usize;
            self.has = ready[next];
            self.trace = (self.trace ^ self.has as u64).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5);
            self.seats[self.has].called.notify_all();
        }
    }

    fn ready(&self) -> Vec<usize> {
        (0..self.seats.len()).filter(|&seat| self.may_go_on(self.seats[seat].wants)).collect()
    }
}

/// The fault planted in the simulated run of this thread; `None`: there is no such run.
pub(crate) fn planted_here() -> Option<Option<Planted>> {
    HERE.with_borrow(|here| here.as_ref().map(|(sim, _)| sim.planted))
}

pub(super) fn is_on() -> bool {
    HERE.with_borrow(Option::is_some)
}

/// A number below `of` that follows from the seed; `None`: the run isn't a simulated one.
pub fn random(of: u64) -> Option<u64> {
    here().map(|(sim, _)| sim.lock().below(of))
}

/// How many turns the simulated run of this thread has had.
pub fn turn() -> Option<u64> {
    here().map(|(sim, _)| sim.lock().turns)
}

pub(super) fn now() -> Option<Instant> {
    here().map(|(sim, _)| sim.start + sim.lock().now)
}

pub(super) fn sleep(time: Duration) -> bool {
    let Some((sim, seat)) = here() else { return false };
    let until = {
        let mut state = sim.lock();
        state.version += 1;
        state.now + time
    };
    sim.wait(seat, Wants::Time(until));
    true
}

pub(super) fn pass() {
    let Some((sim, seat)) = here() else { return };
    let gives = {
        let mut state = sim.lock();
        state.version += 1;
        let eager = state.eager;
        state.below(eager) == 0
    };
    if gives {
        sim.wait(seat, Wants::Turn);
    }
}

pub(super) fn wait_until(limit: Option<Duration>, mut done: impl FnMut() -> bool) {
    let Some((sim, seat)) = here() else { return };
    let until = limit.map(|limit| sim.lock().now + limit);
    sim.lock().version += 1;
    loop {
        if std::thread::panicking() || done() || until.is_some_and(|until| until <= sim.lock().now) {
            break;
        }
        let seen = sim.lock().version;
        sim.wait(seat, Wants::Change(seen, until));
    }
    sim.lock().version += 1;
}

pub(super) fn wait_for(other: usize) {
    let Some((sim, _)) = here() else { return };
    wait_until(None, || sim.lock().seats[other].wants == Wants::Gone);
}

/// A place for a new thread.
pub(super) struct Place {
    sim: Arc<Sim>,
    seat: usize,
}

pub(super) fn new_place() -> Option<Place> {
    let (sim, _) = here()?;
    let mut state = sim.lock();
    let seat = state.seats.len();
    state.seats.push(Seat { wants: Wants::Turn, called: Arc::default() });
    drop(state);
    Some(Place { sim, seat })
}

impl Place {
    pub(super) fn seat(&self) -> usize {
        self.seat
    }

    /// Does a new thread's work at its place.
    pub(super) fn sit<T>(self, work: impl FnOnce() -> T) -> T {
        HERE.with_borrow_mut(|here| *here = Some((self.sim.clone(), self.seat)));
        // Also when the work panics the baton goes on.
        let leave = Leave(&self);
        self.sim.await_baton(self.sim.lock(), self.seat);
        let done = work();
        drop(leave);
        done
    }
}

struct Leave<'p>(&'p Place);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let Leave(Place { sim, seat }) = self;
        HERE.with_borrow_mut(|here| *here = None);
        let mut state = sim.lock();
        state.seats[*seat].wants = Wants::Gone;
        state.version += 1;
        state.hand_on(sim.most_turns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns;

    fn run(seed: u64) -> (Vec<u32>, Simulated) {
        Simulation::new(seed).run(|| {
            let said = Mutex::new(Vec::new());
            let changed = Condvar::new();
            std::thread::scope(|scope| {
                let said = &said;
                let talk = |id: u32| {
                    move || {
                        for n in 0..5 {
                            said.lock().unwrap().push(10 * id + n);
                            turns::pass();
                        }
                    }
                };
                let threads: Vec<_> =
                    (0..3).map(|id| turns::spawn(scope, format!("t{id}"), talk(id)).unwrap()).collect();
                let guard = said.lock().unwrap();
                drop(turns::wait_while(said, &changed, guard, None, |said| said.len() < 15));
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
            said.into_inner().unwrap()
        })
    }

    #[test]
    fn the_same_seed_gives_the_same_run_and_others_others() {
        let runs: Vec<_> = (0..20).map(run).collect();
        assert!((0..20).all(|seed| run(seed) == runs[seed as usize]));
        assert!(runs.iter().filter(|(said, _)| *said != runs[0].0).count() > 10);
    }

    #[test]
    fn time_passes_when_all_wait() {
        let (waited, _) = Simulation::new(1).run(|| {
            let before = turns::now();
            turns::sleep(Duration::from_secs(3600));
            turns::now() - before
        });
        assert!(waited >= Duration::from_secs(3600));
    }

    #[test]
    #[should_panic(expected = "stuck")]
    fn a_standstill_is_seen() {
        let (mutex, changed) = (Mutex::new(()), Condvar::new());
        Simulation::new(1).run(|| {
            let guard = mutex.lock().unwrap();
            drop(turns::wait_while(&mutex, &changed, guard, None, |()| true));
        });
    }
}
