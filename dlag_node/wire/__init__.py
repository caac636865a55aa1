"""Frames and control messages, and their bytes."""
