//! The worker pool: steps tasks until they would block, wakes them when something they wait for has happened (D2).
//!
//! It may not know what a task does. Of the tasks that are ready the one furthest down the plan runs first, so that rows leave
//! before new ones come in.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use dfc_trial::turns;

use crate::RunError;

/// Position of a task in the list given to [`Scheduler::run`].
pub(crate) type TaskId = usize;

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There may be more to do at once.
    Again,
    /// There is much to do at once: whatever else is ready goes first, for a while.
    Later,
    /// Nothing can be done before [`Scheduler::wake`]. The task has registered itself wherever it waits.
    Blocked,
    /// Nothing can be done before this time has passed, or [`Scheduler::wake`].
    Sleep(Duration),
    /// The task has ended.
    Done,
}

/// A task, as the pool sees it.
pub(crate) trait Runnable: Send {
    /// Does a bounded piece of work (about one batch).
    fn step(&mut self) -> Result<Step, RunError>;

    /// The stage's name, for messages.
    fn name(&self) -> &str;

    /// Position of the stage in the plan; later ones run first.
    fn stage(&self) -> usize;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Blocked,
    Ready,
    Running,
    /// Woken while it ran: runs again even if it says it is blocked.
    Rewoken,
    Done,
}

struct Shared {
    tasks: Vec<(usize, State)>,
    /// Who does much at once last; of the others later stages first, then first come first served.
    ready: BTreeSet<(Reverse<usize>, u64, TaskId)>,
    tick: u64,
    running: usize,
    left: usize,
    failure: Option<RunError>,
    /// Tasks that sleep, by when they wake.
    sleepers: BTreeSet<(Instant, TaskId)>,
    /// Things that go on outside the tasks and will wake some: while there are any, a standstill is none.
    holds: usize,
}

impl Shared {
    fn make_ready(&mut self, task: TaskId) {
        self.make_ready_at(task, self.tasks[task].0 + 1);
    }

    fn make_ready_at(&mut self, task: TaskId, rank: usize) {
        self.tasks[task].1 = State::Ready;
        self.tick += 1;
        self.ready.insert((Reverse(rank), self.tick, task));
    }

    /// Takes the task that runs next out of those that are ready.
    fn next(&mut self) -> Option<TaskId> {
        // The others may never be blocked: what reads into another target, say.
        if let Some(&(Reverse(0), since, task)) = self.ready.last()
            && self.tick - since > PATIENCE
        {
            self.ready.pop_last();
            return Some(task);
        }
        let next = *self.ready.iter().nth(turns::choose(self.ready.len()))?;
        self.ready.remove(&next);
        Some(next.2)
    }

    /// Nothing is ready, and nothing will be.
    fn stands_still(&self) -> bool {
        self.running == 0 && self.ready.is_empty() && self.sleepers.is_empty() && self.holds == 0
    }

    fn over(&self) -> bool {
        self.left == 0 || self.failure.is_some()
    }
}

/// The pool.
pub(crate) struct Scheduler {
    shared: Mutex<Shared>,
    work: Condvar,
    over: Condvar,
    /// Set at the first failure and on cancellation: connectors that wait look at it.
    stopping: Arc<AtomicBool>,
    /// A cancelled run is being ended in an orderly way by somebody else.
    pub(crate) winds_down: AtomicBool,
}

/// After so many steps of others it is the turn of who does much at once.
const PATIENCE: u64 = 256;

/// How often the caller's flag is looked at.
pub(crate) const WATCH: Duration = Duration::from_millis(20);

impl Scheduler {
    pub(crate) fn new() -> Arc<Scheduler> {
        let shared = Shared {
            tasks: Vec::new(),
            ready: BTreeSet::new(),
            tick: 0,
            running: 0,
            left: 0,
            failure: None,
            sleepers: BTreeSet::new(),
            holds: 0,
        };
        Arc::new(Scheduler {
            shared: Mutex::new(shared),
            work: Condvar::new(),
            over: Condvar::new(),
            stopping: Arc::new(AtomicBool::new(false)),
            winds_down: AtomicBool::new(false),
        })
    }

    /// The flag that is set when the run stops early.
    pub(crate) fn stopping(&self) -> Arc<AtomicBool> {
        self.stopping.clone()
    }

    /// A task may go on.
    pub(crate) fn wake(&self, task: TaskId) {
        let mut shared = self.lock();
        match shared.tasks.get(task).map(|t| t.1) {
            Some(State::Blocked) => {
                shared.make_ready(task);
                self.work.notify_one();
            }
            Some(State::Running) => shared.tasks[task].1 = State::Rewoken,
            Some(State::Ready | State::Rewoken | State::Done) | None => {}
        }
    }

    /// Something goes on outside the tasks that will wake some of them: until [`Scheduler::release`] they may all wait.
    pub(crate) fn hold(&self) {
        self.lock().holds += 1;
    }

    /// It doesn't go on any more; the tasks look whether they can.
    pub(crate) fn release(&self) {
        let mut shared = self.lock();
        shared.holds = shared.holds.saturating_sub(1);
        drop(shared);
        self.wake_everyone();
    }

    /// Every task looks whether it can go on.
    pub(crate) fn wake_everyone(&self) {
        let tasks = self.lock().tasks.len();
        self.wake_all(0..tasks);
        self.work.notify_all();
    }

    /// Stops everything with this cause, unless there is one already.
    pub(crate) fn stop(&self, failure: RunError) {
        self.fail(failure);
    }

    /// Several tasks may go on.
    pub(crate) fn wake_all(&self, tasks: impl IntoIterator<Item = TaskId>) {
        tasks.into_iter().for_each(|task| self.wake(task));
    }

    /// Runs all tasks to their end, or to the first failure.
    pub(crate) fn run(
        &self,
        tasks: Vec<Box<dyn Runnable>>,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Result<(), RunError> {
        {
            let mut shared = self.lock();
            shared.tasks = tasks.iter().map(|task| (task.stage(), State::Blocked)).collect();
            shared.left = tasks.len();
            (0..tasks.len()).for_each(|task| shared.make_ready(task));
        }
        let slots: Vec<Mutex<Option<Box<dyn Runnable>>>> =
            tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
        std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for worker in 0..threads.max(1) {
                match turns::spawn(scope, format!("dfc-worker-{worker}"), || self.work(&slots)) {
                    Ok(thread) => workers.push(thread),
                    Err(error) => {
                        // Fewer threads do as well, none doesn't.
                        if worker == 0 {
                            self.fail(RunError::Internal {
                                node: "scheduler".into(),
                                message: format!("no thread could be started: {error}"),
                            });
                        }
                        break;
                    }
                }
            }
            self.watch(cancelled);
            for worker in workers {
                if let Err(panic) = worker.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        match self.lock().failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Waits for the end, and for the caller's flag.
    fn watch(&self, cancelled: &AtomicBool) {
        let mut shared = self.lock();
        while !shared.over() {
            if cancelled.load(Ordering::Relaxed) && !self.winds_down.load(Ordering::Relaxed) {
                drop(shared);
                self.fail(RunError::Cancelled);
                return;
            }
            let now = turns::now();
            while let Some(&(at, task)) = shared.sleepers.first()
                && at <= now
            {
                shared.sleepers.pop_first();
                if shared.tasks[task].1 == State::Blocked {
                    shared.make_ready(task);
                    self.work.notify_one();
                }
            }
            let waits = |s: &mut Shared| !s.over() && s.sleepers.first().is_none_or(|(at, _)| *at > turns::now());
            shared = turns::wait_while(&self.shared, &self.over, shared, Some(WATCH), waits);
        }
    }

    fn work(&self, slots: &[Mutex<Option<Box<dyn Runnable>>>]) {
        let mut shared = self.lock();
        loop {
            if shared.over() {
                return;
            }
            let Some(task) = shared.next() else {
                if shared.stands_still() {
                    drop(shared);
                    self.fail(RunError::Internal {
                        node: "scheduler".into(),
                        message: "all tasks wait for one another".into(),
                    });
                    return;
                }
                let idle = |s: &mut Shared| !s.over() && s.ready.is_empty() && !s.stands_still();
                shared = turns::wait_while(&self.shared, &self.work, shared, None, idle);
                continue;
            };
            shared.tasks[task].1 = State::Running;
            shared.running += 1;
            drop(shared);

            turns::pass();
            let step = Self::step(&slots[task]);

            shared = self.lock();
            shared.running -= 1;
            match step {
                Ok(Step::Again) => shared.make_ready(task),
                Ok(Step::Later) => shared.make_ready_at(task, 0),
                Ok(Step::Blocked) if shared.tasks[task].1 == State::Rewoken => shared.make_ready(task),
                Ok(Step::Sleep(_)) if shared.tasks[task].1 == State::Rewoken => shared.make_ready(task),
                Ok(Step::Blocked) => shared.tasks[task].1 = State::Blocked,
                Ok(Step::Sleep(time)) => {
                    shared.tasks[task].1 = State::Blocked;
                    shared.sleepers.insert((turns::now() + time, task));
                }
                Ok(Step::Done) => {
                    shared.tasks[task].1 = State::Done;
                    shared.left -= 1;
                }
                Err(failure) => {
                    // Under the same lock that counts it out: the others, with nothing left to do, mustn't take it for a standstill.
                    shared.failure.get_or_insert(failure);
                    drop(shared);
                    self.halt();
                    return;
                }
            }
            if shared.over() || shared.running == 0 {
                // The end, or a standstill for the others to see.
                self.work.notify_all();
                self.over.notify_all();
            }
        }
    }

    fn step(slot: &Mutex<Option<Box<dyn Runnable>>>) -> Result<Step, RunError> {
        let mut slot = slot.lock().unwrap_or_else(|e| e.into_inner());
        let Some(task) = slot.as_mut() else { return Ok(Step::Done) };
        let step = catch_unwind(AssertUnwindSafe(|| task.step()));
        let step = step.unwrap_or_else(|panic| Err(broke_down(task.name(), panic.as_ref())));
        if !matches!(step, Ok(Step::Again | Step::Later | Step::Blocked | Step::Sleep(_))) {
            *slot = None;
        }
        step
    }

    /// Stops everything; the first cause stays.
    fn fail(&self, failure: RunError) {
        // In this order: a connector that sees the flag and gives up mustn't become the cause.
        self.lock().failure.get_or_insert(failure);
        self.halt();
    }

    fn halt(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.work.notify_all();
        self.over.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // The lock is never held while foreign code runs, so what it guards is whole even if a thread panicked.
        self.shared.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// What a panic says, as an error.
pub(crate) fn broke_down(node: &str, panic: &(dyn Any + Send)) -> RunError {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
    let message = message.unwrap_or("it panicked without a message").to_owned();
    RunError::Internal { node: node.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    struct Count(usize, Step);

    impl Runnable for Count {
        fn step(&mut self) -> Result<Step, RunError> {
            if self.0 == 0 {
                return Ok(self.1);
            }
            self.0 -= 1;
            Ok(Step::Again)
        }

        fn name(&self) -> &str {
            "count"
        }

        fn stage(&self) -> usize {
            0
        }
    }

    struct Panics;

    impl Runnable for Panics {
        fn step(&mut self) -> Result<Step, RunError> {
            panic!("boom")
        }

        fn name(&self) -> &str {
            "panics"
        }

        fn stage(&self) -> usize {
            0
        }
    }

    #[test]
    fn tasks_run_to_their_end() {
        let tasks = (0..10).map(|n| Box::new(Count(n * 10, Step::Done)) as Box<dyn Runnable>).collect();
        assert_eq!(Scheduler::new().run(tasks, 3, &AtomicBool::new(false)), Ok(()));
    }

    /// Says once that it does much at once, and notes when it is its turn.
    struct Notes(usize, Option<Step>, Arc<Mutex<Vec<usize>>>);

    impl Runnable for Notes {
        fn step(&mut self) -> Result<Step, RunError> {
            if let Some(step) = self.1.take() {
                return Ok(step);
            }
            self.2.lock().unwrap().push(self.0);
            Ok(Step::Done)
        }

        fn name(&self) -> &str {
            "notes"
        }

        fn stage(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn who_does_much_at_once_goes_last() {
        let turns = Arc::<Mutex<Vec<usize>>>::default();
        let later = [None, Some(Step::Again), Some(Step::Later), Some(Step::Later), None];
        let tasks = later.into_iter().enumerate();
        let tasks = tasks.map(|(stage, first)| Box::new(Notes(stage, first, turns.clone())) as Box<dyn Runnable>);
        assert_eq!(Scheduler::new().run(tasks.collect(), 1, &AtomicBool::new(false)), Ok(()));
        assert_eq!(*turns.lock().unwrap(), [4, 1, 0, 3, 2]);
    }

    /// A task that says how many steps it made when another one's turn came.
    struct Counts(Arc<AtomicUsize>, usize);

    impl Runnable for Counts {
        fn step(&mut self) -> Result<Step, RunError> {
            self.1 -= 1;
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(if self.1 == 0 { Step::Done } else { Step::Again })
        }

        fn name(&self) -> &str {
            "counts"
        }

        fn stage(&self) -> usize {
            0
        }
    }

    /// Waits for its turn.
    struct Waits(Arc<AtomicUsize>, Option<Step>, Arc<AtomicUsize>);

    impl Runnable for Waits {
        fn step(&mut self) -> Result<Step, RunError> {
            self.2.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
            Ok(self.1.take().unwrap_or(Step::Done))
        }

        fn name(&self) -> &str {
            "waits"
        }

        fn stage(&self) -> usize {
            1
        }
    }

    #[test]
    fn who_does_much_at_once_has_its_turn_though_others_go_on() {
        let (steps, seen) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let tasks: Vec<Box<dyn Runnable>> = vec![
            Box::new(Counts(steps.clone(), 10_000)),
            Box::new(Waits(steps.clone(), Some(Step::Later), seen.clone())),
        ];
        assert_eq!(Scheduler::new().run(tasks, 1, &AtomicBool::new(false)), Ok(()));
        let seen = seen.load(Ordering::Relaxed);
        assert!((200..400).contains(&seen), "its turn came after {seen} steps");
    }

    #[test]
    fn a_standstill_is_an_error() {
        let tasks: Vec<Box<dyn Runnable>> = vec![Box::new(Count(3, Step::Blocked)), Box::new(Count(5, Step::Done))];
        let error = Scheduler::new().run(tasks, 2, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("wait for one another"), "{error}");
    }

    #[test]
    fn a_panic_is_an_error() {
        let error = Scheduler::new().run(vec![Box::new(Panics)], 2, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.to_string(), "`panics` broke down: boom");
    }

    #[test]
    fn cancellation_stops_a_task_that_never_ends() {
        let cancelled = AtomicBool::new(true);
        let tasks: Vec<Box<dyn Runnable>> = vec![Box::new(Count(usize::MAX, Step::Done))];
        assert_eq!(Scheduler::new().run(tasks, 1, &cancelled), Err(RunError::Cancelled));
    }
}
