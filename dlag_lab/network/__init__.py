"""Networks that behave: every node on a host of its own, with delay, jitter, loss and rate."""
