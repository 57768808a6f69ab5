"""Archives and checksums that are the same for the same files: no times, owners or orders of this machine."""

import gzip
import hashlib
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

CHECKSUMS: Final = "SHA256SUMS"


def write_chart(chart: Path, archive: Path, epoch: int) -> None:
    """Write the archive that `helm install` takes, with the files of links rather than the links."""
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, dereference=True) as opened,
    ):
        for path in _files(chart):
            if path.name != ".helmignore":
                _add(opened, path, f"kindred/{path.relative_to(chart)}", epoch)


def write_layout(layout: Path, archive: Path, epoch: int) -> None:
    """Write the archive of an OCI image layout, which skopeo, podman and docker load."""
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as opened:
        for path in _files(layout):
            _add(opened, path, str(path.relative_to(layout)), epoch)


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _add(opened: tarfile.TarFile, path: Path, name: str, epoch: int) -> None:
    member = opened.gettarinfo(str(path), name)
    member.mtime, member.mode = epoch, 0o644
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    # Two links to one file are two files.
    member.type, member.linkname, member.size = tarfile.REGTYPE, "", path.stat().st_size
    with path.open("rb") as content:
        opened.addfile(member, content)


def write_checksums(folder: Path) -> None:
    """Write SHA256SUMS of all files of a folder, as `sha256sum --check` reads it."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
        if path.name != CHECKSUMS
    ]
    (folder / CHECKSUMS).write_text("".join(lines), "utf-8")


def replace_release(files: Path, folder: Path) -> None:
    """Copy a release into a folder, in place of the release that its SHA256SUMS lists. Other files there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = folder / CHECKSUMS
    if listed.is_file():
        for line in listed.read_text("utf-8").splitlines():
            old = folder / Path(line.partition("  ")[2]).name
            if old.is_file():
                old.unlink()
    for path in files.iterdir():
        shutil.copy2(path, folder)
