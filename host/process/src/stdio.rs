//! Opens a command's input and output.

use std::io::{self, IsTerminal as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::fcntl::{OFlag, open as open_file};
use nix::sys::stat::Mode;

use crate::command::{ChildCommand, ErrorOutput, StandardInput, StandardOutput};

/// The ends of pipes that the host keeps.
#[derive(Debug, Default)]
pub(crate) struct NearEnds {
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
}

/// The descriptors for the command. A missing one is `/dev/null`.
#[derive(Debug, Default)]
pub(crate) struct FarEnds {
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
    pub descriptor3: Option<OwnedFd>,
}

/// Opens a terminal by its path, without making it the controlling terminal, for
/// [`ChildCommand::terminal`](crate::ChildCommand::terminal).
///
/// # Errors
/// The system's error, or `ENOTTY` if the path is not a terminal.
pub fn open_terminal(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let descriptor = open_file(path, flags, Mode::empty())?;
    if !descriptor.is_terminal() {
        return Err(nix::errno::Errno::ENOTTY.into());
    }
    // Non-blocking mode was only for opening. Programs on it must read as usual.
    nix::fcntl::fcntl(&descriptor, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_RDWR))?;
    Ok(descriptor)
}

/// Opens both sides. Other children of the host inherit none of them.
pub(crate) fn open_stdio(command: ChildCommand) -> io::Result<(NearEnds, FarEnds)> {
    let mut near = NearEnds::default();
    let mut far = FarEnds { descriptor3: command.descriptor3, ..FarEnds::default() };
    if let Some(terminal) = command.terminal {
        (far.stdin, far.stdout) = (Some(terminal.try_clone()?), Some(terminal.try_clone()?));
        far.stderr = Some(terminal);
        return Ok((near, far));
    }
    far.stdin = match command.stdin {
        StandardInput::Null => None,
        StandardInput::Descriptor(descriptor) => Some(descriptor),
        StandardInput::Piped => {
            let (reader, writer) = io::pipe()?;
            near.stdin = Some(writer.into());
            Some(reader.into())
        }
    };
    (near.stdout, far.stdout) = open_output(command.stdout)?;
    (near.stderr, far.stderr) = match command.stderr {
        ErrorOutput::Merged => (None, far.stdout.as_ref().map(OwnedFd::try_clone).transpose()?),
        ErrorOutput::Separate(output) => open_output(output)?,
    };
    Ok((near, far))
}

fn open_output(output: StandardOutput) -> io::Result<(Option<OwnedFd>, Option<OwnedFd>)> {
    Ok(match output {
        StandardOutput::Null => (None, None),
        StandardOutput::Descriptor(descriptor) => (None, Some(descriptor)),
        StandardOutput::Piped => {
            let (reader, writer) = io::pipe()?;
            (Some(reader.into()), Some(writer.into()))
        }
    })
}
