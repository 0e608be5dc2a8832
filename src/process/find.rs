//! Finds a program that the operator names, and reports why it cannot be run.

use crate::bounded;
use crate::env::Env;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a program must not or cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// No absolute folder of `PATH` contains it.
    NotInPath(String),
    /// The file does not exist.
    Absent(PathBuf),
    /// A relative path, which depends on the current folder.
    Relative(String),
    /// Inside the repository, where the change could replace it.
    InRepository(PathBuf),
    /// A folder, or a file without the permission.
    NotExecutable(PathBuf),
    /// Built for another system or processor.
    Foreign(PathBuf),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInPath(name) => write!(f, "{name} not found on PATH"),
            Self::Absent(path) => write!(f, "{} not found", path.display()),
            Self::Relative(path) => write!(f, "{path} is not a program name or an absolute path"),
            Self::InRepository(path) => {
                write!(
                    f,
                    "{} is inside the repository under review and is not run",
                    path.display()
                )
            }
            Self::NotExecutable(path) => write!(f, "{} is not executable", path.display()),
            Self::Foreign(path) => write!(
                f,
                "{} is built for another system or processor",
                path.display()
            ),
        }
    }
}

impl std::error::Error for Unfit {}

/// Finds a program by its name in the absolute folders of `PATH`, or by its absolute path. Programs
/// inside the repository and links into it are rejected.
///
/// # Errors
/// No program was found, or it must not or cannot be run.
pub fn find_program(name: &str, env: &Env, repo_top: Option<&Path>) -> Result<PathBuf, Unfit> {
    let top = repo_top.and_then(|p| p.canonicalize().ok());
    if name.contains(std::path::is_separator) {
        let path = Path::new(name);
        if !path.is_absolute() {
            return Err(Unfit::Relative(name.to_owned()));
        }
        return check(path, top.as_deref());
    }
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let mut reason = None;
    // The repository may control a relative folder (`.`).
    for dir in env.path().iter().filter(|dir| dir.is_absolute()) {
        match check(&dir.join(&file), top.as_deref()) {
            Ok(path) => return Ok(path),
            Err(Unfit::Absent(_)) => {}
            // A shell would have run the first one.
            Err(unfit) => {
                reason.get_or_insert(unfit);
            }
        }
    }
    Err(reason.unwrap_or_else(|| Unfit::NotInPath(name.to_owned())))
}

/// Checks one file. Its folder is resolved, but its name is kept: programs with several names
/// behave by it.
fn check(path: &Path, top: Option<&Path>) -> Result<PathBuf, Unfit> {
    let Some((real, target)) = resolved(path) else {
        return Err(Unfit::Absent(path.to_owned()));
    };
    if top.is_some_and(|top| real.starts_with(top) || target.starts_with(top)) {
        return Err(Unfit::InRepository(real));
    }
    if !is_executable(&target) {
        return Err(Unfit::NotExecutable(real));
    }
    if is_foreign(&target) {
        Err(Unfit::Foreign(real))
    } else {
        Ok(real)
    }
}

/// Returns the path of a file with a resolved folder, and the file that it leads to. `None` if
/// there is no such file; a dangling link is not a program.
fn resolved(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let real = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    let target = real.canonicalize().ok()?;
    Some((real, target))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file())
        && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Returns true if a file starts like a program for another system or processor. Unreadable and
/// unknown files are left to the system.
fn is_foreign(path: &Path) -> bool {
    let head = std::fs::File::open(path).and_then(|f| bounded::start(f, 20));
    head.is_ok_and(|head| !is_native(&head, std::env::consts::OS, std::env::consts::ARCH))
}

/// Checks the first 20 bytes: the ELF header up to `e_machine`, or the magic numbers of Mach-O and
/// PE files.
fn is_native(head: &[u8], os: &str, arch: &str) -> bool {
    match head {
        [0x7f, b'E', b'L', b'F', _, order, .., a, b] if head.len() == 20 => {
            let machine = if *order == 2 {
                u16::from_be_bytes([*a, *b])
            } else {
                u16::from_le_bytes([*a, *b])
            };
            // Numbers of the System V ABI; most 64-bit kernels run 32-bit programs.
            let ours: &[u16] = match arch {
                "x86_64" => &[62, 3],
                "x86" => &[3],
                "aarch64" => &[183, 40],
                "arm" => &[40],
                "riscv64" => &[243],
                "powerpc64" => &[21],
                "s390x" => &[22],
                "loongarch64" => &[258],
                _ => return os != "macos" && os != "windows",
            };
            os != "macos" && os != "windows" && ours.contains(&machine)
        }
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] => os == "macos",
        [b'M', b'Z', ..] => os == "windows",
        _ => true,
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn program(path: &Path, content: &[u8], mode: u32) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn env(dirs: &[&Path]) -> Env {
        let path = dirs
            .iter()
            .map(|d| d.display().to_string())
            .collect::<Vec<_>>()
            .join(":");
        Env::from_pairs(PathBuf::from("/"), [("PATH", path)])
    }

    #[test]
    fn cli_10_a_program_of_the_repository_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (repo, bin, links) = (top.join("repo"), top.join("bin"), top.join("links"));
        program(&repo.join("claude"), b"#!/bin/sh\n", 0o755);
        std::fs::create_dir_all(&links).unwrap();
        std::os::unix::fs::symlink(repo.join("claude"), links.join("claude")).unwrap();
        std::os::unix::fs::symlink(&repo, top.join("other-name")).unwrap();
        for path in [
            Path::new("."),
            Path::new(""),
            &repo,
            &links,
            &top.join("other-name"),
        ] {
            let found = find_program("claude", &env(&[path]), Some(&repo));
            assert!(found.is_err(), "{path:?}: {found:?}");
        }
        let path = repo.join("claude").display().to_string();
        assert_eq!(
            find_program(&path, &env(&[]), Some(&repo)),
            Err(Unfit::InRepository(repo.join("claude")))
        );
        assert_eq!(
            find_program("./claude", &env(&[]), None),
            Err(Unfit::Relative("./claude".into()))
        );
        program(&bin.join("claude"), b"#!/bin/sh\n", 0o755);
        let found = find_program("claude", &env(&[Path::new("."), &repo, &bin]), Some(&repo));
        assert_eq!(found, Ok(bin.join("claude")));
    }

    #[test]
    fn cli_01_it_is_said_why_there_is_no_program() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let bin = top.join("bin");
        program(&bin.join("plain"), b"#!/bin/sh\n", 0o644);
        // An ELF file for SPARC, which no current test machine runs.
        let mut sparc = b"\x7fELF\x02\x02\x01".to_vec();
        sparc.resize(18, 0);
        sparc.extend([0, 43]);
        program(&bin.join("sparc"), &sparc, 0o755);
        std::os::unix::fs::symlink(bin.join("gone"), bin.join("dangling")).unwrap();
        assert_eq!(problem("nothing", &bin), Unfit::NotInPath("nothing".into()));
        assert_eq!(
            problem("dangling", &bin),
            Unfit::NotInPath("dangling".into())
        );
        assert_eq!(
            problem("plain", &bin),
            Unfit::NotExecutable(bin.join("plain"))
        );
        assert_eq!(problem("sparc", &bin), Unfit::Foreign(bin.join("sparc")));
        let nothing = bin.join("nothing");
        assert_eq!(
            problem(&nothing.display().to_string(), &bin),
            Unfit::Absent(nothing)
        );
    }

    /// Returns why a program is not found in a folder.
    fn problem(name: &str, folder: &Path) -> Unfit {
        find_program(name, &env(&[folder]), None).unwrap_err()
    }

    #[test]
    fn programs_are_told_apart_by_their_first_bytes() {
        assert!(is_native(&elf(62), "linux", "x86_64") && is_native(&elf(3), "linux", "x86_64"));
        assert!(
            !is_native(&elf(183), "linux", "x86_64") && !is_native(&elf(62), "macos", "x86_64")
        );
        assert!(is_native(b"#!/bin/sh\n", "linux", "x86_64") && is_native(b"", "linux", "x86_64"));
        assert!(!is_native(b"\xcf\xfa\xed\xfe\x07", "linux", "x86_64"));
        assert!(
            is_native(b"\xcf\xfa\xed\xfe\x07", "macos", "x86_64")
                && !is_native(b"MZ\x90", "linux", "x86_64")
        );
    }

    /// Returns the first bytes of an ELF file.
    fn elf(machine: u16) -> Vec<u8> {
        [
            b"\x7fELF\x02\x01".as_slice(),
            &[0; 12],
            &machine.to_le_bytes(),
        ]
        .concat()
    }
}
