"""Carries out the plans: reads the files of a host, writes them, keeps what they were, and restores it.

Invariants: nothing is written if a file changed since it was read, and a failed write leaves every file as it was. A
file keeps its mode, and a link to it stays a link. What a file was is kept in the user's data folder.
"""

import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from ricordo.errors import DocumentInvalid, VersionConflict
from ricordo.hooks.install.contract import ConfigChange, Installer, InstallOptions, InstallScope, Machine, Original
from ricordo.hooks.install.hosts import INSTALLER_NAMES, load_installer
from ricordo.hooks.install.plan import digest_content, list_paths, plan_install, plan_uninstall
from ricordo.hooks.install.toml_text import set_values
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.runtime.config_file import CONFIG_FILE
from ricordo.storage.disk import Disk, translate_os_error

__all__ = [
    "ConnectionState",
    "HostConnection",
    "find_agent_variable",
    "find_signs",
    "open_connection",
    "read_machine",
    "write_worker_setting",
]

ConnectionState = Literal["connected", "outdated", "absent"]
"""Whether a host is connected as this version does it, in another way, or not at all."""
_RECORDS = "installs"
_BACKUPS = "backups"
_MAX_BYTES = 10_000_000
_NAME_LENGTH = 16


def find_agent_variable(environment: Mapping[str, str]) -> str:
    """Return the variable by which a host marks what its agent starts; empty if a person started this process."""
    variables = (name for host in INSTALLER_NAMES for name in load_installer(host).session_variables)
    return next((name for name in variables if environment.get(name)), "")


def read_machine(project: Path, environment: Mapping[str, str]) -> Machine:
    """Return this machine, for the project in a folder."""
    return Machine(platform=sys.platform, home=str(Path.home()), project=str(project), environment=environment)


def find_signs(installer: Installer, machine: Machine) -> tuple[str, ...]:
    """Return by what it is seen that a host is on this machine, its folders and programs; empty if it is not."""
    folders = (folder for folder in installer.list_signs(machine) if Path(folder).is_dir())
    programs = (program for program in installer.programs if shutil.which(program))
    return (*folders, *(f"`{program}`" for program in programs))


def open_connection(
    installer: Installer, scope: InstallScope, machine: Machine, *, data: Path, root: Path, program: str, version: str
) -> "HostConnection | None":
    """Return the connection of a host in a scope, None if it can't be connected there.

    `data` is the user's data folder, `root` the memory of a host that does not say in which project it works, and
    `program` what the host is to start.
    """
    found = installer.find_folder(scope, machine)
    if not found:
        return None
    folder = Path(found).absolute()
    options = InstallOptions(
        program=program,
        version=version,
        folder=str(folder),
        scope=scope,
        platform=machine.platform,
        root=str(root),
        files=_list_files(folder),
    )
    return HostConnection(installer, options, data=data)


def _list_files(folder: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()


@dataclass(frozen=True, kw_only=True)
class _Record:
    """What connecting a host wrote: the program, the digest of each file and the name of its backup, new folders."""

    program: str = ""
    files: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    folders: tuple[str, ...] = ()


class HostConnection:
    """One host in one folder, connected or not. Each method blocks on the disk."""

    def __init__(self, installer: Installer, options: InstallOptions, *, data: Path) -> None:
        """Use the host's folder in `options`; `data` is the user's data folder."""
        self._installer, self._options, self._data = installer, options, data
        self._folder = Path(options.folder)
        name = f"{installer.name}-{digest_content(os.fsencode(self._folder))[:_NAME_LENGTH]}.json"
        self._record_path = data / _RECORDS / name
        self._disk = Disk()

    @property
    def folder(self) -> Path:
        """The host's folder."""
        return self._folder

    @property
    def installer(self) -> Installer:
        """How the host is connected."""
        return self._installer

    @property
    def options(self) -> InstallOptions:
        """What its parts depend on."""
        return self._options

    def plan_install(self) -> tuple[ConfigChange, ...]:
        """Return what connecting changes; nothing if the host is connected. Raises: DocumentInvalid, StorageError."""
        parts = self._installer.list_parts(self._options)
        return plan_install(parts, self._read_files(list_paths(parts)))

    def plan_uninstall(self) -> tuple[ConfigChange, ...]:
        """Return what disconnecting changes; nothing if no part is there. Raises: DocumentInvalid, StorageError."""
        parts = self._installer.list_parts(self._options)
        record = self._read_record()
        paths = tuple(dict.fromkeys([*list_paths(parts), *record.files]))
        originals = {path: self._original(entry) for path, entry in record.files.items()}
        files = self._read_files(paths)
        # a file that an earlier version wrote, and this one does not know, goes if nobody changed it since
        former = {
            path: ConfigChange(path=path, before=files[path], after=original.before)
            for path, original in originals.items()
            if path not in list_paths(parts) and digest_content(files[path]) == original.digest
        }
        return (*plan_uninstall(parts, files, originals), *former.values())

    def read_state(self) -> ConnectionState:
        """Return whether all of our parts are there, only some or older ones, or none. Raises: what planning raises."""
        program = self._read_record().program or self._options.program
        parts = self._installer.list_parts(replace(self._options, program=program))
        files = self._read_files(list_paths(parts))
        if not plan_install(parts, files):
            return "connected"
        return "outdated" if plan_uninstall(parts, files, {}) else "absent"

    def find_missing_program(self) -> str:
        """Return the program that the host is to start if it is not there, as when its environment was removed."""
        program = self._read_record().program
        return "" if not program or shutil.which(program) else program

    def install(self, changes: Sequence[ConfigChange]) -> None:
        """Write what `plan_install` returned, after keeping what the files were.

        Raises: VersionConflict if a file changed meanwhile; StorageError. Nothing is written then.
        """
        restored = {change.path: change.after for change in self.plan_uninstall()}
        record = self._read_record()
        files = dict(record.files)
        for change in changes:
            before = restored.get(change.path, change.before)
            files[change.path] = {"before": self._keep(change.path, before), "digest": digest_content(change.after)}
        folders = [str(folder) for folder in self._missing_folders(changes)]
        self._write_record(
            _Record(program=self._options.program, files=files, folders=(*record.folders, *folders)),
        )
        self._apply(changes)

    def uninstall(self, changes: Sequence[ConfigChange]) -> None:
        """Write what `plan_uninstall` returned, after keeping the files that somebody changed since.

        Raises: VersionConflict if a file changed meanwhile; StorageError. Nothing is written then.
        """
        record = self._read_record()
        for change in changes:
            if digest_content(change.before) != record.files.get(change.path, {}).get("digest"):
                self._keep(change.path, change.before)
        self._apply(changes)
        for folder in sorted(record.folders, key=len, reverse=True):
            with suppress(OSError):
                Path(folder).rmdir()
        self._record_path.unlink(missing_ok=True)

    def _read_files(self, paths: Iterable[str]) -> dict[str, bytes | None]:
        return {path: self._read(path) for path in paths}

    def _read(self, path: str) -> bytes | None:
        place = self._folder / path
        try:
            with place.open("rb") as file:
                content = file.read(_MAX_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError) as error:
            if place.is_symlink():
                raise DocumentInvalid(f"{place} is a link to a file that is not there. Nothing was written.") from error
            return None
        except IsADirectoryError as error:
            raise DocumentInvalid(f"{place} is a folder, where a file is needed. Nothing was written.") from error
        except OSError as error:
            raise translate_os_error(error, str(place)) from error
        if len(content) > _MAX_BYTES:
            raise DocumentInvalid(f"{place} is larger than {_MAX_BYTES:,} bytes. Nothing was written.")
        return content

    def _apply(self, changes: Sequence[ConfigChange]) -> None:
        for change in changes:
            if self._read(change.path) != change.before:
                raise VersionConflict(
                    f"{self._folder / change.path} changed meanwhile: try again. Nothing was written."
                )
        done: list[ConfigChange] = []
        try:
            for change in changes:
                self._write(change.path, change.after)
                done.append(change)
        except OSError as error:
            for change in reversed(done):
                with suppress(OSError):
                    self._write(change.path, change.before)
            for folder in reversed(self._missing_folders(done)):
                with suppress(OSError):
                    folder.rmdir()
            raise translate_os_error(error, error.filename or str(self._folder)) from error

    def _write(self, path: str, content: bytes | None) -> None:
        place = Path(os.path.realpath(self._folder / path))
        if content is None:
            place.unlink(missing_ok=True)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else None
        draft = place.with_name(f".{place.name}.{os.getpid()}.ricordo")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            try:
                self._disk.write(descriptor, content)
                self._disk.sync(descriptor)
            finally:
                os.close(descriptor)
            if mode is not None:
                draft.chmod(mode)
            self._disk.rename(str(draft), str(place))
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _missing_folders(self, changes: Iterable[ConfigChange]) -> list[Path]:
        """Return the folders that have to be made for the changes, outer ones first."""
        wanted = {parent for change in changes for parent in (self._folder / change.path).parents}
        return sorted((folder for folder in wanted if not folder.exists()), key=lambda folder: len(folder.parts))

    def _keep(self, path: str, content: bytes | None) -> str | None:
        """Keep what a file was among the backups, and return the name of the backup."""
        if content is None:
            return None
        name = f"{digest_content(content)[:_NAME_LENGTH]}-{Path(path).name}"
        place = self._data / _RECORDS / _BACKUPS / name
        if not place.exists():
            _write_private(place, content)
        return name

    def _original(self, entry: Mapping[str, str | None]) -> Original:
        name = entry.get("before")
        before = None if name is None else (self._data / _RECORDS / _BACKUPS / name).read_bytes()
        return Original(before=before, digest=entry.get("digest") or "")

    def _read_record(self) -> _Record:
        try:
            values = decode_json(self._record_path.read_bytes())
            return _Record(
                program=str(values["program"]), files=dict(values["files"]), folders=tuple(values.get("folders", ()))
            )
        except FileNotFoundError:
            return _Record()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DocumentInvalid(
                f"{self._record_path} can't be read: remove it, and the parts of Ricordo are found without it."
            ) from error

    def _write_record(self, record: _Record) -> None:
        values = {
            "host": self._installer.name,
            "folder": str(self._folder),
            "program": record.program,
            "files": record.files,
            "folders": record.folders,
        }
        _write_private(self._record_path, json.dumps(values, indent=1).encode("ascii") + b"\n")


def write_worker_setting(data: Path, *, is_worker: bool) -> None:
    """Write into the user's own settings whether a worker may run after a session. It blocks on the disk.

    Raises: DocumentInvalid for settings that can't be changed safely; StorageError.
    """
    place = data / CONFIG_FILE
    try:
        text = place.read_text(encoding="utf-8") if place.exists() else ""
        changed = set_values(text, ("hooks",), {"worker": is_worker})
    except (DocumentInvalid, UnicodeDecodeError) as error:
        raise DocumentInvalid(f"{place} can't be changed safely: {error}") from error
    except OSError as error:
        raise translate_os_error(error, str(place)) from error
    if changed != text:
        _write_private(place, changed.encode("utf-8"))


def _write_private(place: Path, content: bytes) -> None:
    """Replace a file of the user's data folder at once, so that only this user can read it."""
    disk = Disk()
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = place.with_name(f"{place.name}.{os.getpid()}")
        descriptor = disk.make_file(str(draft))
        try:
            disk.write(descriptor, content)
            disk.sync(descriptor)
        finally:
            os.close(descriptor)
        disk.rename(str(draft), str(place))
    except OSError as error:
        raise translate_os_error(error, str(place)) from error
