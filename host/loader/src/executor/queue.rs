//! The executor's queue and the threads that empty it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use async_task::Runnable;
use jaato_types::PluginName;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::runtime::Handle;

use super::TaskFacts;
use super::guest::{Disabled, Guest};
use super::jobs::{Admitted, JOBS_LOST_MAX, Job, JobState, Jobs};
use super::slot::{self, Slot};
use super::watchdog::{self, Bell};
use crate::fence::bury;
use crate::live::Live;
use crate::watch::{Misdeed, Report, Watch};

type Task = Runnable<TaskFacts>;

/// Waits for messages and does what they ask for; false at their end.
pub(super) type Source = Box<dyn FnMut() -> bool + Send>;

/// Threads beyond those that are wanted which may wait for tasks: others took the places of some
/// that did blocking work, and will be wanted again when those do more.
const SPARE_MAX: usize = 2;

/// How long one waits before it ends.
const SPARE_IDLE_MAX: Duration = Duration::from_secs(10);

/// What handles, tasks, threads and the watchdog of one executor share.
pub(super) struct Shared {
    pub(super) runtime: Handle,
    pub(super) watch: Arc<dyn Watch>,
    pub(super) jobs: Jobs,
    pub(super) live: Live,
    pub(super) bell: Bell,
    queue: Mutex<Queue>,
    ready: Condvar,
    hop_guest: OnceLock<Arc<Guest>>,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// Tasks of plugins that poll too often; they wait for the second to end.
    parked: Vec<Task>,
    /// Threads that work, without those that are written off.
    threads: Vec<Arc<Slot>>,
    threads_wanted: usize,
    /// What a thread without a task reads. Away while one does.
    source: Option<Source>,
    guests: Vec<Weak<Guest>>,
    idle: usize,
    threads_started: usize,
    watched: bool,
    closing: bool,
}

impl Shared {
    pub(super) fn new(threads_wanted: usize, runtime: Handle, watch: Arc<dyn Watch>) -> Self {
        Self {
            jobs: Jobs::new(Arc::clone(&watch)),
            runtime,
            watch,
            live: Live::default(),
            bell: Bell::default(),
            queue: Mutex::new(Queue { threads_wanted, ..Queue::default() }),
            ready: Condvar::new(),
            hop_guest: OnceLock::new(),
        }
    }

    pub(super) fn add_guest(&self, name: PluginName) -> Arc<Guest> {
        let guest = Arc::new(Guest::new(name));
        let mut queue = self.queue.lock();
        queue.guests.retain(|guest| guest.strong_count() > 0);
        queue.guests.push(Arc::downgrade(&guest));
        guest
    }

    pub(super) fn hop_guest(&self) -> Arc<Guest> {
        Arc::clone(self.hop_guest.get_or_init(|| self.add_guest(PluginName::from("hop"))))
    }

    /// Lets the threads end when nothing is left to do. Tasks that are woken later start one again.
    pub(super) fn close(&self) {
        self.queue.lock().closing = true;
        self.ready.notify_all();
        self.jobs.close();
        self.bell.ring();
    }

    /// Takes a task that wants to be polled, or whose future is to be dropped.
    pub(super) fn push(self: &Arc<Self>, task: Task) {
        let mut queue = self.queue.lock();
        if task.metadata().guest.is_throttled() {
            queue.parked.push(task);
            return;
        }
        queue.tasks.push_back(task);
        // To wake another thread takes longer than most polls: this one takes it when it is done,
        // unless another is free before. The watchdog sees to it that it does not wait for a poll
        // that blocks.
        if queue.tasks.len() > 1 || !slot::looks_next(self.number()) {
            self.call_a_thread(queue);
        }
    }

    /// Has a thread that is without a task read from here on.
    pub(super) fn read(self: &Arc<Self>, source: Source) {
        let mut queue = self.queue.lock();
        // Who reads is beside those who poll.
        queue.threads_wanted += 1;
        queue.source = Some(source);
        self.call_a_reader(queue);
    }

    /// Has somebody read who does nothing else, if nobody does. Tells whether nobody did.
    fn call_a_reader(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) -> bool {
        let is_read = queue.source.is_none();
        if is_read || queue.closing {
            return false;
        }
        if queue.idle > 0 {
            drop(queue);
            self.ready.notify_one();
        } else if queue.threads.len() < queue.threads_wanted + SPARE_MAX {
            self.start_thread(&mut queue);
        }
        true
    }

    /// Has a thread look for tasks.
    fn call_a_thread(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        if queue.tasks.len() > queue.idle && queue.threads.len() < queue.threads_wanted {
            self.start_thread(&mut queue);
        }
        if queue.idle > 0 {
            drop(queue);
            self.ready.notify_one();
        }
    }

    /// Has a thread take what waits for the end of the calling thread's poll.
    pub(super) fn hasten(self: &Arc<Self>) {
        let queue = self.queue.lock();
        if !queue.tasks.is_empty() {
            self.call_a_thread(queue);
        }
    }

    /// Tells executors apart while they live.
    fn number(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Takes blocking work of a plugin; false where too much of it waits.
    ///
    /// What a poll hands over is kept for its end: a thread that has nothing else to do then runs
    /// it itself, as to wake another one takes longer than most of such work.
    pub(super) fn submit(&self, guest: &Arc<Guest>, job: Job) -> bool {
        let job = match Jobs::admit(guest, job) {
            Admitted::ToRun(job) => job,
            Admitted::Waits => return true,
            Admitted::Refused => return false,
        };
        match slot::keep_job(self.number(), guest, job) {
            Some(job) => self.jobs.start(guest, job),
            None => true,
        }
    }

    /// Runs what a poll has handed over, in the pool where other tasks wait. False when another
    /// thread has taken this one's place meanwhile.
    fn work_off(self: &Arc<Self>, slot: &Arc<Slot>, (guest, job): (Arc<Guest>, Job)) -> bool {
        let mut queue = self.queue.lock();
        if !queue.tasks.is_empty() || slot.is_written_off() {
            drop(queue);
            self.jobs.start(&guest, job);
            return true;
        }
        // Tasks that come while it blocks are another's.
        queue.threads.retain(|thread| !Arc::ptr_eq(thread, slot));
        self.call_a_reader(queue);
        self.jobs.run(&guest, job);
        let mut queue = self.queue.lock();
        let has_room = queue.threads.len() < queue.threads_wanted + SPARE_MAX && !queue.closing;
        if has_room {
            queue.threads.push(Arc::clone(slot));
        } else if !queue.tasks.is_empty() {
            // What the job's end woke.
            self.call_a_thread(queue);
        }
        has_room
    }

    fn start_thread(self: &Arc<Self>, queue: &mut Queue) {
        let slot = Arc::new(Slot::new(queue.threads_started + 1, self.number()));
        let name = format!("jaato-plugin-{}", slot.number);
        let (shared, own) = (Arc::clone(self), Arc::clone(&slot));
        match thread::Builder::new().name(name).spawn(move || shared.work(&own)) {
            Ok(_) => {
                queue.threads_started += 1;
                queue.threads.push(slot);
            }
            // The task waits in the queue; the next one that comes tries again.
            Err(error) => self.watch.trouble(&format!("cannot start a plugin thread: {error}")),
        }
        if !queue.watched && !queue.threads.is_empty() {
            queue.watched = watchdog::start(self);
        }
    }

    fn work(self: &Arc<Self>, slot: &Arc<Slot>) {
        slot.adopt();
        while let Some(task) = self.next_task(slot) {
            self.run(slot, task);
            if let Some(job) = slot.take_job()
                && !self.work_off(slot, job)
            {
                Slot::leave();
                return self.jobs.work();
            }
        }
    }

    fn next_task(&self, slot: &Arc<Slot>) -> Option<Task> {
        let mut queue = self.queue.lock();
        loop {
            if slot.is_written_off() {
                // Its place is taken.
                return None;
            }
            if let Some(task) = queue.tasks.pop_front() {
                return Some(task);
            }
            if queue.closing {
                queue.threads.retain(|thread| !Arc::ptr_eq(thread, slot));
                self.bell.ring();
                return None;
            }
            if let Some(source) = queue.source.take() {
                drop(queue);
                let source = self.read_on(source);
                queue = self.queue.lock();
                queue.source = source;
                continue;
            }
            queue.idle += 1;
            let is_spare = |queue: &mut Queue| {
                let has_work = !queue.tasks.is_empty() || queue.source.is_some();
                !has_work && !queue.closing && !slot.is_written_off()
            };
            self.ready.wait_while_for(&mut queue, is_spare, SPARE_IDLE_MAX);
            queue.idle -= 1;
            if is_spare(&mut queue) && queue.threads.len() > queue.threads_wanted {
                queue.threads.retain(|thread| !Arc::ptr_eq(thread, slot));
                return None;
            }
        }
    }

    /// Reads once, and gives the source back; none at its end. The tasks that messages wake are for
    /// the calling thread, which looks next; while it polls nobody reads, until the watchdog finds
    /// that this goes on.
    fn read_on(&self, mut source: Source) -> Option<Source> {
        let read = slot::before_looking(|| catch_unwind(AssertUnwindSafe(&mut source)));
        match read {
            Ok(goes_on) => goes_on.then_some(source),
            Err(payload) => {
                self.watch.trouble("reading messages panicked; nobody reads them any more");
                bury(payload);
                None
            }
        }
    }

    fn run(&self, slot: &Arc<Slot>, task: Task) {
        let guest = Arc::clone(&task.metadata().guest);
        if task.metadata().note_poll() {
            guest.count_repoll();
        }
        slot.begin(&guest);
        self.bell.ring_if_asleep();
        let done = catch_unwind(AssertUnwindSafe(|| {
            if guest.is_disabled() {
                // Drops the future without another poll; whoever waits gets none.
                drop(task);
            } else {
                task.run();
            }
        }));
        slot.end();
        if let Err(payload) = done {
            let name = guest.name();
            self.watch
                .trouble(&format!("a task of the plugin `{name}` panicked outside its fence"));
            bury(payload);
        }
    }

    /// Gives up jobs that go on although their context has ended, and tells of it.
    pub(super) fn give_up(&self, guest: &Arc<Guest>, jobs: &[Arc<JobState>]) {
        let Some(lost) = self.jobs.give_up(guest, jobs) else { return };
        let disabled = lost > JOBS_LOST_MAX;
        if disabled {
            guest.disable(Disabled::ByJobs);
        }
        let misdeed = Misdeed::IgnoresCancel { lost };
        let plugin = guest.name().clone();
        self.watch.misbehaved(&Report { plugin, misdeed, strikes: guest.strikes(), disabled });
    }

    // What follows is for the watchdog.

    pub(super) fn threads(&self) -> Vec<Arc<Slot>> {
        self.queue.lock().threads.clone()
    }

    /// Tells whether the watchdog has nothing left to watch for good.
    pub(super) fn unwatch_if_over(&self) -> bool {
        let mut queue = self.queue.lock();
        let over = queue.closing && queue.threads.is_empty() && queue.parked.is_empty();
        queue.watched = !over;
        over
    }

    pub(super) fn has_parked(&self) -> bool {
        !self.queue.lock().parked.is_empty()
    }

    /// Has others do what waits for the end of a poll that does not come to it.
    pub(super) fn relieve(self: &Arc<Self>, slot: &Slot) {
        if let Some((guest, job)) = slot.take_job() {
            self.jobs.start(&guest, job);
        }
        self.hasten();
    }

    /// Has another thread read where who read is at something that goes on. Tells whether nobody
    /// did.
    pub(super) fn see_to_reading(self: &Arc<Self>) -> bool {
        self.call_a_reader(self.queue.lock())
    }

    /// Gives up a thread that a plugin blocks, and starts another in its place.
    pub(super) fn replace(self: &Arc<Self>, slot: &Arc<Slot>) {
        let mut queue = self.queue.lock();
        slot.write_off();
        queue.threads.retain(|thread| !Arc::ptr_eq(thread, slot));
        if !queue.closing || !queue.tasks.is_empty() {
            self.start_thread(&mut queue);
        }
    }

    /// Begins another second; returns the plugins that were throttled in the one that ends.
    pub(super) fn begin_second(self: &Arc<Self>) -> Vec<Arc<Guest>> {
        let mut queue = self.queue.lock();
        let guests: Vec<_> = queue.guests.iter().filter_map(Weak::upgrade).collect();
        let throttled = guests.into_iter().filter(|guest| guest.begin_second()).collect();
        let parked = std::mem::take(&mut queue.parked);
        drop(queue);
        for task in parked {
            self.push(task);
        }
        throttled
    }
}
