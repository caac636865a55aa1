"""The paper's experiments: which comparison each is, and which claims it decides."""
