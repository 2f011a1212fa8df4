//! Tests the registry with fake keepers.

use std::future::{pending, ready};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use serde_json::json;

use super::*;

/// The requests to a keeper, in order.
type AskedRequests = Arc<Mutex<Vec<String>>>;

/// How a keeper answers.
#[derive(Clone, Copy, PartialEq)]
enum KeeperBehaviour {
    Willing,
    Refuses,
    Panics,
    Hangs,
}

struct FakeKeeper {
    asked: AskedRequests,
    manner: KeeperBehaviour,
    is_dead: Arc<AtomicBool>,
}

impl ResourceKeeper for FakeKeeper {
    fn request_action(&self, request: ResourceRequest) -> BoxFuture<'static, Result<Value, Error>> {
        let ResourceRequest { action, name, number, .. } = request;
        self.asked.lock().push(format!("{action:?} {name} {number}"));
        match self.manner {
            KeeperBehaviour::Willing if action == ResourceAction::Close => {
                Box::pin(ready(Ok(Value::Null)))
            }
            KeeperBehaviour::Willing => Box::pin(ready(Ok(json!({ "of": name })))),
            KeeperBehaviour::Refuses => Box::pin(ready(Err(Error::failed("it is stuck")))),
            KeeperBehaviour::Panics => Box::pin(async { panic!("it is broken") }),
            KeeperBehaviour::Hangs => Box::pin(pending()),
        }
    }

    fn end_error(&self) -> Option<Error> {
        self.is_dead.load(Relaxed).then(|| Error::new(ErrorKind::PluginCrashed, "it was killed"))
    }
}

#[derive(Default)]
struct ResourcesFixture {
    resources: EnvironmentResources,
    asked: AskedRequests,
    is_dead: Arc<AtomicBool>,
}

impl ResourcesFixture {
    fn entry(&self, name: &str, session: &str, manner: KeeperBehaviour) -> ResourceEntry {
        let facts = ResourceFacts {
            name: name.to_owned(),
            plugin: "tool-moon".to_owned(),
            ..ResourceFacts::default()
        };
        let (asked, is_dead) = (Arc::clone(&self.asked), Arc::clone(&self.is_dead));
        let keeper = Arc::new(FakeKeeper { asked, manner, is_dead });
        ResourceEntry { facts, number: 1, session: SessionId::from(session), keeper }
    }

    async fn set(&self, name: &str, session: &str, manner: KeeperBehaviour) -> ResourceCloseAnswer {
        self.resources.set(self.entry(name, session, manner)).await.unwrap()
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }

    fn names(&self) -> Vec<String> {
        self.resources.list().into_iter().map(|facts| facts.name).collect()
    }
}

fn test_session() -> SessionId {
    SessionId::from("one")
}

#[tokio::test(start_paused = true)]
async fn resources_close_in_reverse_order_even_if_some_fail_or_hang() {
    let rig = ResourcesFixture::default();
    for (name, manner) in [
        ("a", KeeperBehaviour::Willing),
        ("b", KeeperBehaviour::Refuses),
        ("c", KeeperBehaviour::Panics),
        ("d", KeeperBehaviour::Hangs),
        ("e", KeeperBehaviour::Willing),
    ] {
        rig.set(name, "one", manner).await;
    }
    let failed = rig.resources.close().await;
    assert_eq!(rig.asked(), ["Close e 1", "Close d 1", "Close c 1", "Close b 1", "Close a 1"]);
    assert_eq!(failed.len(), 3, "{failed:?}");
    assert_eq!(
        failed[0],
        "the resource `d` of plugin `tool-moon` was not closed: it took more than 2000 ms"
    );
    assert!(failed[1].contains("`c`") && failed[1].contains("panic"), "{failed:?}");
    assert!(failed[2].ends_with("it is stuck"), "{failed:?}");
    assert_eq!(rig.names(), [""; 0]);
    // Sessions may enter it again.
    rig.set("a", "one", KeeperBehaviour::Willing).await;
}

#[tokio::test(start_paused = true)]
async fn many_hanging_resources_close_within_one_common_limit() {
    let rig = ResourcesFixture::default();
    for number in 0..RESOURCES_MAX {
        rig.set(&format!("r{number}"), "one", KeeperBehaviour::Hangs).await;
    }
    let too_many =
        rig.resources.set(rig.entry("more", "one", KeeperBehaviour::Willing)).await.unwrap_err();
    assert_eq!(too_many.kind, ErrorKind::LimitReached);
    let begun = Instant::now();
    assert_eq!(rig.resources.close().await.len(), RESOURCES_MAX);
    let took = begun.elapsed();
    assert!(took < CLOSE_ALL_MAX * 3, "{took:?}");
}

#[tokio::test]
async fn session_end_closes_only_its_own_resources_and_refuses_new_ones() {
    let rig = ResourcesFixture::default();
    rig.set("a", "one", KeeperBehaviour::Willing).await;
    rig.set("b", "two", KeeperBehaviour::Willing).await;
    rig.set("c", "one", KeeperBehaviour::Willing).await;
    assert_eq!(rig.resources.close_session_resources(&test_session()).await, [""; 0]);
    assert_eq!(rig.asked(), ["Close c 1", "Close a 1"]);
    assert_eq!(rig.names(), ["b"]);
    let refused =
        rig.resources.set(rig.entry("d", "one", KeeperBehaviour::Willing)).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    rig.set("d", "two", KeeperBehaviour::Willing).await;
}

#[tokio::test]
async fn setting_a_resource_again_closes_the_previous_one() {
    let rig = ResourcesFixture::default();
    assert_eq!(rig.set("a", "one", KeeperBehaviour::Refuses).await, ResourceCloseAnswer::default());
    let closed = rig.set("a", "one", KeeperBehaviour::Willing).await;
    assert!(closed.found && closed.problem.unwrap().contains("it is stuck"));
    assert_eq!(rig.asked(), ["Close a 1"]);
    assert_eq!(rig.names(), ["a"]);
    assert_eq!(rig.resources.remove("a").await, ResourceCloseAnswer { found: true, problem: None });
    assert_eq!(rig.resources.remove("a").await, ResourceCloseAnswer::default());
    for name in ["", "a\nb", &"x".repeat(NAME_BYTES_MAX + 1)] {
        let refused = rig.resources.set(rig.entry(name, "one", KeeperBehaviour::Willing)).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::InvalidArguments);
    }
    rig.set(&"x".repeat(NAME_BYTES_MAX), "one", KeeperBehaviour::Willing).await;
}

#[tokio::test]
async fn concurrent_callers_create_one_resource_and_a_failure_leaves_none() {
    let rig = ResourcesFixture::default();
    let (made, session) = (AtomicUsize::new(0), test_session());
    let make = || {
        rig.resources.get_or_create("a", &session, async {
            tokio::task::yield_now().await;
            match made.fetch_add(1, Relaxed) {
                0 => Err(Error::failed("not yet")),
                _ => Ok(rig.entry("a", "one", KeeperBehaviour::Willing)),
            }
        })
    };
    assert_eq!(make().await.unwrap_err().message, "not yet");
    assert!(rig.names().is_empty());
    let (first, second, third) = tokio::join!(make(), make(), make());
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    assert_eq!((made.load(Relaxed), rig.names()), (2, vec!["a".to_owned()]));
}

#[tokio::test]
async fn resource_of_a_crashed_worker_is_reported_lost_and_created_again() {
    let rig = ResourcesFixture::default();
    rig.set("a", "one", KeeperBehaviour::Willing).await;
    let call = || ResourceCall { name: "a".to_owned(), ..ResourceCall::default() };
    assert_eq!(rig.resources.call(call()).await.unwrap(), json!({ "of": "a" }));
    rig.is_dead.store(true, Relaxed);
    let gone = rig.resources.call(call()).await.unwrap_err();
    assert_eq!(gone.kind, ErrorKind::PluginCrashed);
    assert!(gone.message.ends_with("was lost with its instance: it was killed"), "{gone}");
    assert_eq!((rig.resources.get("a"), rig.names()), (None, Vec::new()));
    let anew = ResourcesFixture::default();
    let make = ready(Ok(anew.entry("a", "one", KeeperBehaviour::Willing)));
    rig.resources.get_or_create("a", &test_session(), make).await.unwrap();
    assert!(rig.resources.call(call()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn resources_that_wait_for_each_other_end_with_a_timeout() {
    let (rig, one) = (ResourcesFixture::default(), test_session());
    let make = |own: &'static str, wanted: &'static str| {
        let (rig, one) = (&rig, &one);
        rig.resources.get_or_create(own, one, async move {
            tokio::task::yield_now().await;
            let made = ready(Ok(rig.entry(wanted, "one", KeeperBehaviour::Willing)));
            rig.resources.get_or_create(wanted, one, made).await?;
            Ok(rig.entry(own, "one", KeeperBehaviour::Willing))
        })
    };
    let begun = Instant::now();
    let (first, second) = tokio::join!(make("a", "b"), make("b", "a"));
    let failed: Vec<_> = [first, second].into_iter().filter_map(Result::err).collect();
    let kinds: Vec<_> = failed.into_iter().map(|error| error.kind).collect();
    assert_eq!(kinds, [ErrorKind::Timeout], "one is ended, and the other makes both");
    assert_eq!(begun.elapsed(), CREATE_MAX);
}
