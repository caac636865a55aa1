"""Optimisation methods, one a file, written from worker i's side."""
