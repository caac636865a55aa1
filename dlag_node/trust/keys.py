"""Key pairs and the files that they live in.

NAME.key       the secret half, hexadecimal, mode 0600; one that others can read is refused
NAME.pub       the public half
admitted       a list: on each line a public key, and the id that it has, if only that one; or a
               folder: the public halves in it, each for any id
tokens         a list: on each line the SHA-256 of a token that has not been used yet, mode 0600
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

import zmq
from zmq.utils import z85

from dlag_node.errors import ConfigError, StorageError
from dlag_node.trust.readers import readable_by_others
from dlag_node.wire.limits import KEY_BYTES

_SECRET_MODE, _PUBLIC_MODE, _FOLDER_MODE = 0o600, 0o644, 0o700
_HEX = re.compile(rf"[0-9a-f]{{{2 * KEY_BYTES}}}")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The two halves of a Curve25519 key; the secret one is never shown."""

    public: bytes
    secret: bytes = field(repr=False)


def new_pair() -> KeyPair:
    """A key pair that nobody else has."""
    public, secret = zmq.curve_keypair()
    return KeyPair(z85.decode(public), z85.decode(secret))


def read_pair(path: Path) -> KeyPair:
    """The pair whose secret half is in this file; a ConfigError if others can read it too."""
    secret = _one_key(path, secret=True)
    return KeyPair(z85.decode(zmq.curve_public(z85.encode(secret))), secret)


def read_public(path: Path) -> bytes:
    """The public key in this file."""
    return _one_key(path, secret=False)


def make_pair(path: Path) -> KeyPair:
    """The pair in `path` and its public half beside it; made where there is none yet."""
    if not path.exists():
        make_folder(path.parent)
        pair = new_pair()
        _create(path, f"{pair.secret.hex()}\n", _SECRET_MODE)
    pair = read_pair(path)
    public = public_path(path)
    if not public.exists():
        _create(public, f"{pair.public.hex()}\n", _PUBLIC_MODE)
    elif read_public(public) != pair.public:
        raise ConfigError(f"{public} is not the public half of {path}")
    return pair


def public_path(path: Path) -> Path:
    """Where the public half of a pair lies."""
    return path.with_suffix(".pub")


def make_folder(path: Path) -> None:
    """A folder that only its owner can look into; one that exists is left as it is."""
    try:
        path.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigError(f"cannot make the folder {path}: {exc}") from exc


def read_admitted(path: Path) -> dict[bytes, int | None]:
    """Public keys and the ids that they are bound to; None: any free one."""
    if path.is_dir():
        return {read_public(each): None for each in sorted(path.glob("*.pub"))}
    admitted: dict[bytes, int | None] = {}
    for number, line in enumerate(_read(path).splitlines(), 1):
        match line.split():
            case []:
                continue
            case [key] if _HEX.fullmatch(key):
                admitted[bytes.fromhex(key)] = None
            case [key, node] if _HEX.fullmatch(key) and node.isdecimal():
                admitted[bytes.fromhex(key)] = int(node)
            case _:
                raise ConfigError(
                    f"{path}, line {number}: {line[:80]!r}: expected a public key of "
                    f"{2 * KEY_BYTES} hexadecimal digits, and perhaps an id"
                )
    return admitted


def admit(path: Path, keys: Mapping[bytes, int | None]) -> None:
    """Add keys to a list, which is made where there is none; those on it stay as they are."""
    known = read_admitted(path) if path.exists() else {}
    new = {key: node for key, node in keys.items() if key not in known}
    text = "".join(f"{k.hex()}{'' if node is None else f' {node}'}\n" for k, node in new.items())
    try:
        # one write at the end of the file: several processes may do so at once
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _PUBLIC_MODE)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as exc:
        raise StorageError(f"cannot admit keys in {path}: {exc}") from exc


def make_token(tokens: Path, path: Path) -> None:
    """A token for one join: itself into `path`, its hash onto the coordinator's list."""
    token = token_hex(KEY_BYTES)
    _create(path, f"{token}\n", _SECRET_MODE)
    known = read_tokens(tokens) if tokens.exists() else set()
    write_tokens(tokens, known | {token_hash(token)})


def read_token(path: Path) -> str:
    """The token in this file; a ConfigError if others can read it too."""
    return _one_key(path, secret=True).hex()


def token_hash(token: str) -> str:
    """What a coordinator keeps of a token: 256 random bits need no salt."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(path: Path) -> set[str]:
    """The hashes of the tokens that nobody has used yet."""
    lines = set(_read(path).split())
    if not all(map(_HEX.fullmatch, lines)):
        raise ConfigError(f"{path}: expected lines of {2 * KEY_BYTES} hexadecimal digits")
    return lines


def write_tokens(path: Path, hashes: Iterable[str]) -> None:
    """Replace the list of unused tokens, all of it or nothing."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    _create(temporary, "".join(f"{each}\n" for each in sorted(hashes)), _SECRET_MODE)
    temporary.replace(path)


def _one_key(path: Path, *, secret: bool) -> bytes:
    text = _read(path).strip()
    if secret and readable_by_others(path):
        mode = path.stat().st_mode & 0o777
        raise ConfigError(f"{path} has mode {mode:04o}: others can read it, expected 0600")
    if not _HEX.fullmatch(text):
        # the text itself may be a secret
        raise ConfigError(
            f"{path}: {len(text)} characters: expected {2 * KEY_BYTES} hexadecimal digits"
        )
    return bytes.fromhex(text)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeError) as exc:
        raise ConfigError(f"cannot read {path}: {exc}: `dlag keys` makes keys") from exc


def _create(path: Path, text: str, mode: int) -> None:
    """Write a new file, all of it at once and with its mode; never over another one."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            os.fchmod(descriptor, mode)  # whatever the umask is
            file.write(text)
        path.hardlink_to(unfinished)  # which, unlike a renaming, fails where there is one
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc}") from exc
    finally:
        unfinished.unlink(missing_ok=True)
