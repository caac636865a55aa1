"""Barrier, round engine, ledger: what happens between a method and the wire."""
