//! Checks of the services `secret.*`: values belong to the plugin, are stored unchanged, and are
//! limited.

use jaato_types::secret::{
    DELETE, GET, NAME_BYTES_MAX, SECRETS_MAX, SET, SecretDeleteAnswer, SecretGetAnswer, SecretName,
    VALUE_BYTES_MAX,
};
use jaato_types::{Error, ErrorKind, Frame};

use super::HostUnderTest;
use super::body::{SharedContext, call_service, encode_frame, read_answer, read_error, run_body};

fn secret_name(name: &str) -> SecretName {
    SecretName { name: name.to_owned(), ..SecretName::default() }
}

fn frame_error(error: jaato_types::FrameError) -> Error {
    Error::failed(error.to_string())
}

async fn set_secret(context: &SharedContext, name: &str, value: &[u8]) -> Result<(), Error> {
    let asked = Frame::write_with_bytes(&secret_name(name), value).map_err(frame_error)?;
    read_answer(context.service(SET.into(), asked.into()).await).map(drop)
}

async fn get_secret(context: &SharedContext, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let answer = call_service(context, GET, &secret_name(name)).await?;
    let parsed = Frame::parse(&answer).map_err(frame_error)?;
    let found: SecretGetAnswer = parsed.json().map_err(frame_error)?;
    Ok(found.found.then(|| parsed.bytes.to_vec()))
}

async fn delete_secret(context: &SharedContext, name: &str) -> Result<bool, Error> {
    let answer = call_service(context, DELETE, &secret_name(name)).await?;
    Ok(Frame::read::<SecretDeleteAnswer>(&answer).map_err(frame_error)?.deleted)
}

pub(super) fn secrets_are_stored_and_deleted(host: &dyn HostUnderTest) {
    let values = [b"moonlight".to_vec(), Vec::new(), b"\0\xff\nline".to_vec(), vec![b'x'; 16384]];
    for value in values {
        let has = value.clone();
        let ended = run_body(host, |context| async move {
            set_secret(&context, "token of 月", b"old").await?;
            set_secret(&context, "token of 月", &value).await?;
            Ok(encode_frame(&get_secret(&context, "token of 月").await?))
        });
        assert_eq!(ended.answer, Ok(encode_frame(&Some(has))));
    }
    // Another call of the plugin sees it too.
    let ended = run_body(host, |context| async move {
        let has = get_secret(&context, "token of 月").await?.map(|value| value.len());
        let gone = [
            delete_secret(&context, "token of 月").await?,
            delete_secret(&context, "token of 月").await?,
        ];
        Ok(encode_frame(&(has, gone, get_secret(&context, "token of 月").await?)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(Some(16384), [true, false], None::<()>))));
}

pub(super) fn invalid_secret_is_refused(host: &dyn HostUnderTest) {
    let long = "k".repeat(NAME_BYTES_MAX + 1);
    for name in ["", "a\nb", "a\0", &long] {
        let name = name.to_owned();
        let ended = run_body(host, |context| async move {
            let (set, get) =
                (set_secret(&context, &name, b"1").await, get_secret(&context, &name).await);
            Ok(encode_frame(&(set.err().map(|it| it.kind), get.err().map(|it| it.kind))))
        });
        let refused = Some(ErrorKind::InvalidArguments);
        assert_eq!(ended.answer, Ok(encode_frame(&(refused, refused))));
    }
    let ended = run_body(host, |context| async move {
        set_secret(&context, "large", &[b'x'; VALUE_BYTES_MAX + 1]).await.map(|()| Vec::new())
    });
    let found = ended.answer.map_err(|frame| read_error(&frame).kind);
    assert_eq!(found, Err(ErrorKind::LimitReached));
}

pub(super) fn secret_count_is_limited(host: &dyn HostUnderTest) {
    let ended = run_body(host, |context| async move {
        for number in 0..SECRETS_MAX {
            set_secret(&context, &number.to_string(), b"1").await?;
        }
        let more = set_secret(&context, "more", b"1").await.err().map(|error| error.kind);
        set_secret(&context, "0", b"2").await?;
        delete_secret(&context, "1").await?;
        set_secret(&context, "more", b"1").await?;
        Ok(encode_frame(&(more, get_secret(&context, "0").await?)))
    });
    assert_eq!(ended.answer, Ok(encode_frame(&(Some(ErrorKind::LimitReached), Some(b"2")))));
}
