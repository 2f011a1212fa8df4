//! Goes where a path leads: by one call of the kernel if it can, else step by step.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use jaato_types::Result;
use jaato_types::files::FileKind;
use rustix::fs::{OFlags, fstat};
use rustix::io::Errno;

use super::asked::Asked;
use super::limits::RACES_MAX;
use super::place::Place;
use super::roots::Roots;
use super::steps::{Last, Missing, Steps};
use crate::errors::{self, Verb};
use crate::platform::{Facts, PASS_THROUGH, Wait, open_beneath};

/// How a file is opened to be read: a pipe makes nobody wait, and no terminal becomes ours.
const TO_READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl Roots {
    /// Opens a file to read it, with its facts. What is no file is refused.
    pub(crate) fn open_file(&self, asked: &Asked, verb: Verb) -> Result<(OwnedFd, Facts)> {
        let flags = if asked.wants_folder { TO_READ | OFlags::DIRECTORY } else { TO_READ };
        let file = self.open_asked(asked, flags, verb)?;
        let stat = fstat(&file).map_err(|errno| errors::failed(verb, &asked.shown(), errno))?;
        let facts = Facts::from(&stat);
        if facts.kind != FileKind::File {
            return Err(errors::no_file(verb, &asked.shown(), facts.kind));
        }
        Ok((file, facts))
    }

    /// Opens a file if nothing has to be waited for.
    pub(crate) fn open_at_once(&self, asked: &Asked) -> Option<(OwnedFd, Facts)> {
        let file = self.reach_at_once(asked, TO_READ)?;
        let facts = Facts::from(&fstat(&file).ok()?);
        (facts.kind == FileKind::File).then_some((file, facts))
    }

    /// Tells what is there if nothing has to be waited for.
    pub(crate) fn look_at_once(&self, asked: &Asked) -> Option<Facts> {
        let file =
            self.reach_at_once(asked, PASS_THROUGH - OFlags::DIRECTORY - OFlags::NOFOLLOW)?;
        Some(Facts::from(&fstat(&file).ok()?))
    }

    fn reach_at_once(&self, asked: &Asked, flags: OFlags) -> Option<OwnedFd> {
        let (root, used) = self.beneath(asked).filter(|_| !asked.wants_folder)?;
        let rest = rest(asked, used);
        open_beneath(&*self.get(root).handle, &rest, flags, Wait::MustNot)?.ok()
    }

    /// Tells what is there, links followed.
    pub(crate) fn look(&self, asked: &Asked, verb: Verb) -> Result<Facts> {
        let failed = |errno| errors::failed(verb, &asked.shown(), errno);
        if let Some((root, used)) = self.beneath(asked) {
            let flags = PASS_THROUGH - OFlags::NOFOLLOW;
            let flags = if asked.wants_folder { flags } else { flags - OFlags::DIRECTORY };
            let rest = rest(asked, used);
            if let Some(opened) = open_beneath(&*self.get(root).handle, &rest, flags, Wait::May) {
                let stat = opened.and_then(|file| fstat(&file)).map_err(failed)?;
                return Ok(Facts::from(&stat));
            }
        }
        for _ in 0..RACES_MAX {
            let place = self.find(asked, Last::Follow, verb)?;
            let facts = place.facts().map_err(failed)?;
            if facts.kind == FileKind::Link {
                continue;
            }
            if asked.wants_folder && facts.kind != FileKind::Folder {
                return Err(failed(Errno::NOTDIR));
            }
            return Ok(facts);
        }
        Err(errors::keeps_changing(verb, &asked.shown()))
    }

    /// Goes to a place step by step.
    pub(crate) fn find(&self, asked: &Asked, last: Last, verb: Verb) -> Result<Place> {
        Steps::new(self, asked, verb, Missing::Fail).reach(last)
    }

    /// Goes to a name that is to be made or exchanged. What is there may be a link with
    /// [`Last::Follow`] too, the first time that it is looked for: who opens it without following
    /// sees that, and looks by [`Self::find_target`].
    pub(crate) fn find_name(
        &self,
        asked: &Asked,
        last: Last,
        missing: Missing,
        verb: Verb,
    ) -> Result<Place> {
        let place = match self.find_fast(asked, verb) {
            Some(place) => place?,
            None => Steps::new(self, asked, verb, missing).reach(last)?,
        };
        self.check_writable(verb, &place)?;
        Ok(place)
    }

    /// Goes to where a link leads that is to be written through.
    pub(crate) fn find_target(&self, asked: &Asked, missing: Missing, verb: Verb) -> Result<Place> {
        let place = Steps::new(self, asked, verb, missing).reach(Last::Follow)?;
        self.check_writable(verb, &place)?;
        Ok(place)
    }

    /// As far as the kernel goes in one call; the last name may still be a link. None where steps
    /// are needed.
    fn find_fast(&self, asked: &Asked, verb: Verb) -> Option<Result<Place>> {
        let (root, used) = self.beneath(asked)?;
        let (name, folders) = asked.parts[used..].split_last()?;
        let handle = &self.get(root).handle;
        let place = |dir| Place {
            root,
            dir,
            name: Some(name.clone()),
            above: Vec::new(),
            shown: asked.shown(),
        };
        if folders.is_empty() {
            return Some(Ok(place(Arc::clone(handle))));
        }
        let folders: PathBuf = folders.iter().collect();
        match open_beneath(&**handle, &folders, PASS_THROUGH - OFlags::NOFOLLOW, Wait::May)? {
            Ok(dir) => Some(Ok(place(Arc::new(dir)))),
            // Steps may make it, and tell better what it is.
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(errno) => Some(Err(errors::failed(verb, &asked.shown(), errno))),
        }
    }

    /// Goes into a folder, through links, step by step; `dir` is the folder itself, open to be
    /// passed through.
    pub(crate) fn open_folder_place(&self, asked: &Asked, verb: Verb) -> Result<Place> {
        let mut inside = asked.clone();
        // A name more makes the last folder one on the way.
        inside.parts.push(".".into());
        let place = Steps::new(self, &inside, verb, Missing::Fail).reach(Last::Stay)?;
        Ok(Place { name: None, shown: asked.shown(), ..place })
    }

    /// Opens a folder to list it.
    pub(crate) fn open_folder(&self, asked: &Asked, verb: Verb) -> Result<OwnedFd> {
        self.open_asked(asked, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK, verb)
    }

    fn open_asked(&self, asked: &Asked, flags: OFlags, verb: Verb) -> Result<OwnedFd> {
        let failed = |errno| errors::failed(verb, &asked.shown(), errno);
        if let Some((root, used)) = self.beneath(asked) {
            let rest = rest(asked, used);
            if let Some(opened) = open_beneath(&*self.get(root).handle, &rest, flags, Wait::May) {
                return opened.map_err(failed);
            }
        }
        for _ in 0..RACES_MAX {
            let place = self.find(asked, Last::Follow, verb)?;
            match place.open(flags) {
                Err(Errno::LOOP | Errno::NOTDIR) if is_link(&place) => {}
                other => return other.map_err(failed),
            }
        }
        Err(errors::keeps_changing(verb, &asked.shown()))
    }
}

fn is_link(place: &Place) -> bool {
    place.facts().is_ok_and(|facts| facts.kind == FileKind::Link)
}

fn rest(asked: &Asked, used: usize) -> PathBuf {
    let rest: PathBuf = asked.parts[used..].iter().collect();
    if rest.as_os_str().is_empty() { PathBuf::from(".") } else { rest }
}
