//! Writes output files completely or not at all.
//!
//! The content goes to a temporary file in the same folder, which then replaces the file of that name. Until then,
//! readers of the file see the old content; if the disk is full, the old file stays unchanged. Anything that is not a
//! regular file (a pipe, a device, a descriptor that is open already) is written to directly.
//!
//! A changed file of the user is flushed to disk first, so that not even a power failure loses it. Other files can be made
//! again.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// How many symbolic links are followed before the path counts as a cycle. Linux has the same limit.
const MOST_LINKS: u32 = 40;

/// The target of a path.
enum Place {
    /// A regular file, existing or not, and the metadata of an existing one.
    File(PathBuf, Option<Metadata>),
    /// A pipe, a device or an open descriptor.
    Stream(PathBuf),
}

/// Writes a file that can be made again, a pipe or a device.
///
/// # Errors
/// The write failed. The old content is unchanged, and no temporary file is left.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    match place(path)? {
        Place::File(path, old) => replace(&path, old.as_ref(), content, |_| Ok(())),
        // Append mode, because the descriptor may refer to a file that other programs have written to.
        Place::Stream(path) => OpenOptions::new().append(true).open(path)?.write_all(content),
    }
}

/// Replaces the content of a file of the user, and flushes it to disk.
///
/// # Errors
/// As for [`write()`], and if the file does not exist.
pub fn rewrite(path: &Path, content: &[u8]) -> io::Result<()> {
    match place(path)? {
        Place::File(path, Some(old)) => replace(&path, Some(&old), content, sync),
        Place::File(..) => Err(ErrorKind::NotFound.into()),
        Place::Stream(_) => Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}

fn place(path: &Path) -> io::Result<Place> {
    let path = follow(path)?;
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(found) if found.is_file() && !is_descriptor(&path) => Ok(Place::File(path, Some(found))),
        Ok(_) => Ok(Place::Stream(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Place::File(path, None)),
        Err(error) => Err(error),
    }
}

/// Follows symbolic links, even if the last target does not exist.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if is_descriptor(&path) {
            return Ok(path);
        }
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Whether a path finally leads to an open descriptor, as `/dev/stdout` does.
fn is_descriptor(path: &Path) -> bool {
    cfg!(unix) && (path.starts_with("/proc") || path.starts_with("/dev/fd"))
}

/// Replaces a file, after `finish` is done with the new one.
fn replace(
    path: &Path,
    old: Option<&Metadata>,
    content: &[u8],
    finish: impl Fn(&File) -> io::Result<()>,
) -> io::Result<()> {
    if old.is_some() {
        // A file without write permission must not be replaced either.
        OpenOptions::new().write(true).open(path)?;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // If the folder does not exist, this gives the system's own error message.
    fs::metadata(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ptx-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The permissions of every new file, which the user's umask then restricts.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The library's message would name the temporary file, which does not interest the user.
    let mut file = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    file.as_file_mut().write_all(content)?;
    if let Some(old) = old {
        keep_owner(file.as_file(), old);
        file.as_file().set_permissions(old.permissions())?;
    }
    finish(file.as_file())?;
    file.persist(path)?;
    Ok(())
}

/// Gives the file to the owner of the old one, if the system permits it. If root fixes a file of a user, the file still
/// belongs to the user.
#[cfg(unix)]
fn keep_owner(file: &File, old: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let same = |new: Metadata| (new.uid(), new.gid()) == (old.uid(), old.gid());
    if !file.metadata().is_ok_and(same) {
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) {}

/// Flushes the content to disk. Some file systems do not support this.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in a folder, sorted.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_made_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        assert_eq!(rewrite(&file, b"1").unwrap_err().kind(), ErrorKind::NotFound);
        for content in [&b"first"[..], b"2"] {
            write(&file, content).unwrap();
            assert_eq!(fs::read(&file).unwrap(), content);
        }
        rewrite(&file, b"3").unwrap();
        assert_eq!((fs::read(&file).unwrap(), names(folder.path())), (b"3".to_vec(), vec!["a".to_owned()]));
        assert!(write(folder.path(), b"1").is_err());
        let error = write(&folder.path().join("none/a"), b"1").unwrap_err();
        assert!(error.kind() == ErrorKind::NotFound && !error.to_string().contains(".tmp"), "{error}");
    }

    #[cfg(unix)]
    mod unix {
        use super::*;
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

        #[test]
        fn permissions_stay() {
            let folder = tempfile::tempdir().unwrap();
            let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().mode() & 0o7777;
            let (file, plain) = (folder.path().join("a"), folder.path().join("plain"));
            write(&file, b"1").unwrap();
            fs::write(plain, b"1").unwrap();
            assert_eq!(mode("a"), mode("plain"));
            for kept in [0o640, 0o755] {
                fs::set_permissions(&file, fs::Permissions::from_mode(kept)).unwrap();
                write(&file, b"2").unwrap();
                assert_eq!(mode("a"), kept);
            }
        }

        #[test]
        fn links_are_followed() {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            fs::create_dir(path("deep")).unwrap();
            symlink("deep/file", path("one")).unwrap();
            symlink("one", path("two")).unwrap();
            symlink("round", path("round")).unwrap();
            for content in [&b"1"[..], b"2"] {
                write(&path("two"), content).unwrap();
                assert_eq!(fs::read(path("deep/file")).unwrap(), content);
            }
            assert!(fs::symlink_metadata(path("two")).unwrap().is_symlink());
            assert!(write(&path("round"), b"1").is_err());
            assert_eq!(names(folder.path()), ["deep", "one", "round", "two"]);
        }

        #[test]
        fn devices_are_written_to() {
            let folder = tempfile::tempdir().unwrap();
            write(Path::new("/dev/null"), b"1").unwrap();
            symlink("/dev/null", folder.path().join("null")).unwrap();
            write(&folder.path().join("null"), b"1").unwrap();
            assert!(!fs::metadata("/dev/null").unwrap().is_file());
            assert!(rewrite(Path::new("/dev/null"), b"1").is_err());
            if cfg!(target_os = "linux") {
                let error = write(Path::new("/dev/full"), b"1").unwrap_err();
                assert_eq!(error.kind(), ErrorKind::StorageFull);
            }
        }

        /// A descriptor of a file that other programs have written to.
        #[cfg(target_os = "linux")]
        #[test]
        fn what_is_open_already_keeps_its_content() {
            use std::os::fd::AsRawFd;
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            let mut file = File::create(&path).unwrap();
            file.write_all(b"before ").unwrap();
            write(Path::new(&format!("/dev/fd/{}", file.as_raw_fd())), b"behind").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"before behind");
        }

        /// Not meaningful for root, whom permissions do not restrict.
        #[test]
        fn what_cannot_be_written_stays() {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("a");
            fs::write(&file, b"old").unwrap();
            let set =
                |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            set(&file, 0o444);
            let is_root = File::options().write(true).open(&file).is_ok();
            if !is_root {
                assert_eq!(write(&file, b"new").unwrap_err().kind(), ErrorKind::PermissionDenied);
                set(&file, 0o644);
                set(folder.path(), 0o555);
                assert_eq!(write(&file, b"new").unwrap_err().kind(), ErrorKind::PermissionDenied);
                set(folder.path(), 0o755);
                assert_eq!(
                    (fs::read(&file).unwrap(), names(folder.path())),
                    (b"old".to_vec(), vec!["a".to_owned()])
                );
            }
        }
    }

    /// Readers see either the whole old content or the whole new one, and no temporary file is left.
    #[test]
    fn a_hundred_writers_and_a_reader() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        write(&file, &[0; 5000]).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..100u8 {
                let file = &file;
                scope.spawn(move || write(file, &vec![writer; 5000 + 97 * usize::from(writer)]).unwrap());
            }
            for _ in 0..200 {
                let content = fs::read(&file).unwrap();
                assert!(content.len() >= 5000 && content.iter().all(|&byte| byte == content[0]));
                let writer = usize::from(content[0]);
                assert_eq!(content.len(), 5000 + 97 * writer);
            }
        });
        assert_eq!(names(folder.path()), ["a"]);
    }
}
