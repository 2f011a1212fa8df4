//! Checks of the services `store.*`: values belong to the plugin, are stored in full, are limited,
//! and are replaced only if the expected one exists.

use jaato_types::service::FolderAnswer;
use jaato_types::store::{
    ABSENT, BYTES_MAX, DELETE, FOLDER, GET, KEY_BYTES_MAX, LIST, SET, StoreDelete,
    StoreDeleteAnswer, StoreFolder, StoreGet, StoreKeys, StoreList, StoreOwner, StoreSet,
    StoreSetAnswer, StoreValue, VALUE_BYTES_MAX,
};
use jaato_types::{Error, ErrorKind, Frame};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::body::{SharedContext, call_service, encode_frame, read_answer, read_error, run_body};
use super::{CallResults, HostUnderTest};

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn read_frame<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    Frame::read(answer).map_err(|error| Error::failed(error.to_string()))
}

async fn set_value_if(
    context: &SharedContext,
    of: StoreOwner,
    key: &str,
    value: &[u8],
    expected: Option<&str>,
) -> Result<String, Error> {
    let request = StoreSet {
        key: key.to_owned(),
        of,
        expected: expected.map(str::to_owned),
        ..StoreSet::default()
    };
    let asked = Frame::write_with_bytes(&request, value);
    let asked = asked.map_err(|error| Error::failed(error.to_string()))?;
    let answer = read_answer(context.service(SET.into(), asked.into()).await)?;
    Ok(read_frame::<StoreSetAnswer>(&answer)?.digest)
}

async fn set_value(context: &SharedContext, key: &str, value: &[u8]) -> Result<String, Error> {
    set_value_if(context, StoreOwner::Person, key, value, None).await
}

async fn get_value(
    context: &SharedContext,
    of: StoreOwner,
    key: &str,
) -> Result<Option<Vec<u8>>, Error> {
    let answer =
        call_service(context, GET, &StoreGet { key: key.to_owned(), of, ..StoreGet::default() })
            .await?;
    let parsed = Frame::parse(&answer).map_err(|error| Error::failed(error.to_string()))?;
    let value: StoreValue = parsed.json().map_err(|error| Error::failed(error.to_string()))?;
    Ok(value.found.then(|| parsed.bytes.to_vec()))
}

async fn delete_value(
    context: &SharedContext,
    key: &str,
    expected: Option<&str>,
) -> Result<bool, Error> {
    let expected = expected.map(str::to_owned);
    let request = StoreDelete { key: key.to_owned(), expected, ..StoreDelete::default() };
    Ok(read_frame::<StoreDeleteAnswer>(&call_service(context, DELETE, &request).await?)?.deleted)
}

async fn list_values(context: &SharedContext, prefix: &str) -> Result<Vec<(String, u64)>, Error> {
    let request = StoreList { prefix: prefix.to_owned(), ..StoreList::default() };
    let keys = read_frame::<StoreKeys>(&call_service(context, LIST, &request).await?)?.keys;
    Ok(keys.into_iter().map(|found| (found.key, found.bytes)).collect())
}

#[track_caller]
fn assert_refused(ended: CallResults, kind: ErrorKind) {
    let found = ended.answer.map_err(|frame| read_error(&frame).kind);
    assert_eq!(found, Err(kind));
}

pub(super) fn values_are_stored_and_deleted(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let digest = set_value(&context, "moon", b"abc").await?;
        Ok(encode_frame(&(digest, get_value(&context, StoreOwner::Person, "moon").await?)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(ABC, Some(b"abc")))));
    // Another call of the plugin sees them too.
    let ended = run_body(host, |context| async move {
        let has = get_value(&context, StoreOwner::Person, "moon").await?;
        let taken = [
            delete_value(&context, "moon", None).await?,
            delete_value(&context, "moon", None).await?,
        ];
        Ok(encode_frame(&(has, taken, get_value(&context, StoreOwner::Person, "moon").await?)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(Some(b"abc"), [true, false], None::<()>))));
}

pub(super) fn user_and_workspace_stores_are_separate(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        set_value_if(&context, StoreOwner::Workspace, "moon", b"here", None).await?;
        let before = get_value(&context, StoreOwner::Person, "moon").await?;
        set_value(&context, "moon", b"everywhere").await?;
        let here = get_value(&context, StoreOwner::Workspace, "moon").await?;
        let mut folders = Vec::new();
        for of in [StoreOwner::Person, StoreOwner::Workspace] {
            let answer =
                call_service(&context, FOLDER, &StoreFolder { of, ..StoreFolder::default() })
                    .await?;
            folders.push(read_frame::<FolderAnswer>(&answer)?.path);
        }
        let are_apart = folders[0] != folders[1];
        let are_there = folders.iter().all(|it| std::path::Path::new(it).is_dir());
        Ok(encode_frame(&(before, here, are_apart, are_there)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(None::<()>, Some(b"here"), true, true))));
}

pub(super) fn any_text_is_a_key(host: &dyn HostUnderTest) {
    let longest = "k".repeat(KEY_BYTES_MAX);
    let keys = ["a", "A", "../../x", "a/b", ".", "\u{0}\n\"\\", "月", &longest];
    for (at, key) in keys.iter().enumerate() {
        let (key, value) = ((*key).to_owned(), vec![u8::try_from(at).unwrap_or_default()]);
        let has = value.clone();
        let ended = run_body(host, |context| async move {
            set_value(&context, &key, &value).await?;
            Ok(encode_frame(&get_value(&context, StoreOwner::Person, &key).await?))
        });
        assert_eq!(ended.answer, Ok(encode_frame(&Some(has))));
    }
    let mut sorted: Vec<_> = keys.iter().map(|key| ((*key).to_owned(), 1)).collect();
    sorted.sort();
    let ended = run_body(host, |context| async move {
        list_values(&context, "").await.map(|it| encode_frame(&it))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&sorted)));
    let ended = run_body(host, |context| async move {
        list_values(&context, "a").await.map(|it| encode_frame(&it))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&[("a", 1), ("a/b", 1)])));
}

pub(super) fn invalid_key_is_refused(host: &dyn HostUnderTest) {
    for key in [String::new(), "k".repeat(KEY_BYTES_MAX + 1), "月".repeat(KEY_BYTES_MAX / 3 + 1)] {
        let ended = run_body(host, |context| async move {
            set_value(&context, &key, b"1").await.map(|digest| encode_frame(&digest))
        });
        assert_refused(ended, ErrorKind::InvalidArguments);
    }
    for (operation, request) in [
        (GET, json!({ "key": 7 })),
        (GET, json!({ "key": "a", "of": "moonlight" })),
        (SET, json!({ "key": "a", "expected": "moonlight" })),
        (LIST, json!("a")),
        (DELETE, json!(null)),
    ] {
        let ended = run_body(host, move |context| async move {
            call_service(&context, operation, &request).await
        });
        assert_refused(ended, ErrorKind::InvalidArguments);
    }
}

pub(super) fn only_expected_value_is_replaced(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let person = StoreOwner::Person;
        let first = set_value_if(&context, person, "moon", b"abc", Some(ABSENT)).await?;
        let second = set_value_if(&context, person, "moon", b"new", Some(&first)).await?;
        let mut kinds = Vec::new();
        for expected in [ABSENT, &first] {
            let set = set_value_if(&context, person, "moon", b"lost", Some(expected)).await;
            kinds.push(set.err().map(|error| error.kind));
            let taken = delete_value(&context, "moon", Some(expected)).await;
            kinds.push(taken.err().map(|error| error.kind));
        }
        let has = get_value(&context, person, "moon").await?;
        let taken = delete_value(&context, "moon", Some(&second)).await?;
        Ok(encode_frame(&(kinds, has, taken)))
    });
    let conflicts = [Some(ErrorKind::Conflict); 4];
    assert_eq!(ended.answer, Ok(encode_frame(&(conflicts, Some(b"new"), true))));
}

pub(super) fn too_large_values_are_refused(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        set_value(&context, "large", &vec![1; VALUE_BYTES_MAX]).await?;
        let has = get_value(&context, StoreOwner::Person, "large").await?.map(|value| value.len());
        let more = set_value(&context, "large", &vec![2; VALUE_BYTES_MAX + 1]).await;
        let kind = more.err().map(|error| error.kind);
        let stays = get_value(&context, StoreOwner::Person, "large").await?;
        let first = stays.and_then(|value| value.first().copied());
        Ok(encode_frame(&(has, kind, first)))
    });
    let expected = (Some(VALUE_BYTES_MAX), Some(ErrorKind::LimitReached), Some(1));
    assert_eq!(ended.answer, Ok(encode_frame(&expected)));
}

pub(super) fn full_store_refuses_more_and_keeps_values(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        let value = vec![1; VALUE_BYTES_MAX];
        let (mut kept, mut kind) = (0, None);
        // One more than fit, because the keys take space too.
        for number in 0..=BYTES_MAX / VALUE_BYTES_MAX as u64 {
            match set_value(&context, &format!("k{number}"), &value).await {
                Ok(_) => kept += 1,
                Err(error) => kind = Some(error.kind),
            }
        }
        let listed = list_values(&context, "k").await?.len();
        // A value may be replaced by one of the same size, and freed space can be used again.
        set_value(&context, "k0", &value).await?;
        set_value(&context, "k0", b"little").await?;
        set_value(&context, "other", b"little").await?;
        Ok(encode_frame(&(kept, kind, listed)))
    });
    let fit = BYTES_MAX / VALUE_BYTES_MAX as u64 - 1;
    assert_eq!(ended.answer, Ok(encode_frame(&(fit, Some(ErrorKind::LimitReached), fit))));
}
