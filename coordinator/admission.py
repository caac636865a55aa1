"""Whom a coordinator lets in: keys on a list, and keys that come with a token."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from dlag_node.errors import ConfigError
from dlag_node.trust.keys import admit, read_admitted, read_tokens, token_hash, write_tokens

log = logging.getLogger(__name__)

_Stamp = tuple[int, int] | set[tuple[str, int]]  # of a list; of a folder


class Admission:
    """The list of admitted keys, and the tokens that are left.

    The list is read again whenever it has changed, or has come to be: keys can be added while the
    coordinator runs. It may be a folder of public keys.
    """

    def __init__(self, admitted: Path, tokens: Path | None = None) -> None:
        self._path = admitted
        self._stamp: _Stamp | None = None
        self._admitted: dict[bytes, int | None] = {}
        self._tokens_path = tokens
        if tokens is not None:
            if admitted.is_dir():
                raise ConfigError(
                    f"{admitted} is a folder: expected a list, for {tokens} to add to"
                )
            read_tokens(tokens)  # a mistake is to show now
        if admitted.exists():
            self._admitted = read_admitted(admitted)
        else:
            log.info("%s is not there yet: no key is admitted", admitted)

    def passes(self, key: bytes) -> bool:
        """Whether a key may say a word: it is admitted, or its first word may be a token."""
        return self.admits(key) or bool(self._tokens())

    def admits(self, key: bytes) -> bool:
        """Whether a key is on the list."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._admitted = read_admitted(self._path)
            except ConfigError as exc:  # somebody writes it just now, perhaps
                log.warning("the list of admitted keys stays what it was: %s", exc)
        return key in self._admitted

    def bound_to(self, key: bytes) -> int | None:
        """The only id that a key may have; None: any that is not another key's."""
        return self._admitted.get(key)

    def others_than(self, key: bytes) -> set[int]:
        """The ids that are bound to other keys."""
        bound = self._admitted.items()
        return {node for other, node in bound if node is not None and other != key}

    def redeem(self, key: bytes, token: str | None) -> bool:
        """Admit a key for a token that nobody has used: from now on it is on the list."""
        left = self._tokens()
        used = "" if token is None else token_hash(token)
        if self._tokens_path is None or used not in left:
            return False
        write_tokens(self._tokens_path, left - {used})  # first: rather none admitted than two
        admit(self._path, {key: None})
        return self.admits(key)

    def _tokens(self) -> set[str]:
        if self._tokens_path is None:
            return set()
        try:
            return read_tokens(self._tokens_path)
        except ConfigError as exc:
            log.warning("no token is taken now: %s", exc)
            return set()

    def _look(self) -> _Stamp | None:
        try:
            if self._path.is_dir():  # its time is too coarse to tell two posts apart
                return {(each.name, each.inode()) for each in os.scandir(self._path)}
            found = self._path.stat()
        except FileNotFoundError:
            return self._stamp
        return found.st_mtime_ns, found.st_size
